"""A step length: the root of a slope that rises with it, bracketed and approached by secants."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Bracket:
    """Where the root lies, from the slopes seen so far; `slope_low` is that at 0, negative."""

    slope_low: float
    low: float = 0.0
    high: float = math.inf
    slope_high: float = math.nan

    def next(self, t: float, slope: float) -> float:
        """The next length to look at, after the slope at `t`."""
        if slope < 0:
            self.low, self.slope_low = t, slope
        else:
            self.high, self.slope_high = t, slope
        if math.isinf(self.high):
            return 2.0 * t
        part = self.slope_low / (self.slope_low - self.slope_high)
        return self.low + min(max(part, 0.1), 0.9) * (self.high - self.low)
