"""Crammer and Singer's choice of the next example, on linear problems (Keerthi et al. 2008, 2.2).

The example with the largest violation v_i (equation 5 in `dual_decomposition`) comes next. To know
them all, the gradients of all examples are kept: a step on i adds (x_j.x_i) delta_i to
g_j for every j that has a feature in common with i (equation 13), by the columns of X.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.baselines.compiled import Rows, add_row, compiled
from benchmarks.baselines.dual_decomposition import sort_threshold, violation


@compiled
def _upper(own, n_classes, C):
    upper = np.zeros(n_classes)
    upper[own] = C
    return upper


@compiled
def _steps(count, epsilon, rows, columns, squares, y, C, W, A, g, v, products):
    """So many steps, fewer if the largest violation is at most epsilon; returns how many."""
    data, indices, indptr = rows
    column_data, column_rows, starts = columns
    n_classes = g.shape[1]
    for done in range(count):
        i = v.argmax()
        if v[i] <= epsilon:
            return done
        length = np.sqrt(squares[i])
        upper = _upper(y[i], n_classes, C)
        beta = length * (upper - A[i]) + g[i] / length
        theta = sort_threshold(beta, C * length)
        change = upper - A[i] - np.maximum(beta - theta, 0.0) / length
        A[i] += change
        add_row(i, data, indices, indptr, change, W)
        products[:] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            for other in range(starts[indices[place]], starts[indices[place] + 1]):
                products[column_rows[other]] += data[place] * column_data[other]
        for j in np.flatnonzero(products):
            g[j] += products[j] * change
            v[j] = violation(g[j], A[j], _upper(y[j], n_classes, C))
    return count


class LargestViolator:
    """``epoch()`` is `share` n steps.

    Attributes
    ----------
    largest_violation : float
        Of all examples, after the last step.
    steps : int
        Steps made.
    """

    def __init__(
        self, X: Any, y: np.ndarray, C: float = 1.0, *, share: float = 0.1, epsilon: float = 0.0
    ) -> None:
        self.rows, self.C, self.epsilon = Rows(X, y), C, epsilon
        by_column = sparse.csc_array(self.rows.X)
        self.columns = (
            by_column.data,
            *(part.astype(np.int64) for part in (by_column.indices, by_column.indptr)),
        )
        n, n_classes = len(self.rows.y), self.rows.n_classes
        self.count = max(1, round(share * n))
        self.W, self.alpha = self.rows.zeros(), np.zeros((n, n_classes))
        self.g = np.ones((n, n_classes))
        self.g[np.arange(n), self.rows.y] = 0.0
        self.v = np.where(self.rows.squares > 0, 1.0, 0.0)
        self.products = np.zeros(n)
        self.steps = 0

    def epoch(self) -> None:
        """Some steps."""
        rows = self.rows
        self.steps += _steps(
            self.count, self.epsilon, rows.parts, self.columns, rows.squares, rows.y, self.C,
            self.W, self.alpha, self.g, self.v, self.products,
        )  # fmt: skip

    @property
    def largest_violation(self) -> float:
        """Of all examples."""
        return float(self.v.max())

    def dual(self) -> float:
        """``sum p - 1/2 |W|^2``; an empty row counts with its constant loss."""
        own = self.alpha[np.arange(len(self.rows.y)), self.rows.y].sum()
        constant = self.C * float((self.rows.squares == 0).sum())
        return float(own - 0.5 * np.vdot(self.W, self.W)) + constant

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self.W.T
