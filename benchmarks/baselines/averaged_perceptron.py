"""The averaged multiclass perceptron (Freund and Schapire 1999, Collins 2002)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.compiled import Rows, compiled, scores_of


@compiled
def _epoch(order, data, indices, indptr, y, W, sums, t):
    """One pass; ``sums`` gets t times each change, so that ``W - sums / t`` is the average."""
    s = np.empty(W.shape[1])
    mistakes = 0
    for i in order:
        t += 1
        scores_of(i, data, indices, indptr, W, s)
        guess = s.argmax()
        if guess != y[i]:
            mistakes += 1
            for place in range(indptr[i], indptr[i + 1]):
                row, value = indices[place], data[place]
                W[row, y[i]] += value
                W[row, guess] -= value
                sums[row, y[i]] += (t - 1) * value
                sums[row, guess] -= (t - 1) * value
    return t, mistakes


class AveragedPerceptron:
    """``coef`` is the average of the weights after every example seen so far."""

    def __init__(self, X: Any, y: np.ndarray, seed: int = 0) -> None:
        self.rows = Rows(X, y, seed)
        self.W, self.sums = self.rows.zeros(), self.rows.zeros()
        self.t = self.mistakes = 0

    def epoch(self) -> None:
        """One pass in a random order."""
        rows = self.rows
        self.t, self.mistakes = _epoch(rows.order(), *rows.parts, rows.y, self.W, self.sums, self.t)

    @property
    def coef(self) -> np.ndarray:
        """Averaged weights, one row per class."""
        return (self.W - self.sums / max(self.t, 1)).T
