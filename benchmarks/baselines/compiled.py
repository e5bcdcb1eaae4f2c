"""Compile a loop with Numba where it is installed; without it the same code runs, slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

try:
    from numba import njit

    compiled: Callable[[Any], Any] = njit(cache=True)
    HAS_NUMBA = True
except ImportError:  # pragma: no cover - depends on the environment
    HAS_NUMBA = False

    def compiled(function: Any) -> Any:
        """Leave the function as it is."""
        return function


@compiled
def scores_of(i, data, indices, indptr, W, out):
    """``out = W^T x_i`` for W of shape (d, K)."""
    out[:] = 0.0
    for place in range(indptr[i], indptr[i + 1]):
        out += data[place] * W[indices[place]]


@compiled
def add_row(i, data, indices, indptr, change, W):
    """``W += x_i change^T``."""
    for place in range(indptr[i], indptr[i + 1]):
        W[indices[place]] += data[place] * change


@compiled
def block_step(b, bound):
    """Minimise ``1/2 (|p|^2 + (sum p)^2) - b.p`` over ``p >= 0, sum p <= bound``, by sorting."""
    total, t = 0.0, 0.0
    taken = 0
    order = np.argsort(-b)
    for r in range(len(b)):
        value = b[order[r]]
        lower = (total + value) / (r + 2)  # the threshold if the sum is free: sum p = t
        if lower > bound:
            lower = (total + value - bound) / (r + 1)
        if value <= lower or value <= 0.0:
            break
        total, t, taken = total + value, lower, r + 1
    p = np.zeros(len(b))
    for r in range(taken):
        p[order[r]] = b[order[r]] - t
    return p


def as_csr(X: Any) -> sparse.csr_array:
    """Canonical CSR in float64."""
    X = sparse.csr_array(X, dtype=np.float64)
    X.sum_duplicates()
    return X


class Rows:
    """The examples as the compiled loops want them, and a random order per epoch."""

    def __init__(self, X: Any, y: np.ndarray, seed: int = 0) -> None:
        self.X = as_csr(X)
        # one type of index, so that every loop is compiled once
        self._parts = (self.X.data, *(a.astype(np.int64) for a in (self.X.indices, self.X.indptr)))
        self.y = np.asarray(y, np.int64)
        self.n_classes = int(self.y.max()) + 1
        self.squares = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        self.rng = np.random.default_rng(seed)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, column indices, row starts."""
        return self._parts

    def order(self) -> np.ndarray:
        """All rows that are not empty, shuffled."""
        return self.rng.permutation(np.flatnonzero(self.squares > 0))

    def zeros(self) -> np.ndarray:
        """Weights of shape (d, K)."""
        return np.zeros((self.X.shape[1], self.n_classes))
