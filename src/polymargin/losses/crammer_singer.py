"""Crammer-Singer: the largest violation, ``max(0, max_j h_j)``; block set ``sum p <= c``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.arrays import Doubles
from polymargin.losses.base import Loss


@dataclass(frozen=True)
class CrammerSinger(Loss):
    """The largest margin violation (Crammer and Singer 2001)."""

    name = "crammer_singer"

    def of_margins(self, h: Doubles) -> Doubles:
        """Loss of every row of margins."""
        return np.asarray(np.maximum(h.max(axis=1), 0.0))
