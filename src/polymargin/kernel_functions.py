"""Kernels between examples: scikit-learn's names and parameters, computed in blocks.

A :class:`KernelFunction` compares any two sets of rows; a :class:`TrainingKernel` is bound to the
training data (for ``"precomputed"``: to the given matrix) and yields blocks of its Gram matrix, so
that nobody has to hold all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._kernels import kernels

KERNELS = ("linear", "rbf", "poly", "sigmoid", "precomputed")
Kernel = str | Callable[[Any, Any], Any]


def squared_row_norms(X: Any) -> NDArray:
    """``||x_i||^2`` of dense or CSR rows, in the dtype of X, summed in double."""
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return squares.astype(X.dtype)


def resolve_gamma(gamma: str | float, X: Any) -> float:
    """``gamma`` as a number: ``"scale"`` is 1 / (n_features Var(X)), ``"auto"`` 1 / n_features."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if sparse.issparse(X):
        mean = float(X.mean(dtype=np.float64))
        variance = float(X.multiply(X).mean(dtype=np.float64)) - mean**2
    else:
        variance = float(X.var(dtype=np.float64))
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


class KernelFunction:
    """A kernel with its parameters.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid"} or callable
        A callable gets two arrays of rows and returns the matrix of their kernel values.
    gamma, degree, coef0 : float
        As in scikit-learn: ``exp(-gamma ||x - z||^2)``, ``(gamma x.z + coef0)^degree``,
        ``tanh(gamma x.z + coef0)``.
    """

    def __init__(
        self, kernel: Kernel, *, gamma: float = 1.0, degree: float = 3, coef0: float = 0.0
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def block(
        self,
        A: Any,
        B: Any,
        a_norms: NDArray | None = None,
        b_norms: NDArray | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        """Kernel values of the rows of A with those of B, (len(A), len(B)), in the dtype of A.

        ``a_norms`` and ``b_norms`` are squared norms of the rows, where they are known; ``out`` is
        an array for the result.
        """
        if callable(self.kernel):
            return _into(out, self._call(A, B))
        K = _products(A, B, out)
        if self.kernel == "linear":
            return K
        if self.kernel == "rbf":
            a_norms = squared_row_norms(A) if a_norms is None else a_norms
            b_norms = squared_row_norms(B) if b_norms is None else b_norms
            kernels.rbf_from_products(K, a_norms, b_norms, self.gamma)
            return K
        K *= K.dtype.type(self.gamma)
        K += K.dtype.type(self.coef0)
        if self.kernel == "sigmoid":
            return np.tanh(K, out=K)
        return np.power(K, K.dtype.type(self.degree), out=K)

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        """``k(x_i, x_i)`` of every row."""
        if callable(self.kernel):
            rows = (X[i : i + 1] for i in range(X.shape[0]))
            return np.array([float(self._call(x, x)[0, 0]) for x in rows])
        if self.kernel == "rbf":
            return np.ones(X.shape[0])
        norms = squared_row_norms(X).astype(np.float64)
        if self.kernel == "linear":
            return norms
        inner = self.gamma * norms + self.coef0
        return np.asarray(np.tanh(inner) if self.kernel == "sigmoid" else inner**self.degree)

    def _call(self, A: Any, B: Any) -> NDArray:
        assert callable(self.kernel)
        K = np.asarray(self.kernel(A, B))
        if K.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"The kernel callable returned an array of shape {K.shape} for {A.shape[0]} and "
                f"{B.shape[0]} rows; it must return one of shape ({A.shape[0]}, {B.shape[0]})."
            )
        if K.dtype.kind not in "fiub":
            raise ValueError(
                f"The kernel callable returned values of dtype {K.dtype}, not numbers."
            )
        K = np.ascontiguousarray(K, dtype=A.dtype)
        if not np.isfinite(K).all():
            raise ValueError("The kernel callable returned NaN or infinity.")
        return K


def _products(A: Any, B: Any, out: NDArray | None) -> NDArray:
    if not sparse.issparse(A) and not sparse.issparse(B):
        return np.matmul(A, B.T, out=out)
    K = A @ B.T
    return _into(out, K.toarray() if sparse.issparse(K) else np.ascontiguousarray(K))


def _into(out: NDArray | None, K: NDArray) -> NDArray:
    if out is None:
        return K
    out[:] = K
    return out


class TrainingKernel:
    """Rows of the Gram matrix of the training data, for all examples or for some columns.

    Parameters
    ----------
    X : array or CSR of shape (n, d), float32 or float64
        With ``function=None`` the Gram matrix itself, (n, n).
    function : KernelFunction or None
    """

    def __init__(self, X: Any, function: KernelFunction | None) -> None:
        self.X = X
        self.function = function
        self.n = self.n_columns = int(X.shape[0])
        self.dtype = X.dtype
        needs_norms = function is not None and function.kernel == "rbf"
        self._norms = squared_row_norms(X) if needs_norms else None
        self._columns: NDArray[np.int64] | None = None
        self._column_X = X
        self._column_norms = self._norms

    def with_columns(self, columns: NDArray[np.int64]) -> TrainingKernel:
        """The same kernel, whose rows have these columns only."""
        part = TrainingKernel.__new__(TrainingKernel)
        part.__dict__.update(self.__dict__)
        part._columns = columns
        part.n_columns = len(columns)
        if self.function is not None:
            part._column_X = self.X[columns]
            part._column_norms = None if self._norms is None else self._norms[columns]
        return part

    def block(self, rows: NDArray[np.int64], out: NDArray | None = None) -> NDArray:
        """Kernel values of the examples ``rows`` with the columns."""
        if self.function is None:
            K = self.X[rows] if self._columns is None else self.X[np.ix_(rows, self._columns)]
            return _into(out, np.ascontiguousarray(K))
        norms = None if self._norms is None else self._norms[rows]
        return self.function.block(self.X[rows], self._column_X, norms, self._column_norms, out=out)

    def diagonal(self) -> NDArray[np.float64]:
        """``k(x_i, x_i)``."""
        if self.function is None:
            return np.diagonal(self.X).astype(np.float64)
        return self.function.diagonal(self.X)
