"""The support patterns of an online kernel machine, and their kernel values.

LaRank's compiled machine numbers its support patterns by slots and asks for kernel values by slot
(see ``src/core/larank/machine.hpp``). A store keeps the rows of the patterns, and nothing else
of a stream; the batch at hand is lent to it by ``lend``. Examples have numbers that go on from one
batch to the next.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.kernel_functions import KernelFunction, squared_row_norms

Examples = NDArray[np.int64]
Slots = NDArray[np.int32]
# From this share of the slots on, values of all of them cost less than a copy of some rows.
MOST = 0.75
AT_ONCE = 256  # rows that are copied for a product


class PatternStore(Protocol):
    """What the machine asks for, and what a fitted model takes from it."""

    n_evaluations: int

    def lend(self, X: Any, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""

    def give_back(self) -> None:
        """Forget the batch."""

    def example_rows(self, examples: Examples, slots: Slots) -> NDArray:
        """Kernel values of examples with patterns, (len(examples), len(slots))."""

    def pattern_row(self, slot: int, slots: Slots) -> NDArray:
        """Kernel values of a pattern with patterns."""

    def append(self, example: int) -> float:
        """Make an example the pattern of the next slot; return its ``k(x, x)``."""

    def keep(self, slots: Slots) -> None:
        """Keep only these patterns, renumbered in this order."""

    def vectors(self, slots: Slots) -> Any:
        """A copy of the rows of patterns."""


class VectorPatterns:
    """Patterns with features, dense or CSR, for a kernel that is computed.

    Parameters
    ----------
    function : KernelFunction
    n_features : int
    dtype : dtype
    is_sparse : bool
    """

    def __init__(
        self, function: KernelFunction, n_features: int, dtype: Any, is_sparse: bool
    ) -> None:
        self.function = function
        self.is_sparse = is_sparse
        self.n = 0
        self.n_evaluations = 0
        rows = SparseRows if is_sparse else DenseRows
        self._rows: DenseRows | SparseRows = rows(n_features, np.dtype(dtype))
        self._norms = np.empty(16, dtype)
        self._batch: Any = None
        self._batch_norms = np.empty(0, dtype)
        self._first = 0

    def lend(self, X: Any, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""
        self._batch, self._first = X, first
        self._batch_norms = squared_row_norms(X)

    def give_back(self) -> None:
        """Forget the batch."""
        self._batch = None

    def example_rows(self, examples: Examples, slots: Slots) -> NDArray:
        """Kernel values of examples with patterns."""
        rows = examples - self._first
        return self._values(self._batch[rows], self._batch_norms[rows], slots)

    def pattern_row(self, slot: int, slots: Slots) -> NDArray:
        """Kernel values of a pattern with patterns."""
        x, norm = self._rows.get(slot, slot + 1), self._norms[slot : slot + 1]
        return self._values(x, norm, slots)[0]

    def append(self, example: int) -> float:
        """Make an example the next pattern."""
        row = example - self._first
        x = _row_of(self._batch, row)
        diagonal = float(self.function.diagonal(x)[0])
        if not np.isfinite(diagonal):
            raise ValueError(
                "The kernel has values that are NaN or infinite: scale the features, or use other "
                "kernel parameters."
            )
        self._rows.append(x, self.n)
        if self.n == len(self._norms):
            self._norms = np.resize(self._norms, 2 * self.n)
        self._norms[self.n] = self._batch_norms[row]
        self.n += 1
        return diagonal

    def keep(self, slots: Slots) -> None:
        """Keep only these, renumbered in this order."""
        self._rows.keep(slots)
        self._norms[: len(slots)] = self._norms[slots]
        self.n = len(slots)

    def vectors(self, slots: Slots) -> Any:
        """A copy of the rows of patterns."""
        return self._rows.take(slots)

    def _values(self, A: Any, a_norms: NDArray, slots: Slots) -> NDArray:
        if sparse.issparse(A) and not callable(self.function.kernel):
            A = A.toarray()  # a product with dense rows needs no transposed copy of B
        if len(slots) >= MOST * self.n:
            K = self._block(A, a_norms, self._rows.get(0, self.n), self._norms[: self.n])
            return K if len(slots) == self.n else np.ascontiguousarray(K[:, slots])
        step = AT_ONCE if self._in_parts else max(1, len(slots))
        parts = [slots[start : start + step] for start in range(0, len(slots), step)]
        blocks = [self._block(A, a_norms, self._rows.take(s), self._norms[s]) for s in parts]
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

    def _block(self, A: Any, a_norms: NDArray, B: Any, b_norms: NDArray) -> NDArray:
        self.n_evaluations += A.shape[0] * B.shape[0]
        return self.function.block(A, B, a_norms, b_norms)

    @property
    def _in_parts(self) -> bool:
        """Whether copies of rows are made in parts, which stay in the processor's cache."""
        return not self.is_sparse and not callable(self.function.kernel)


class PrecomputedPatterns:
    """Patterns of a given Gram matrix: a pattern is a column number."""

    def __init__(self) -> None:
        self.n_evaluations = 0
        self._columns = np.empty(0, np.int64)
        self._gram: Any = None

    def lend(self, X: Any, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""
        assert first == 0, "a Gram matrix knows no examples but its own"
        self._gram = X

    def give_back(self) -> None:
        """Forget the batch."""
        self._gram = None

    def example_rows(self, examples: Examples, slots: Slots) -> NDArray:
        """Kernel values of examples with patterns."""
        self.n_evaluations += len(examples) * len(slots)
        return self._gram[examples[:, None], self._columns[slots]]

    def pattern_row(self, slot: int, slots: Slots) -> NDArray:
        """Kernel values of a pattern with patterns."""
        return self.example_rows(self._columns[[slot]], slots)[0]

    def append(self, example: int) -> float:
        """Make an example the next pattern."""
        self._columns = np.append(self._columns, example)
        return float(self._gram[example, example])

    def keep(self, slots: Slots) -> None:
        """Keep only these, renumbered in this order."""
        self._columns = self._columns[slots]

    def vectors(self, slots: Slots) -> NDArray:
        """A copy of the rows of patterns."""
        return np.empty((0, 0))


class DenseRows:
    """A growing array of rows."""

    def __init__(self, n_features: int, dtype: np.dtype) -> None:
        self._rows = np.empty((16, n_features), dtype)

    def get(self, start: int, stop: int) -> NDArray:
        """A view of the rows from start to stop."""
        return self._rows[start:stop]

    def take(self, slots: Slots) -> NDArray:
        """A copy of some rows."""
        return self._rows[slots]

    def append(self, x: NDArray, n: int) -> None:
        """Make x the row n."""
        if n == len(self._rows):
            longer = np.empty((n + n // 2, self._rows.shape[1]), self._rows.dtype)
            longer[:n] = self._rows
            self._rows = longer
        self._rows[n] = x[0]

    def keep(self, slots: Slots) -> None:
        """Keep only these, renumbered in this order."""
        self._rows[: len(slots)] = self._rows[slots]


class SparseRows:
    """A growing CSR array: its parts have room to spare, a view of their beginning is the array."""

    def __init__(self, n_features: int, dtype: np.dtype) -> None:
        self._set(sparse.csr_array((0, n_features), dtype=dtype))

    def _set(self, X: sparse.csr_array) -> None:
        self._n_features = X.shape[1]
        self._data, self._indices, self._indptr = X.data, X.indices, X.indptr
        self._view: sparse.csr_array | None = X

    def get(self, start: int, stop: int) -> sparse.csr_array:
        """A view of the rows from start to stop."""
        if start != 0 or self._view is None or self._view.shape[0] != stop:
            first, last = self._indptr[start], self._indptr[stop]
            view = sparse.csr_array(
                (
                    self._data[first:last],
                    self._indices[first:last],
                    self._indptr[start : stop + 1] - first,
                ),
                shape=(stop - start, self._n_features),
            )
            if start != 0:
                return view
            self._view = view
        return self._view

    def take(self, slots: Slots) -> sparse.csr_array:
        """A copy of some rows."""
        return self.get(0, int(slots.max(initial=-1)) + 1)[slots]

    def append(self, x: sparse.csr_array, n: int) -> None:
        """Make x the row n."""
        used = int(self._indptr[n])
        if used + x.nnz > len(self._data):
            room = 2 * used + x.nnz + 64
            self._data, self._indices = np.resize(self._data, room), np.resize(self._indices, room)
            if room >= 2**31:
                self._indices = self._indices.astype(np.int64)
                self._indptr = self._indptr.astype(np.int64)
        if n + 2 > len(self._indptr):
            self._indptr = np.resize(self._indptr, 2 * n + 16)
        self._data[used : used + x.nnz] = x.data
        self._indices[used : used + x.nnz] = x.indices
        self._indptr[n + 1] = used + x.nnz
        self._view = None

    def keep(self, slots: Slots) -> None:
        """Keep only these, renumbered in this order."""
        self._set(self.take(slots))


def _row_of(X: Any, row: int) -> Any:
    return X[[row]] if sparse.issparse(X) else X[row : row + 1]
