"""The support patterns of an online kernel machine, and their kernel values.

LaRank's compiled machine numbers its support patterns by slots and asks for kernel values by slot
(see ``src/core/larank/``). A store keeps the rows of the patterns, and nothing else of a stream;
the batch at hand is lent to it by ``lend``. Examples have numbers that go on from one batch to the
next. Patterns of the built-in kernels and of Gram matrices are kept by compiled code; only a kernel
that is a Python function has its patterns here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from polymargin.arrays import Codes, Floats, Indices, Matrix
from polymargin.core import core
from polymargin.kernel_functions import KernelFunction
from polymargin.solvers.checkpoint import Tree

# From this share of the slots on, values of all of them cost less than a copy of some rows.
MOST = 0.75


class PatternStore(ABC):
    """What a machine and a fitted model need of the patterns, which compiled code keeps."""

    _store: core.PatternsF32 | core.PatternsF64

    @property
    def source(self) -> object:
        """What the compiled machine asks for kernel values."""
        return self._store

    @property
    def n_evaluations(self) -> int:
        """Kernel values computed so far."""
        return self._store.n_evaluations

    @n_evaluations.setter
    def n_evaluations(self, n: int) -> None:
        self._store.n_evaluations = n

    def __len__(self) -> int:
        """The number of slots, those without a pattern included."""
        return len(self._store)

    @abstractmethod
    def lend(self, X: Matrix, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""

    def give_back(self) -> None:
        """Forget the batch."""
        self._store.give_back()

    @abstractmethod
    def vectors(self, slots: Codes) -> Matrix:
        """A copy of the rows of patterns."""


class VectorPatterns(PatternStore):
    """Patterns with features, dense or CSR, for a built-in kernel."""

    _store: core.DensePatternsF32 | core.CsrPatternsF32  # or the same in double

    def __init__(
        self, function: KernelFunction, n_features: int, dtype: DTypeLike, is_sparse: bool
    ) -> None:
        self.function, self.n_features, self.is_sparse = function, n_features, is_sparse
        kind = "CsrPatterns" if is_sparse else "DensePatterns"
        self._store = getattr(core, kind + _precision(dtype))(
            kernel="rbf" if callable(function.kernel) else function.kernel,
            gamma=function.gamma,
            degree=function.degree,
            coef0=function.coef0,
            n_features=n_features,
        )

    def lend(self, X: Matrix, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""
        if isinstance(X, np.ndarray):
            cast("core.DensePatternsF32", self._store).lend(X, first)
        else:
            store = cast("core.CsrPatternsF32", self._store)
            store.lend(X.data, X.indices, X.indptr, first)

    def vectors(self, slots: Codes) -> Matrix:
        """A copy of the rows of patterns."""
        rows = self._store.vectors(slots)
        if isinstance(rows, tuple):
            return sparse.csr_array(rows, shape=(len(slots), self.n_features))
        return rows

    @classmethod
    def of_rows(cls, function: KernelFunction, X: Matrix) -> Self:
        """The rows of X as patterns."""
        store = cls(function, X.shape[1], X.dtype, sparse.issparse(X))
        store.lend(X, 0)
        store._store.append(np.arange(X.shape[0]))
        store.give_back()
        return store

    def __getstate__(self) -> Tree:
        vectors = self.vectors(np.arange(len(self), dtype=np.int32))
        return {"function": self.function, "vectors": vectors, "n_evaluations": self.n_evaluations}

    def __setstate__(self, state: Tree) -> None:
        self.__dict__ = self.of_rows(state["function"], state["vectors"]).__dict__
        self.n_evaluations = state["n_evaluations"]


class CalledPatterns(VectorPatterns):
    """Patterns for a kernel that is a Python function: the machine's questions come here."""

    _batch: Matrix
    _first: int
    _all: Matrix | None = None

    @property
    def source(self) -> object:
        """What the compiled machine asks for kernel values."""
        return self

    def lend(self, X: Matrix, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""
        super().lend(X, first)
        self._batch, self._first = X, first

    def give_back(self) -> None:
        """Forget the batch."""
        super().give_back()
        self.__dict__.pop("_batch", None)
        self._all = None

    def example_rows(self, examples: Indices, slots: Codes) -> Floats:
        """Kernel values of examples with patterns, (len(examples), len(slots))."""
        return self._values(self._batch[examples - self._first], slots)

    def pattern_row(self, slot: int, slots: Codes) -> Floats:
        """Kernel values of a pattern with patterns."""
        return self._values(self.vectors(np.array([slot], np.int32)), slots).ravel()

    def append(self, example: int) -> float:
        """Make an example the pattern of the next slot; return its ``k(x, x)``."""
        diagonal = self.function.diagonal(self._batch[[example - self._first]])
        self._store.append(np.array([example]))
        self._all = None
        return float(diagonal[0])

    def keep(self, slots: Codes) -> None:
        """Keep only these patterns, renumbered in this order."""
        self._store.keep(slots)
        self._all = None

    def _values(self, A: Matrix, slots: Codes) -> Floats:
        n = len(self)
        if len(slots) < MOST * n:
            B = self.vectors(slots)
        else:
            if self._all is None:
                self._all = self.vectors(np.arange(n, dtype=np.int32))
            B = self._all
        self.n_evaluations += A.shape[0] * B.shape[0]
        K: Floats = self.function.block(A, B)
        return K if B.shape[0] == len(slots) else np.ascontiguousarray(K[:, slots])


class PrecomputedPatterns(PatternStore):
    """Patterns of a given Gram matrix: a pattern is a column number."""

    _store: core.GramPatternsF32  # or the same in double

    def __init__(self, dtype: DTypeLike, columns: Indices | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._store = getattr(core, "GramPatterns" + _precision(dtype))()
        if columns is not None:
            self._store.set_columns(columns)

    @property
    def columns(self) -> Indices:
        """The column of every pattern."""
        return self._store.columns()

    def lend(self, X: Matrix, first: int) -> None:
        """Make the rows of X the examples ``first``, ``first + 1``, ..."""
        assert first == 0, "a Gram matrix knows no examples but its own"
        self._store.lend(X)

    def vectors(self, slots: Codes) -> Matrix:
        """A copy of the rows of patterns: they have none."""
        return np.empty((0, 0))

    def __getstate__(self) -> Tree:
        return {"dtype": self.dtype, "columns": self.columns, "n_evaluations": self.n_evaluations}

    def __setstate__(self, state: Tree) -> None:
        self.__dict__ = PrecomputedPatterns(state["dtype"], state["columns"]).__dict__
        self.n_evaluations = state["n_evaluations"]


def _precision(dtype: DTypeLike) -> str:
    return "F32" if np.dtype(dtype) == np.float32 else "F64"


def patterns_for(function: KernelFunction | None, X: Matrix) -> PatternStore:
    """A store for patterns like the rows of X; without a function, X is a Gram matrix."""
    if function is None:
        return PrecomputedPatterns(X.dtype)
    store = CalledPatterns if callable(function.kernel) else VectorPatterns
    return store(function, X.shape[1], X.dtype, sparse.issparse(X))
