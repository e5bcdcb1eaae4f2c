"""Weston-Watkins: all violations, ``sum_j max(0, h_j)``; block set ``p_j <= c``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.arrays import Doubles
from polymargin.losses.base import Loss


@dataclass(frozen=True)
class WestonWatkins(Loss):
    """The sum of the margin violations (Weston and Watkins 1999)."""

    name = "weston_watkins"

    def of_margins(self, h: Doubles) -> Doubles:
        """Loss of every row of margins."""
        return np.asarray(np.maximum(h, 0.0).sum(axis=1))
