"""The immutable problem a solver is given: data, labels, weights and loss."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.losses import Loss


@dataclass(frozen=True, eq=False)
class Problem:
    """``min_W 1/2 ||W||^2 + sum_i c_i loss(W^T x_i, y_i)``.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        float32 or float64; C-contiguous, or CSR with sorted indices and no duplicates. Not copied.
    y : int32 ndarray of shape (n,)
        Class codes from 0 to ``n_classes - 1``.
    c : float64 ndarray of shape (n,)
        ``c_i = C * sample_weight_i * class_weight_{y_i}``; an example with zero counts as absent.
    loss : Loss
    n_classes : int
    intercept_scaling : float
        Value of the appended constant feature; 0 for no intercept.
    """

    X: Any
    y: NDArray[np.int32]
    c: NDArray[np.float64]
    loss: Loss
    n_classes: int
    intercept_scaling: float = 0.0

    def __post_init__(self) -> None:
        # the kernels take no NumPy integer, which ``y.max() + 1`` is
        object.__setattr__(self, "n_classes", operator.index(self.n_classes))
        if self.X.ndim != 2:
            raise ValueError(f"X must be a matrix, got {self.X.ndim} dimension(s).")
        if self.X.dtype not in (np.float32, np.float64):
            raise ValueError(f"X must be float32 or float64, got {self.X.dtype}.")
        if self.is_sparse and self.X.format != "csr":
            raise ValueError(f"sparse X must be CSR, got {self.X.format.upper()}; use X.tocsr().")
        if self.y.shape != (self.n_examples,) or self.c.shape != (self.n_examples,):
            raise ValueError(
                f"X has {self.n_examples} rows, but y has shape {self.y.shape} and c has shape "
                f"{self.c.shape}."
            )
        if self.n_classes < 2:
            raise ValueError(f"A problem needs at least 2 classes, got {self.n_classes}.")
        if not np.isfinite(self.c).all() or (self.c < 0).any() or not (self.c > 0).any():
            raise ValueError("c must be finite and non-negative, and positive somewhere.")
        self.loss.check_n_classes(self.n_classes)

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return sparse.issparse(self.X)

    @property
    def n_examples(self) -> int:
        """Number of rows of X."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X, without the constant feature."""
        return int(self.X.shape[1])

    @property
    def n_weights(self) -> int:
        """Rows of W: the features and the constant one, if any."""
        return self.n_features + self.has_intercept

    @property
    def has_intercept(self) -> bool:
        """Whether there is a constant feature."""
        return self.intercept_scaling != 0

    @cached_property
    def squared_norms(self) -> NDArray[np.float64]:
        """``||x_i||^2``, with the constant feature."""
        if self.is_sparse:
            squares = np.multiply(self.X.data, self.X.data, dtype=np.float64)
            norms = np.zeros(self.n_examples)
            filled = np.flatnonzero(np.diff(self.X.indptr))
            if len(filled):
                norms[filled] = np.add.reduceat(squares, self.X.indptr[filled])
        else:
            norms = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        return norms + self.intercept_scaling**2

    @cached_property
    def prepared(self) -> dict[str, Any]:
        """What solvers computed from X, classes and intercept; shared with `with_cost`."""
        return {}

    def with_cost(self, c: NDArray[np.float64]) -> Problem:
        """The same problem with other costs of the examples; nothing of X is copied."""
        other = replace(self, c=c)
        other.__dict__.update(squared_norms=self.squared_norms, prepared=self.prepared)
        return other

    @cached_property
    def visited(self) -> NDArray[np.int64]:
        """Examples a sweep has to visit: those with a weight and a nonzero row."""
        return np.flatnonzero((self.c > 0) & (self.squared_norms > 0))

    @cached_property
    def constant_loss(self) -> float:
        """What all-zero rows add to the primal and to the dual alike."""
        absent = (self.c > 0) & (self.squared_norms == 0)
        return float(self.c[absent].sum()) * self.loss.value_at_zero(self.n_classes)
