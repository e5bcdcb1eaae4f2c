"""One-vs-rest, squared: ``sum_m max(0, 1 - y_m s_m)^2`` over all classes; no bound on ``p``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.arrays import Doubles
from polymargin.losses.base import Loss


@dataclass(frozen=True)
class OneVsRestSquared(Loss):
    """A squared hinge loss per class: what ``LinearSVC`` minimises by default."""

    name = "one_vs_rest_squared"
    sum_is_bounded = False
    no_costs = (
        "its classes are not compared with each other, so that there are no margins between them"
    )

    def most(self, c: Doubles, total: Doubles) -> Doubles:
        """None."""
        return np.full_like(c, np.inf)
