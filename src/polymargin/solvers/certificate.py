"""Certificates: a primal value, a dual value, and so how far from the optimum a model can be.

For any W and any feasible dual, ``P(W) >= P* = D* >= D``. With ``V = sum_i x_i a_i^T``,
``P(W) - D = 1/2 ||W - V||^2 + sum_i (c_i loss_i - p_i.h_i + conjugate_i(p_i))``: every example owns
a share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from polymargin.arrays import Floats
from polymargin.core import core

ROUNDING = 1e-5  # a dual above the primal by more than this part is not rounding


@dataclass(frozen=True)
class Certificate:
    """Primal value of a model and dual value of the duals of the same moment."""

    primal: float
    dual: float

    @property
    def difference(self) -> float:
        """``P - D``."""
        return self.primal - self.dual

    @property
    def gap(self) -> float:
        """Relative duality gap ``(P - D) / P``; NaN when the values cannot be trusted."""
        difference = self.difference
        if not math.isfinite(difference) or difference < -ROUNDING * abs(self.primal):
            return math.nan
        return relative_gap(difference, self.primal)


def relative_gap(difference: float, primal: float) -> float:
    """``(P - D) / P``, at least 0; 0 where both objectives are."""
    return max(0.0, difference / primal) if primal > 0 else 0.0


def squared_norm(W: Floats) -> float:
    """``||W||^2`` of a C-contiguous array, accumulated in double."""
    return core.squared_norm(W)
