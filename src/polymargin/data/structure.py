"""Sparse input made safe: index arrays checked before any compiled code follows them.

SciPy trusts the index arrays of a matrix, and so do the kernels: an index outside the matrix is a
read outside the array. ``check_sparse_structure`` looks at the arrays with NumPy alone, before a
conversion or a product. ``canonical_csr`` then gives rows with sorted, distinct indices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from polymargin.arrays import Sparse


def check_sparse_structure(X: object) -> None:
    """Raise a ValueError if a sparse container's index arrays do not describe a matrix.

    That is, for indices outside it, and for row pointers of the wrong length, with a wrong start,
    decreasing, or past the end of the data. What is not a SciPy sparse array or matrix passes.
    """
    if not isinstance(X, Sparse):
        return
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a {X.ndim}D sparse array instead. "
            "Reshape it to (n_samples, n_features)."
        )
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "coo":
        _check_coordinates(X)


def canonical_csr(X: sparse.csr_array) -> sparse.csr_array:
    """Give a CSR array whose rows have sorted, distinct indices; duplicates are summed.

    X has passed `check_sparse_structure`. Its arrays are shared where they are already so; X itself
    is never changed.
    """
    n_stored = int(X.indptr[-1])
    # A new object: flags such as has_canonical_format, cached in X, may be stale.
    view = sparse.csr_array(
        (_plain(X.data[:n_stored]), _plain(X.indices[:n_stored]), _plain(X.indptr)), shape=X.shape
    )
    if view.has_canonical_format:
        return view
    merged = view.copy()
    merged.sum_duplicates()
    if not np.isfinite(merged.data).all():
        raise ValueError("X has duplicate entries whose sum is infinite or NaN.")
    return merged


def _plain(array: ArrayLike) -> np.ndarray:
    """Give a contiguous and aligned array, without a copy where it is one."""
    return np.require(array, requirements=["C", "A"])


def _check_compressed(X: Sparse) -> None:
    n_rows, n_columns = _compressed_shape(X)
    indices, indptr = _integer_vector(X, "indices"), _integer_vector(X, "indptr")
    if len(indptr) != n_rows + 1:
        raise ValueError(
            f"Sparse input with a broken indptr of {len(indptr)} entries, expected {n_rows + 1}."
        )
    if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError(
            "Sparse input with a broken indptr: it must start at 0 and never decrease."
        )
    n_stored = int(indptr[-1])
    if n_stored > min(len(indices), len(X.data)):
        raise ValueError(
            f"Sparse input with a broken indptr: it ends at {n_stored}, past the end of indices "
            f"({len(indices)} entries) or data ({len(X.data)} entries)."
        )
    _check_range(indices[:n_stored], n_columns, "indices")


def _compressed_shape(X: Sparse) -> tuple[int, int]:
    """Count the compressed lines and the entries that a line has room for."""
    if X.format == "csc":
        return X.shape[1], X.shape[0]
    if X.format == "csr":
        return X.shape[0], X.shape[1]
    block_rows, block_columns = X.blocksize
    return X.shape[0] // block_rows, X.shape[1] // block_columns


def _check_coordinates(X: Sparse) -> None:
    for axis, coordinates in enumerate(X.coords):
        if len(coordinates) != len(X.data):
            raise ValueError(
                f"Sparse input with {len(X.data)} values but {len(coordinates)} indices "
                f"for axis {axis}."
            )
        _check_range(np.asarray(coordinates), X.shape[axis], f"indices of axis {axis}")


def _integer_vector(X: Sparse, name: str) -> np.ndarray:
    array = np.asarray(getattr(X, name))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"Sparse input with a broken {name}: expected a vector of integers, "
            f"got {array.ndim} dimension(s) of {array.dtype}."
        )
    return array


def _check_range(indices: np.ndarray, bound: int, name: str) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= bound):
        raise ValueError(
            f"Sparse input whose {name} point outside the matrix: they range from {indices.min()} "
            f"to {indices.max()}, expected 0 to {bound - 1}."
        )
