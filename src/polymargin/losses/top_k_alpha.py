"""Top-k alpha: ``max(0, (1/k) sum of the k largest h_j)`` over the wrong classes.

Its block set is ``p_j <= sum(p)/k``, ``sum p <= c``.
"""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.arrays import Doubles
from polymargin.losses.top_k import TopK


@dataclass(frozen=True)
class TopKAlpha(TopK):
    """The mean of the k largest margins, if positive."""

    name = "top_k_alpha"
    has_room = False  # p_j <= sum(p)/k holds at any cost, or not

    def most(self, c: Doubles, total: Doubles) -> Doubles:
        """The k-th part of the sum."""
        return total / self.k
