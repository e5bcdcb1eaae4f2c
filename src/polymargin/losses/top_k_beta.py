"""Top-k beta: ``(1/k) sum of the k largest max(0, h_j)``.

Its block set is ``p_j <= c/k``, ``sum p <= c``.
"""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.arrays import Doubles
from polymargin.losses.top_k import TopK


@dataclass(frozen=True)
class TopKBeta(TopK):
    """The mean of the k largest margin violations."""

    name = "top_k_beta"

    def most(self, c: Doubles, total: Doubles) -> Doubles:
        """The k-th part of the cost."""
        return c / self.k
