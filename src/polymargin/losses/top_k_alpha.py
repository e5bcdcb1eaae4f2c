"""Top-k alpha: ``max(0, (1/k) sum of the k largest h_j)`` over the wrong classes.

Its block set is ``p_j <= sum(p)/k``, ``sum p <= c``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.arrays import Doubles
from polymargin.losses.top_k import TopK


@dataclass(frozen=True)
class TopKAlpha(TopK):
    """The mean of the k largest margins, if positive."""

    name = "top_k_alpha"

    def of_margins(self, h: Doubles) -> Doubles:
        """Loss of every row of margins."""
        return np.asarray(np.maximum(self.mean_of_largest(h), 0.0))
