"""What changes while a problem is solved: the weights, the sparse dual, and per-example marks.

With the proximal term of the accelerated outer loop (see :mod:`polymargin.solvers.acceleration`)
the weights are ``W = (kappa Y + V) / (1 + kappa)`` with ``V = sum_i x_i a_i^T``; without it
``kappa = 0`` and ``W = V``.

The constant feature couples all examples: every visit moves its weights, so it may move the others
only half as far where it is as long as a row. It therefore has a strength of its own, ``kappa_0``,
by which a sweep sees ``rho = (1 + kappa) / (1 + kappa_0)`` of its square; the outer loop moves it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from polymargin.arrays import Codes, Doubles, Floats, Indices
from polymargin.core import core
from polymargin.data.rows import Arranged
from polymargin.losses import Loss
from polymargin.problem import Problem
from polymargin.solvers import audit
from polymargin.solvers.certificate import squared_norm
from polymargin.solvers.checkpoint import Tree

_NONE = np.empty(0)
_REBUILD_BYTES = 256 * 2**20
_TILE = 512  # features that are turned at a time
CACHE_LINE = 64
ADDED_UP = 1e-14  # what rounding leaves of a sum, in parts of its terms
HUGE_PAGE = 2 * 2**20
CONSTANT_SHARE = 0.05  # of the rows' mean square, that sweeps see of the constant feature's
LARGEST_CONSTANT = 1e6  # its square to the rows': above it, what is left of a sum is rounding


def aligned_zeros(shape: tuple[int, int], dtype: DTypeLike) -> Floats:
    """Zeros whose rows start at a cache line (when a row's size is a multiple of one).

    Large ones start at a huge page: NumPy asks for such pages, but the system gives only whole
    ones, and sweeps jump from row to row.
    """
    dtype = np.dtype(dtype)
    size = shape[0] * shape[1]
    line = HUGE_PAGE if size * dtype.itemsize >= 2 * HUGE_PAGE else CACHE_LINE
    room = np.zeros(size + line // dtype.itemsize, dtype)
    skip = (-room.ctypes.data) % line // dtype.itemsize
    return room[skip : skip + size].reshape(shape)


def available_memory() -> float:
    """Bytes that a program may take now, as far as the system says."""
    try:
        with open("/proc/meminfo") as file:
            found = next(line.split()[1] for line in file if line.startswith("MemAvailable"))
        return 1024.0 * int(found)
    except (OSError, StopIteration):
        return math.inf


def check_memory(loss: Loss, n: int, n_classes: int, dtype: np.dtype) -> None:
    """Raise ``MemoryError`` before a dense dual of `n` examples would need more than there is."""
    if not loss.dense_dual:
        return
    lanes = core.vector_bytes // dtype.itemsize  # rows are whole vectors
    needed = float(n) * -(-n_classes // lanes) * core.vector_bytes
    there = available_memory()
    if needed > there:
        raise MemoryError(
            f"The dual of loss={loss.name!r} is dense: {n} examples of {n_classes} classes need "
            f"{needed / 2**30:.3g} GB, and there are {there / 2**30:.3g} GB. Use float32 (half of "
            "it), fewer examples, partial_fit, or a hinge loss, whose dual is sparse."
        )


def constant_share(problem: Problem) -> float:
    """What sweeps see of the square of the constant feature, where there is one.

    All of it where the dual is dense: entropies are so curved that a few passes do, fewer than the
    outer loop takes to move the constant's weights.
    """
    chosen, square = problem.visited, problem.intercept_scaling**2
    if not problem.has_intercept or len(chosen) == 0 or problem.loss.dense_dual:
        return 1.0
    mean = float(np.mean(problem.squared_norms[chosen])) - square
    if not mean * LARGEST_CONSTANT >= square:
        return 1.0
    return min(1.0, CONSTANT_SHARE * mean / square)


class SweepTotals(NamedTuple):
    """Sums over the visits of a sweep.

    ``gap`` and ``loss`` are the shares of the gap and ``c_i loss_i`` before each update; ``dual``
    is the change of the blocks' part of the dual; ``entries`` counts the nonzeros of the dual rows
    visited.
    """

    gap: float
    loss: float
    dual: float
    moved: int
    entries: int

    def __add__(self, other: SweepTotals) -> SweepTotals:  # type: ignore[override]
        return SweepTotals(*map(operator.add, self, other))


class Pass(NamedTuple):
    """The examples to visit, in order: with all classes, or with those of their dual rows only."""

    arranged: Arranged
    full: bool

    @property
    def order(self) -> Indices:
        """Those examples."""
        return self.arranged.order


class State:
    """The solver's working state for one problem."""

    def __init__(self, problem: Problem, n_jobs: int = 1) -> None:
        self.problem = problem
        self.n_jobs = n_jobs  # threads
        n, dtype = problem.n_examples, problem.rows.dtype
        check_memory(problem.loss, len(problem.visited), problem.n_classes, dtype)
        self.dtype = dtype
        lanes = core.vector_bytes // dtype.itemsize
        self.ld = -(-problem.n_classes // lanes) * lanes
        self._c = np.array(problem.c, np.float64)  # the engine reads it: see set_cost
        # features that occur in no example may have no row in W; None: all have one
        self._rows, self.features = problem.rows.layout(self.ld)
        self.W = self.new_weights()  # a row per feature and one for the constant, padded classes
        self.kappa = 0.0  # strength of the proximal term
        self._rho = constant_share(problem)
        self.Y: Floats | None = None  # its centre; None without one
        self.gap = np.zeros(n)  # each example's share when it was last looked at
        self.threshold = np.zeros(n, dtype)
        self._violation: Doubles | None = None
        self._engine = core.linear_engine(
            self._rows,
            problem.loss.compiled,
            intercept_scaling=problem.intercept_scaling,
            n_classes=problem.n_classes,
            y=np.ascontiguousarray(problem.y, np.int32),
            c=self._c,
            squared_norms=problem.squared_norms,
            threshold=self.threshold,
            gap=self.gap,
        )

    def new_weights(self) -> Floats:
        """A zero array of the shape of W."""
        pb = self.problem
        return aligned_zeros((self._rows.d + pb.has_intercept, self.ld), self.dtype)

    def split(self, weights: Floats) -> tuple[Floats, Floats]:
        """``coef`` (classes x all features) and ``intercept`` of an array of the shape of W."""
        pb = self.problem
        rows = len(weights) - pb.has_intercept
        coef = np.zeros((pb.n_classes, pb.n_features), weights.dtype)
        for first in range(0, rows, _TILE):  # a part that stays in the cache
            part = slice(first, min(first + _TILE, rows))
            at = part if self.features is None else self.features[part]
            coef[:, at] = weights[part, : pb.n_classes].T
        if not pb.has_intercept:
            return coef, np.zeros(pb.n_classes, coef.dtype)
        return coef, weights[rows, : pb.n_classes] * coef.dtype.type(pb.intercept_scaling)

    def joined(self, coef: Floats, intercept: Floats) -> Floats:
        """The inverse of `split`."""
        pb, weights = self.problem, self.new_weights()
        k, rows = pb.n_classes, len(weights) - pb.has_intercept
        if coef.shape != (k, pb.n_features) or intercept.shape != (k,):
            raise ValueError("weights of another problem")
        weights[:rows, :k] = (coef if self.features is None else coef[:, self.features[:rows]]).T
        if pb.has_intercept:
            weights[rows, :k] = intercept / pb.intercept_scaling
        return weights

    def set_cost(self, problem: Problem) -> None:
        """Go on with the same problem at other costs; the dual has to be made feasible for it."""
        self.problem = problem
        self._c[:] = problem.c

    @property
    def scale(self) -> float:
        """``1 / (1 + kappa)``: what curvature and updates of W are multiplied with."""
        return 1.0 / (1.0 + self.kappa)

    @property
    def rho(self) -> float:
        """What sweeps see of the constant feature's square; all of it without an outer loop."""
        return self._rho if self.Y is not None and self.kappa > 0 else 1.0

    @property
    def strengths(self) -> list[tuple[slice, float]]:
        """Rows of the weights, and their ``kappa``."""
        if self.rho == 1.0:
            return [(slice(None), self.kappa)]
        last = len(self.W) - 1
        kappa_0 = (1.0 + self.kappa) / self.rho - 1.0
        return [(slice(0, last), self.kappa), (slice(last, None), kappa_0)]

    def pieces(self, order: Arranged | None = None) -> Iterator[Indices]:
        """An order (None: everyone), part by part; the engine holds the rows of the part."""
        for piece in self.problem.rows.pieces(order, self.gap):
            if piece.compiled is not None:
                self._engine.hold(piece.compiled, piece.examples)
            yield piece.order

    def sweep(self, order: Indices, mode: str = "rows", *, n_jobs: int = 1) -> SweepTotals:
        """Visit the examples of ``order``, whose rows the engine holds: exact block updates.

        Modes: "rows", one at a time; "blocked", in blocks (the same iterates up to rounding), on
        `n_jobs` threads; "listed", only the classes in each example's dual row.
        """
        return SweepTotals(*self._engine.sweep(self.W, order, mode, self.scale, self.rho, n_jobs))

    def cut_classes(self, ranges: int) -> None:
        """Cut the classes into ranges that threads can own; only where they are not coupled."""
        self._engine.cut_classes(ranges)

    def set_method(self, name: str, tol: float) -> None:
        """How the restricted problems are solved."""
        self._engine.set_method(name, tol)

    def track_violation(self) -> Doubles:
        """The array that every visit from now on writes the example's violation to."""
        if self._violation is None:
            self._violation = np.zeros(self.problem.n_examples)
            self._engine.track_violation(self._violation)
        return self._violation

    def free_examples(self) -> Indices:
        """Examples with a dual variable strictly between its bounds."""
        free = np.empty(self.problem.n_examples, bool)
        self._engine.dual_free(free)
        return np.flatnonzero(free)

    def evaluate(
        self,
        W: Floats,
        n_jobs: int = 1,
        *,
        V: Doubles | None = None,
        factors: Doubles = _NONE,
        sums: Doubles = _NONE,
    ) -> Doubles:
        """``c_i loss_i`` of every example at W; refreshes ``gap``.

        What a rebuild adds up is added to `V` at the same time, if one is given, and the losses at
        multiples of W by `factors` to `sums`.
        """
        losses = np.empty(self.problem.n_examples)
        for _ in self.pieces():
            self._engine.evaluate(W, n_jobs, losses, self.gap, factors, sums)
            if V is not None:
                self._engine.rebuild(V, 0, self.problem.n_classes, n_jobs)
        return losses

    def dual_sum(self) -> float:
        """The blocks' part of the dual: ``sum_ij p_ij`` of hinge losses."""
        return self._engine.dual_sum()

    def dual_weights(self) -> Floats:
        """``V = sum_i x_i a_i^T``, from W."""
        if self.Y is None:
            return self.W
        V = self.new_weights()
        for rows, kappa in self.strengths:
            V[rows] = (1.0 + kappa) * self.W[rows] - kappa * self.Y[rows]
        return V

    def set_from_dual(self, V: Floats) -> None:
        """W from this V."""
        if self.Y is None:
            self.W[:] = V
            return
        for rows, kappa in self.strengths:
            self.W[rows] = (kappa * self.Y[rows] + V[rows]) * self.dtype.type(1.0 / (1.0 + kappa))

    def extrapolate(
        self, previous: Floats, mean: Floats, beta: float, blend: float
    ) -> tuple[float, float, float]:
        """The outer step: ``||W||^2``, ``||V||^2`` and ``W.V`` before it."""
        assert self.Y is not None
        total = np.zeros(3)
        for at, kappa in self.strengths:
            W, Y, before, blended = self.W[at], self.Y[at], previous[at], mean[at]
            total += self._engine.extrapolate(
                W, Y, before, blended, kappa, beta, blend, self.n_jobs
            )
        return float(total[0]), float(total[1]), float(total[2])

    def rebuild(self) -> Floats:
        """``V = sum_i x_i a_i^T`` from the dual, accumulated in double, in the dtype of X."""
        V = self.new_weights()
        if self.dtype == np.float64:
            for _ in self.pieces():
                self._engine.rebuild(
                    np.asarray(V, np.float64), 0, self.problem.n_classes, self.n_jobs
                )
            return V
        width = max(1, _REBUILD_BYTES // (8 * max(1, len(V))))
        if not self.problem.rows.is_whole:
            width = self.problem.n_classes  # rather than to read the rows again
        for first in range(0, self.problem.n_classes, width):
            last = min(first + width, self.problem.n_classes)
            block = np.zeros((len(V), last - first))
            for _ in self.pieces():
                self._engine.rebuild(block, first, last, self.n_jobs)
            V[:, first:last] = block
        return V

    def spread_weights(self) -> Floats:
        """V where every ``p_ij`` of a wrong class is ``c_i``; of a coupled loss, rows in memory."""
        V = self.new_weights()
        self._engine.spread_weights(V)
        return V

    def spread_dual(self, share: float) -> None:
        """Set every ``p_ij`` of a wrong class to `share` of ``c_i``, where the dual is dense."""
        self._engine.spread_dual(share)

    def dual_block(self) -> sparse.csr_array:
        """The dual ``p`` as CSR, (n, classes)."""
        pb = self.problem
        return exported_dual(self._engine, pb.n_examples, pb.n_classes, self.dtype)

    def set_dual(self, p: sparse.csr_array) -> None:
        """Take over a dual; W is rebuilt by the caller."""
        import_dual(self._engine, p, self.dtype)

    def copy_dual(self, other: State) -> None:
        """Take over the dual of the same problem in another precision."""
        self._engine.dual_copy(other._engine)

    # --- checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> Tree:
        """Everything that changes; the dual as it is stored, listed zeros included."""
        indptr, classes, values = stored_dual(
            self._engine, self.problem.n_examples, self.dtype, zeros=True
        )
        state: Tree = {"W": self.W, "kappa": self.kappa, "gap": self.gap}
        state["rows"] = self.problem.rows.state_dict()
        state |= {"threshold": self.threshold, "indptr": indptr}
        state |= {"classes": classes, "values": values}
        return state if self.Y is None else state | {"Y": self.Y}

    def load_state_dict(self, state: Tree) -> None:
        """The inverse of `state_dict`; the dual is known to be feasible."""
        k, n = self.problem.n_classes, self.problem.n_examples
        self.kappa = audit.number(state, "kappa", 0.0)
        self.W[:] = audit.weights(state, "W", self.W, k)  # in place: the engine looks at it too
        if self.Y is not None:
            self.Y[:] = audit.weights(state, "Y", self.W, k)
        audit.require(self.Y is not None or self.kappa == 0, "kappa without its centre")
        self._engine.dual_import(state["indptr"], state["classes"], state["values"])
        self._check_weights()
        self.gap[:] = audit.array(state, "gap", np.float64, (n,))
        self.threshold[:] = audit.array(state, "threshold", self.dtype, (n,))
        self.problem.rows.load_state_dict(state["rows"])

    def _check_weights(self) -> None:
        """Raise unless W is that of the dual, but for rounding; certificates believe it.

        In single precision they rebuild it themselves.
        """
        if self.dtype == np.float32:
            return
        centre = self.strengths[-1][1] * (
            0.0 if self.Y is None else math.sqrt(squared_norm(self.Y))
        )
        V, problem = self.rebuild(), self.problem
        room = audit.ROUNDING[8] * (centre + math.sqrt(squared_norm(V)))
        room += ADDED_UP * float(problem.c @ np.sqrt(problem.squared_norms))
        V -= self.dual_weights()
        off = math.sqrt(squared_norm(V))
        audit.require(off <= room, "its weights are not those of its dual")

    def like_weights(self, values: Floats) -> Floats:
        """A copy, aligned as the weights are."""
        weights = self.new_weights()
        weights[:] = values
        return weights


def converted(weights: Floats, to: State) -> Floats:
    """Weights of one precision in the array of another's."""
    n_classes = to.problem.n_classes
    made = to.new_weights()
    made[:, :n_classes] = weights[:, :n_classes]
    return made


def as_shown(weights: Floats, n_classes: int) -> Floats:
    """Weights whose objective is that of the fitted attributes.

    Two classes are shown as one row, the difference: in float32 it would be rounded after the
    certificate. Of opposite weights it is exact. They say the same, with no larger a norm.
    """
    if n_classes != 2 or weights.dtype != np.float32:
        return weights
    made = aligned_zeros(weights.shape, weights.dtype)
    made[:, 1] = 0.5 * (weights[:, 1].astype(np.float64) - weights[:, 0])
    made[:, 0] = -made[:, 1]
    return made


# --- the dual of any compiled engine as CSR -------------------------------------------------------

Blocks: TypeAlias = "core.BlocksF32 | core.BlocksF64"


def stored_dual(
    engine: Blocks, n: int, dtype: np.dtype, *, zeros: bool
) -> tuple[Indices, Codes, Floats]:
    """Row pointers, classes and values, in the order in which rows list them."""
    indptr = np.zeros(n + 1, np.int64)
    engine.dual_counts(indptr[1:], zeros)
    np.cumsum(indptr, out=indptr)
    classes = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1], dtype)
    engine.dual_export(classes, values, zeros)
    return indptr, classes, values


def exported_dual(engine: Blocks, n: int, n_classes: int, dtype: np.dtype) -> sparse.csr_array:
    """The dual ``p`` as CSR, (n, classes)."""
    indptr, classes, values = stored_dual(engine, n, dtype, zeros=False)
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # or SciPy copies the classes, to have one type for both
    p = sparse.csr_array((values, classes, indptr), shape=(n, n_classes))
    p.sort_indices()
    return p


def import_dual(engine: Blocks, p: sparse.csr_array, dtype: np.dtype) -> None:
    """Take over a dual."""
    engine.dual_import(
        p.indptr.astype(np.int64, copy=False),
        p.indices.astype(np.int32, copy=False),
        p.data.astype(dtype, copy=False),
    )
