"""Kernels between examples: scikit-learn's names and parameters, computed in blocks.

A :class:`KernelFunction` compares any two sets of rows; a :class:`TrainingKernel` is bound to the
training data (for ``"precomputed"``: to the given matrix) and yields blocks of its Gram matrix, so
that nobody has to hold all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse

from polymargin.arrays import Doubles, Floats, Indices, Matrix
from polymargin.core import core
from polymargin.waiting import result_of

KERNELS = ("linear", "rbf", "poly", "sigmoid", "precomputed")
WIDE_VECTORS = 32  # bytes
Kernel = str | Callable[[Matrix, Matrix], Floats]


def squared_row_norms(X: Matrix) -> Floats:
    """``||x_i||^2`` of dense or CSR rows, in the dtype of X, summed in double."""
    if isinstance(X, np.ndarray):
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    else:
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    norms: Floats = squares.astype(X.dtype)
    return norms


def resolve_gamma(gamma: str | float, X: Matrix) -> float:
    """``gamma`` as a number: ``"scale"`` is 1 / (n_features Var(X)), ``"auto"`` 1 / n_features."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if isinstance(X, np.ndarray):
        variance = float(X.var(dtype=np.float64))
    else:
        mean = float(X.mean(dtype=np.float64))
        variance = float(X.multiply(X).mean(dtype=np.float64)) - mean**2
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


@dataclass(eq=False)
class KernelFunction:
    """A kernel with its parameters, as in scikit-learn.

    They mean ``exp(-gamma ||x - z||^2)``, ``(gamma x.z + coef0)^degree``,
    ``tanh(gamma x.z + coef0)``. A callable gets two arrays of rows and returns the matrix of their
    kernel values.
    """

    kernel: Kernel
    _: KW_ONLY
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def block(
        self,
        A: Matrix,
        B: Matrix,
        a_norms: Floats | None = None,
        b_norms: Floats | None = None,
        out: Floats | None = None,
    ) -> Floats:
        """Kernel values of the rows of A with those of B, (len(A), len(B)), in the dtype of A.

        ``a_norms`` and ``b_norms`` are squared norms of the rows, where they are known; ``out`` is
        an array for the result.
        """
        if callable(self.kernel):
            return _into(out, self._call(A, B))
        K = _products(A, B, out)
        a_norms = self.norms(A) if a_norms is None else a_norms
        b_norms = self.norms(B) if b_norms is None else b_norms
        core.values_from_products(self.compiled, K, a_norms, b_norms)
        return K

    @property
    def compiled(self) -> core.Kernel:
        """The kernel for compiled code, which a Python function is not."""
        assert not callable(self.kernel)
        return core.Kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def norms(self, X: Matrix) -> Floats:
        """``||x_i||^2``, or zeros where the kernel does not ask for them."""
        return squared_row_norms(X) if self.kernel == "rbf" else np.zeros(X.shape[0], X.dtype)

    def multiplies_itself(self, *matrices: Matrix) -> bool:
        """Whether compiled code makes kernel values of these rows from the rows themselves.

        With narrow vectors the products of the BLAS that NumPy has are faster.
        """
        return (
            not callable(self.kernel)
            and all(isinstance(X, np.ndarray) for X in matrices)
            and core.vector_bytes >= WIDE_VECTORS
        )

    def diagonal(self, X: Matrix) -> Doubles:
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

    def _call(self, A: Matrix, B: Matrix) -> Floats:
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


def _products(A: Matrix, B: Matrix, out: Floats | None) -> Floats:
    if not sparse.issparse(A) and not sparse.issparse(B):
        return np.matmul(A, B.T, out=out)
    K = A @ B.T
    return _into(out, np.ascontiguousarray(K) if isinstance(K, np.ndarray) else K.toarray())


def _into(out: Floats | None, K: Floats) -> Floats:
    if out is None:
        return K
    out[:] = K
    return out


TILE = 2048  # kernel values a side, at a time
CALL = 2**31  # multiplications in one call of compiled code, between looks at Ctrl-C
CHEAP = 64  # features, at most, of rows whose kernel values are not worth keeping
STRIP = 512  # columns of a call, or a multiple of them
ROWS_AT_ONCE = 128  # of a matrix in memory
_Rows = tuple[Indices, Matrix | None, Floats | None]  # indices, the rows, their squared norms


def tiles(n: int, size: int) -> list[slice]:
    """Consecutive parts of n things."""
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def share_out(call: Callable[[slice], None], parts: list[slice], threads: int) -> None:
    """Call a function for every part, in threads, which end with the call."""
    threads = min(threads, len(parts))
    if threads <= 1:
        for part in parts:
            call(part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(call, part) for part in parts]
            try:
                for future in futures:
                    result_of(future)  # raises the first error
            finally:
                for future in futures:
                    future.cancel()


class TrainingKernel:
    """Parts of the Gram matrix of the training data; without a function, X is that matrix.

    What is computed by several threads has the same bits whatever their number. A kernel that is a
    Python function is called by one thread only.
    """

    at_hand = False  # whether all kernel values are in memory: there is no use in keeping some
    cheap = False  # whether those of many rows cost no more than to keep and to read them
    threads = 1

    def __init__(self, X: Matrix, function: KernelFunction | None) -> None:
        self.X = X
        self.function = function
        self.n = int(X.shape[0])
        self.dtype = X.dtype
        self.n_evaluations = 0  # kernel values computed so far
        self._norms = None
        if function is not None and not callable(function.kernel):
            self._norms = function.norms(X)
        self._diagonal: Doubles | None = None

    def block(
        self,
        rows: Indices,
        columns: Indices,
        out: Floats | None = None,
        places: Indices | None = None,
    ) -> Floats:
        """Kernel values of the examples ``rows`` with the examples ``columns``.

        They are written to the rows ``places`` of ``out``, which may be longer; by default to its
        first ones.
        """
        out = np.empty((len(rows), len(columns)), self.dtype) if out is None else out
        self._fill(rows, columns, out, np.arange(len(rows)) if places is None else places)
        return out

    def _fill(self, rows: Indices, columns: Indices, out: Floats, places: Indices) -> None:
        self.n_evaluations += len(rows) * len(columns)
        for part, of_rows in self._parts(rows):
            for place, of_columns in self._parts(columns):
                out[places[part], place] = self._values(of_rows, of_columns)

    def times(self, columns: Indices, rows: Indices, coef: Floats) -> Doubles:
        """``K[columns, rows] coef``; the kernel values are not kept."""
        total = np.zeros((len(columns), coef.shape[1]))
        self.add_times(columns, rows, coef, total, np.arange(len(columns)))
        return total

    def add_times(
        self, columns: Indices, rows: Indices, coef: Floats, out: Doubles, places: Indices
    ) -> None:
        """``out[places] += K[columns, rows] coef``, in small tiles."""
        self._add(columns, rows, np.ascontiguousarray(coef, self.dtype), out, places)

    def _add(
        self, columns: Indices, rows: Indices, coef: Floats, out: Doubles, places: Indices
    ) -> None:
        self.n_evaluations += len(rows) * len(columns)
        few = list(self._parts(rows))
        for place, of_columns in self._parts(columns):
            part = np.zeros((len(of_columns[0]), coef.shape[1]))
            for at, of_rows in few:
                core.add_product(self._values(of_rows, of_columns), coef[at], part)
            out[places[place]] += part

    def diagonal(self) -> Doubles:
        """``k(x_i, x_i)``."""
        if self.function is None:
            return np.diagonal(self.X).astype(np.float64)
        if self._diagonal is None:
            self._diagonal = self.function.diagonal(self.X)
        return self._diagonal

    def _parts(self, examples: Indices) -> Iterator[tuple[slice, _Rows]]:
        for part in tiles(len(examples), TILE):
            one = examples[part]
            norms = None if self._norms is None else self._norms[one]
            yield part, (one, None if self.function is None else self.X[one], norms)

    def _values(self, rows: _Rows, columns: _Rows) -> Floats:
        if self.function is None:
            return np.ascontiguousarray(self.X[np.ix_(rows[0], columns[0])])
        return self.function.block(rows[1], columns[1], rows[2], columns[2])


class DenseKernel(TrainingKernel):
    """The same of dense rows, with a built-in kernel: compiled, and by several threads."""

    def __init__(self, X: Floats, function: KernelFunction, threads: int = 1) -> None:
        super().__init__(X, function)
        self.threads = threads
        self.cheap = int(X.shape[1]) <= CHEAP
        self._compiled = function.compiled
        self._own = X, function.norms(X)

    def _fill(self, rows: Indices, columns: Indices, out: Floats, places: Indices) -> None:
        self.n_evaluations += len(rows) * len(columns)

        def one_strip(part: slice) -> None:
            core.kernel_values(
                self._compiled,
                *self._own,
                rows,
                *self._own,
                columns[part],
                out=out,
                places=places,
                first=part.start,
            )

        self._share_out(one_strip, columns, rows)

    def _add(
        self, columns: Indices, rows: Indices, coef: Floats, out: Doubles, places: Indices
    ) -> None:
        self.n_evaluations += len(rows) * len(columns)

        def one_strip(part: slice) -> None:
            core.add_kernel_sums(
                self._compiled,
                *self._own,
                rows,
                coef,
                *self._own,
                columns[part],
                out=out,
                places=places[part],
            )

        self._share_out(one_strip, columns, rows)

    def _share_out(
        self, one_strip: Callable[[slice], None], columns: Indices, rows: Indices
    ) -> None:
        work = len(rows) * int(self.X.shape[1])
        share_out(one_strip, strips(len(columns), work, self.threads), self.threads)


def add_product(K: Floats, coef: Floats, out: Doubles, threads: int = 1) -> None:
    """``out += K[:, :len(out)].T @ coef``; rows of ``coef`` are often zero in most classes."""

    def one_strip(part: slice) -> None:
        core.add_product(K, coef, out[part], part.start)

    share_out(one_strip, strips(len(out), coef.size, threads), threads)


def strips(n_columns: int, work: int, threads: int) -> list[slice]:
    """Columns cut into parts for calls of compiled code, which multiplies so often for each.

    Cuts are where blocks of compiled code end, so that they change no bit.
    """
    width = min(CALL // max(1, work), -(-n_columns // threads))
    return tiles(n_columns, max(1, -(-width // STRIP)) * STRIP)


def training_kernel(X: Matrix, function: KernelFunction | None, threads: int = 1) -> TrainingKernel:
    """Kernel values of training data, by whatever computes them fastest."""
    if function is not None and function.multiplies_itself(X):
        return DenseKernel(np.ascontiguousarray(X), function, threads)
    return TrainingKernel(X, function)


class SharedKernel(TrainingKernel):
    """The whole Gram matrix, computed once for all who read it, in any thread.

    Where `kernel` has the matrix itself, it is not copied.
    """

    at_hand = True

    def __init__(self, kernel: TrainingKernel) -> None:
        self.X = kernel.X
        self.function = kernel.function
        self.n = kernel.n
        self.dtype = kernel.dtype
        everyone = np.arange(kernel.n)
        self.matrix = kernel.X if self.function is None else kernel.block(everyone, everyone)
        self.n_evaluations = 0 if self.function is None else kernel.n_evaluations

    def diagonal(self) -> Doubles:
        """``k(x_i, x_i)``."""
        return np.diagonal(self.matrix).astype(np.float64)

    def _fill(self, rows: Indices, columns: Indices, out: Floats, places: Indices) -> None:
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            out[places[part], : len(columns)] = self.matrix[rows[part]].take(columns, axis=1)

    def _add(
        self, columns: Indices, rows: Indices, coef: Floats, out: Doubles, places: Indices
    ) -> None:  # most columns are picked afterwards, few before
        few = 2 * len(columns) < self.n
        total = np.zeros((len(columns) if few else self.n, coef.shape[1]))
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            K = np.ascontiguousarray(self.matrix[rows[part]])
            core.add_product(K.take(columns, axis=1) if few else K, coef[part], total)
        out[places] += total if few else total[columns]
