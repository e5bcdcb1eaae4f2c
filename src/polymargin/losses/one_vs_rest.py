"""One-vs-rest: ``sum_m max(0, 1 - y_m s_m)`` over all classes; block set ``p_m <= c``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.arrays import Doubles
from polymargin.losses.base import Loss


@dataclass(frozen=True)
class OneVsRest(Loss):
    """A hinge loss per class, of which nothing couples the classes."""

    name = "one_vs_rest"

    def of_margins(self, h: Doubles) -> Doubles:
        """Loss of every row of margins."""
        return np.asarray(np.maximum(h, 0.0).sum(axis=1))
