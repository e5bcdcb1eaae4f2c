"""What the hinge losses share: a smoothing, which makes them differentiable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from polymargin.losses.base import Loss


@dataclass(frozen=True)
class Hinge(Loss):
    """``max p.h`` over a block set; with a smoothing ``g``, ``max p.h - g/(2 c) ||p||^2``."""

    parameters: ClassVar[tuple[str, ...]] = ("smoothing",)
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.smoothing) and self.smoothing >= 0):
            raise ValueError(
                f"smoothing must be a finite number, 0 (none) or more, got {self.smoothing!r}."
            )
