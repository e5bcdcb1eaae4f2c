"""Rows of data: one object for every layout, checked when it is made and then trusted.

The compiled part looks at all entries once: whether the index arrays describe a matrix, whether
they are sorted, whether everything is finite, which features occur, and the squared norms. Nothing
that is given rows looks again, or asks how they lie in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, NamedTuple, TypedDict

import numpy as np
from scipy import sparse

from polymargin.arrays import Doubles, Floats, Indices, Matrix
from polymargin.core import CompiledRows, core
from polymargin.data.structure import canonical_csr, check_sparse_structure
from polymargin.storage import digest_of

_NOBODY = np.empty(0, np.int64)
WEIGHT_ARRAYS = 4  # of the size of the weights, that a solver keeps


def next_seed(rng: np.random.Generator) -> int:
    """A seed for compiled code, which has random numbers of its own."""
    return int(rng.integers(2**63))


def shuffled(order: Indices, rng: np.random.Generator) -> Indices:
    """The same examples in random order."""
    out = np.empty_like(order)
    core.shuffled(order, next_seed(rng), out)
    return out


class Arranged(NamedTuple):
    """The order of a pass, and where to cut it into the parts that are in memory at once."""

    order: Indices
    cuts: Indices


class Piece(NamedTuple):
    """Rows that are in memory at once, and whom to visit there."""

    order: Indices
    compiled: CompiledRows | None = None  # None: those of everyone, which an engine has
    examples: Indices = _NOBODY  # whose rows they are; nobody: those of everyone


class RowsState(TypedDict, total=False):
    """What passes have left of rows on disk; of rows in memory, nothing."""

    kept: Indices  # whose rows stay in memory
    passes: int


class Rows(ABC):
    """Examples, one per row."""

    can_be_blocked: bool  # whether sweeps may take many rows at once
    listed_cost: float  # of a class in a short pass, in vectors of classes of a full one
    per_row: float  # entries that a visit of a row reads, on average
    n: int
    d: int
    dtype: np.dtype
    squared_norms: Doubles
    is_whole: ClassVar[bool] = True  # whether all rows are in memory, as `matrix`
    matrix: Matrix
    compiled: CompiledRows  # the rows as compiled code takes them

    def partitions(self) -> Iterator[Rows]:
        """The parts that can be visited on their own: here, all of it."""
        yield self

    def arranged(self, chosen: Indices, rng: np.random.Generator | None) -> Arranged:
        """The order in which a pass visits the chosen examples; without `rng`, that of the data."""
        return Arranged(chosen if rng is None else shuffled(chosen, rng), _NOBODY)

    def pieces(self, order: Arranged | None, worth: Doubles) -> Iterator[Piece]:
        """An order (None: everyone), part by part as the rows come to memory.

        The rows of those that are `worth` most may stay there.
        """
        yield Piece(np.arange(self.n) if order is None else order.order)

    @abstractmethod
    def layout(self, weights_per_feature: int) -> tuple[CompiledRows, Indices | None]:
        """The compiled rows of an engine, and the features its weights have rows for; None: all."""

    @abstractmethod
    def digest(self) -> str:
        """A hash of all values, and of whatever else passes depend on."""

    @abstractmethod
    def take(self, rows: Indices) -> Matrix:
        """A copy of some rows."""

    def state_dict(self) -> RowsState:
        """What passes have left."""
        return {}

    def load_state_dict(self, state: RowsState) -> None:  # noqa: B027
        """The inverse of `state_dict`."""


class MatrixRows(Rows):
    """Rows of a matrix in memory."""

    def __init__(self, matrix: Matrix, compiled: CompiledRows) -> None:
        self.matrix = matrix  # not to be changed
        self.compiled = compiled  # the rows as compiled code takes them
        self.n, self.d = (int(size) for size in matrix.shape)
        self.dtype = np.dtype(matrix.dtype)
        self.squared_norms = np.empty(self.n)
        compiled.squared_norms(self.squared_norms)
        if not np.isfinite(self.squared_norms).all():
            what = "whose squares overflow: scale the features."
            if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
                what = "that are NaN or infinite."
            raise ValueError(f"X has values {what}")

    def layout(self, weights_per_feature: int) -> tuple[CompiledRows, Indices | None]:
        """The compiled rows of an engine, and the features its weights have rows for; None: all.

        Features that no example has are left out where that saves memory.
        """
        return self.compiled, None

    @cached_property
    def in_single(self) -> Rows:
        """The same rows with values in single precision; a copy of the values."""
        return SingleRows(self)

    @abstractmethod
    def compiled_in_single(self, compiled: CompiledRows) -> CompiledRows:
        """Compiled rows with values in single precision."""


class DenseRows(MatrixRows):
    """Rows of a C-contiguous array."""

    can_be_blocked = True
    listed_cost = 1.5
    matrix: Floats

    def __init__(self, X: Floats) -> None:
        X = np.ascontiguousarray(X)
        super().__init__(X, core.dense_rows(X))
        self.per_row = float(self.d)

    def digest(self) -> str:
        """A hash of all values."""
        return digest_of(self.matrix)

    def take(self, rows: Indices) -> Floats:
        """A copy of some rows."""
        return np.asarray(self.matrix[rows])

    def compiled_in_single(self, compiled: CompiledRows) -> CompiledRows:
        """Compiled rows with values in single precision."""
        return core.dense_rows(self.matrix.astype(np.float32), looked_at=True)


class CsrRows(MatrixRows):
    """Rows of a CSR array; sorted, and with duplicates summed, in a copy where they are not."""

    can_be_blocked = False
    listed_cost = 4.0
    matrix: sparse.csr_array

    def __init__(self, X: sparse.csr_array | sparse.csr_matrix) -> None:
        X, compiled = _checked(X)
        if not compiled.canonical:
            X, compiled = _checked(canonical_csr(X))
        super().__init__(X, compiled)
        self.per_row = X.nnz / max(1, self.n)
        self._layout: tuple[CompiledRows, Indices | None] | None = None

    def layout(self, weights_per_feature: int) -> tuple[CompiledRows, Indices | None]:
        """The compiled rows of an engine, and the features its weights have rows for; None: all."""
        if self._layout is None:  # the first engine decides, so that weights of all fit each other
            unused = self.d - self.compiled.n_used
            saved = WEIGHT_ARRAYS * unused * weights_per_feature * self.dtype.itemsize
            self._layout = self.compiled, None
            if self.matrix.nnz > 0 and saved > self.matrix.indices.nbytes:
                features = np.empty(self.compiled.n_used, np.int64)
                self._layout = self.compiled.without_unused(features), features
        return self._layout

    def digest(self) -> str:
        """A hash of all values."""
        X = self.matrix
        return digest_of(X.shape, X.data, X.indices, X.indptr)

    def take(self, rows: Indices) -> sparse.csr_array:
        """A copy of some rows."""
        return self.matrix[rows]

    def compiled_in_single(self, compiled: CompiledRows) -> CompiledRows:
        """Compiled rows with values in single precision."""
        return compiled.with_values(self.matrix.data.astype(np.float32))


class SingleRows(Rows):
    """Rows in double precision with a copy of their values in single, for sweeps."""

    dtype = np.dtype(np.float32)

    def __init__(self, rows: MatrixRows) -> None:
        self._rows = rows
        self.can_be_blocked, self.listed_cost = rows.can_be_blocked, rows.listed_cost
        self.n, self.d, self.per_row = rows.n, rows.d, rows.per_row
        self.squared_norms, self.matrix = rows.squared_norms, rows.matrix
        self._compiled: CompiledRows | None = None

    def layout(self, weights_per_feature: int) -> tuple[CompiledRows, Indices | None]:
        """That of the rows in double precision."""
        compiled, features = self._rows.layout(weights_per_feature)
        if self._compiled is None:
            self._compiled = self._rows.compiled_in_single(compiled)
        return self._compiled, features

    def digest(self) -> str:
        """A hash of all values in double precision."""
        return self._rows.digest()

    def take(self, rows: Indices) -> Matrix:
        """A copy of some rows, in double precision."""
        return self._rows.take(rows)


def as_rows(X: Rows | Matrix) -> Rows:
    """Rows of a matrix of float32 or float64, dense or CSR; rows as they are.

    Not copied where it is C-contiguous, or CSR with sorted indices and without duplicates. A
    ``ValueError`` for anything else, and for values that are not finite or whose squares overflow.
    """
    if isinstance(X, Rows):
        return X
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix, got {X.ndim} dimension(s).")
    if X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X must be float32 or float64, got {X.dtype}.")
    if isinstance(X, np.ndarray):
        return DenseRows(X)
    if X.format != "csr":
        raise ValueError(f"sparse X must be CSR, got {X.format.upper()}; use X.tocsr().")
    return CsrRows(X)


def _checked(X: sparse.csr_array | sparse.csr_matrix) -> tuple[sparse.csr_array, CompiledRows]:
    """A CSR array of plain arrays, with index arrays of one type, and its compiled rows."""
    index_type = np.promote_types(X.indices.dtype, X.indptr.dtype)
    if index_type not in (np.int32, np.int64):
        check_sparse_structure(X)
        index_type = np.dtype(np.int64)
    data: Floats = np.require(X.data, requirements=["C", "A"])
    indices: Indices = np.require(X.indices, index_type, ["C", "A"])  # or int32
    indptr: Indices = np.require(X.indptr, index_type, ["C", "A"])
    try:
        compiled = core.csr_rows(data, indices, indptr, X.shape[1])
        if compiled.n != X.shape[0]:
            raise ValueError(f"indptr is that of {compiled.n} rows, not {X.shape[0]}.")
    except (ValueError, TypeError):
        check_sparse_structure(X)  # says more
        raise
    n_stored = int(indptr[-1])
    view = sparse.csr_array((data[:n_stored], indices[:n_stored], indptr), shape=X.shape)
    return view, compiled
