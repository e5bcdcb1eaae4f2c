"""MIRA, the margin infused relaxed algorithm (Crammer and Singer 2003), with averaging.

On seeing an example, take the smallest change of the weights in the span of ``x`` that minimises

    1/2 |W + x a^T|^2     over  a_m <= [m = y],  sum a = 0

In the package's terms this is a restricted problem with cost 1 and no memory of earlier visits. The
original asks for no margin, and so never leaves weights of zero; ``margin=1`` is the usual form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.compiled import Rows, add_row, block_step, compiled, scores_of


@compiled
def _epoch(order, data, indices, indptr, squares, y, margin, W, sums, t):
    s = np.empty(W.shape[1])
    for i in order:
        t += 1
        scores_of(i, data, indices, indptr, W, s)
        b = (margin + s - s[y[i]]) / squares[i]
        b[y[i]] = 0.0
        change = -block_step(b, 1.0)
        change[y[i]] = -change.sum()
        if change[y[i]] > 0.0:
            add_row(i, data, indices, indptr, change, W)
            add_row(i, data, indices, indptr, (t - 1) * change, sums)
    return t


class Mira:
    """``coef`` is the average over the examples seen, ``W.T`` the last weights."""

    def __init__(self, X: Any, y: np.ndarray, margin: float = 1.0, seed: int = 0) -> None:
        self.rows, self.margin = Rows(X, y, seed), margin
        self.W, self.sums = self.rows.zeros(), self.rows.zeros()
        self.t = 0

    def epoch(self) -> None:
        """One pass in a random order."""
        rows = self.rows
        self.t = _epoch(
            rows.order(), *rows.parts, rows.squares, rows.y, self.margin, self.W, self.sums, self.t
        )

    @property
    def coef(self) -> np.ndarray:
        """Averaged weights, one row per class."""
        return (self.W - self.sums / max(self.t, 1)).T
