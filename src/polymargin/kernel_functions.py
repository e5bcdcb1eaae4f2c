"""Kernels between examples: scikit-learn's names and parameters, computed in blocks.

A :class:`KernelFunction` compares any two sets of rows; a :class:`TrainingKernel` is bound to the
training data (for ``"precomputed"``: to the given matrix) and yields blocks of its Gram matrix, so
that nobody has to hold all of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse

from polymargin.arrays import Doubles, Floats, Indices, Matrix
from polymargin.core import core
from polymargin.waiting import result_of

KERNELS = ("linear", "rbf", "poly", "sigmoid", "precomputed")
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
        if self.kernel == "linear":
            return K
        if self.kernel == "rbf":
            a_norms = squared_row_norms(A) if a_norms is None else a_norms
            b_norms = squared_row_norms(B) if b_norms is None else b_norms
            core.rbf_from_products(K, a_norms, b_norms, self.gamma)
            return K
        K *= K.dtype.type(self.gamma)
        K += K.dtype.type(self.coef0)
        if self.kernel == "sigmoid":
            return np.tanh(K, out=K)
        return np.power(K, K.dtype.type(self.degree), out=K)

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


SPARSE = 0.4  # a matrix product with fewer nonzeros than this leaves out the others


def add_product(K: Floats, coef: Floats, out: Doubles) -> None:
    """``out += K[:, :len(out)].T @ coef``; rows of ``coef`` are often zero in most classes."""
    if np.count_nonzero(coef) < SPARSE * coef.size:
        core.add_product(K, np.ascontiguousarray(coef), out)
    else:
        out += K[:, : len(out)].T @ coef


COMPILED_TILE = (512, 1024)  # kernel values that stay in a cache while they are used
OTHER_TILE = (2048, 2048)  # a call costs more here
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

    Tiles of kernel values are computed by `threads` threads, each tile alike whoever computes it. A
    kernel that is a Python function is called by one thread only.
    """

    at_hand = False  # whether all kernel values are in memory: there is no use in keeping some

    def __init__(self, X: Matrix, function: KernelFunction | None, threads: int = 1) -> None:
        self.X = X
        self.function = function
        self.n = int(X.shape[0])
        self.dtype = X.dtype
        self.n_evaluations = 0  # kernel values computed so far
        needs_norms = function is not None and function.kernel == "rbf"
        self._norms = squared_row_norms(X) if needs_norms else None
        compiled = not sparse.issparse(X) and function is not None and not callable(function.kernel)
        self._tile = COMPILED_TILE if compiled else OTHER_TILE
        self._threads = threads if compiled else 1
        self._room = threading.local()  # for a tile, where it is written in place
        self._in_place = compiled
        self._diagonal: Doubles | None = None

    def block(
        self,
        rows: Indices,
        columns: Indices,
        out: Floats | None = None,
        places: Indices | None = None,
    ) -> Floats:
        """Kernel values of the examples ``rows`` with the examples ``columns``.

        They are written to the rows ``places`` of ``out``; by default to its first ones.
        """
        out = np.empty((len(rows), len(columns)), self.dtype) if out is None else out
        self._fill(rows, columns, out, np.arange(len(rows)) if places is None else places)
        return out

    def _fill(self, rows: Indices, columns: Indices, out: Floats, places: Indices) -> None:
        for part, of_rows in self._parts(rows, self._tile[0]):

            def one_tile(place: slice, part: slice = part, of_rows: _Rows = of_rows) -> None:
                of_columns = self._part(columns, place)
                out[places[part], place] = self._values(of_rows, of_columns)

            self._share_out(one_tile, len(columns))
        self.n_evaluations += len(rows) * len(columns)

    def times(self, columns: Indices, rows: Indices, coef: Floats) -> Doubles:
        """``K[columns, rows] coef``; the kernel values are not kept."""
        total = np.zeros((len(columns), coef.shape[1]))
        self.add_times(columns, rows, coef, total, np.arange(len(columns)))
        return total

    def add_times(
        self, columns: Indices, rows: Indices, coef: Floats, out: Doubles, places: Indices
    ) -> None:
        """``out[places] += K[columns, rows] coef``, in small tiles."""
        coef = coef.astype(self.dtype)
        few = list(self._parts(rows, self._tile[0]))

        def one_tile(place: slice) -> None:
            of_columns = self._part(columns, place)
            part = np.zeros((len(of_columns[0]), coef.shape[1]))
            for at, of_rows in few:
                add_product(self._values(of_rows, of_columns), coef[at], part)
            out[places[place]] += part

        self._share_out(one_tile, len(columns))
        self.n_evaluations += len(rows) * len(columns)

    def diagonal(self) -> Doubles:
        """``k(x_i, x_i)``."""
        if self.function is None:
            return np.diagonal(self.X).astype(np.float64)
        if self._diagonal is None:
            self._diagonal = self.function.diagonal(self.X)
        return self._diagonal

    def _share_out(self, one_tile: Callable[[slice], None], n_columns: int) -> None:
        """Call a function for every tile of columns."""
        share_out(one_tile, tiles(n_columns, self._tile[1]), self._threads)

    def _parts(self, examples: Indices, size: int) -> Iterator[tuple[slice, _Rows]]:
        for part in tiles(len(examples), size):
            yield part, self._part(examples, part)

    def _part(self, examples: Indices, part: slice) -> _Rows:
        one = examples[part]
        norms = None if self._norms is None else self._norms[one]
        return one, None if self.function is None else self.X[one], norms

    def _values(self, rows: _Rows, columns: _Rows) -> Floats:
        if self.function is None:
            return np.ascontiguousarray(self.X[np.ix_(rows[0], columns[0])])
        shape = (len(rows[0]), len(columns[0]))
        out = self._tile_room(shape) if self._in_place else None
        return self.function.block(rows[1], columns[1], rows[2], columns[2], out=out)

    def _tile_room(self, shape: tuple[int, int]) -> Floats:
        if not hasattr(self._room, "values"):
            self._room.values = np.empty(self._tile[0] * self._tile[1], self.dtype)
        values: Floats = self._room.values
        return values[: shape[0] * shape[1]].reshape(shape)


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
            out[places[part]] = self.matrix[rows[part]].take(columns, axis=1)

    def add_times(
        self, columns: Indices, rows: Indices, coef: Floats, out: Doubles, places: Indices
    ) -> None:
        """As :meth:`TrainingKernel.add_times`: most columns are picked afterwards, few before."""
        few = 2 * len(columns) < self.n
        total = np.zeros((len(columns) if few else self.n, coef.shape[1]))
        coef = coef.astype(self.dtype)
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            K = self.matrix[rows[part]]
            add_product(K.take(columns, axis=1) if few else K, coef[part], total)
        out[places] += total if few else total[columns]
