"""Softmax: ``log(1 + sum_j exp(s_j - s_y))``, multinomial logistic regression; a dense dual."""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.losses.base import Loss


@dataclass(frozen=True)
class Softmax(Loss):
    """The negative logarithm of the true class's probability."""

    name = "softmax"
    gives_probabilities = True
    dense_dual = True
