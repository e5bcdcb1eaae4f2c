"""Top-k entropy: softmax on the block set of top-k alpha, ``p_j <= sum(p)/k``, ``sum p <= c``."""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.arrays import Doubles
from polymargin.losses.top_k import WithTopK


@dataclass(frozen=True)
class TopKEntropy(WithTopK):
    """Softmax that forgives k - 1 classes ahead (Lapin, Hein and Schiele 2016); k = 1 is softmax.

    Its scores are no logarithms of probabilities: ``exp(-loss)`` of the classes adds up to more
    than 1, and the scores that minimise its mean over a distribution have another softmax.
    """

    name = "top_k_entropy"
    has_room = False  # p_j <= sum(p)/k holds at any cost, or not
    no_costs = "it has no margins, and weighs all classes by their probabilities"
    dense_dual = True
    steepness = 0.05  # that of softmax

    def most(self, c: Doubles, total: Doubles) -> Doubles:
        """The k-th part of the sum."""
        return total / self.k
