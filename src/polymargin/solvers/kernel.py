"""The batch solver for kernel machines: working sets of many examples, solved exactly.

The scores ``F = K A`` of all examples are kept. Each round takes the support patterns and the
examples with the largest shares of the duality gap besides, makes exact block updates within this
set on its Gram matrix (compiled), and adds ``K[:, set] change`` to F in products, with kernel
rows from a cache. The shares add up to the duality gap, so every round ends with a certificate.
Support patterns stay in the set because a set without them undoes what the last one did.

Shrinking: examples whose share has been nothing for a while leave the columns of the kernel rows.
Before the solver stops they come back, with scores computed anew. Examples of cost zero are never
attended to.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from polymargin._kernels import kernels
from polymargin.kernel_functions import TrainingKernel, add_product
from polymargin.losses import Loss
from polymargin.solvers.history import History
from polymargin.solvers.progress import Progress, Record, to_all_listeners
from polymargin.solvers.row_cache import MemberGram, RowCache
from polymargin.solvers.solution import DualSolution, feasible_start

NEW_EXAMPLES = 512  # per round, or half as many as there are support patterns
GRAM_SHARE = 0.5  # of the cache, for the working set's own Gram matrix
ENOUGH = 0.4  # of the tolerance: a working set need not be solved beyond it
EARLY = (0.5, 0.2)  # above this gap, a set is done at this part of what its first pass found
STALL_ROUNDS = 100
FULL_EVERY = 5  # of the passes over a set one visits everybody, the others leave out
IDLE = 0.1  # those with less than this part of the mean share
NEIGHBOURS = 160  # examples of a set that are solved together, as the Gram matrix of so many
NEIGHBOUR_PASSES = 10  # stays in a cache: in so many passes at most,
NEIGHBOUR_STOP = 0.1  # until one finds this part of the gap the first one found
IDLE_ROUNDS = 3  # an example is left out after so many rounds without a share of the gap,
WORTH_SHRINKING = 0.7  # when what stays is at most this part of the columns,
LONGEST_SHRUNK = 10  # and comes back after so many: to be left out may have been wrong
SETS_OF_ALL = 8  # for sets of a given size, so many hold all examples: they count as a round


@dataclass(frozen=True)
class KernelProblem:
    """A kernel machine to train: ``scores = K A``.

    Attributes
    ----------
    kernel : TrainingKernel
    y : int32 ndarray of shape (n,)
    c : float64 ndarray of shape (n,)
    loss : Loss
    n_classes : int
    """

    kernel: TrainingKernel
    y: NDArray[np.int32]
    c: NDArray[np.float64]
    loss: Loss
    n_classes: int

    def __post_init__(self) -> None:
        self.loss.check_n_classes(self.n_classes)


class KernelSolver(BaseEstimator):
    """Expert settings of the kernel machine's solver.

    Parameters
    ----------
    working_set : "auto" or int, default="auto"
        "auto": the support patterns and some more. An integer: so many examples, those that violate
        most. 1 is the classical method, which takes the single most violating example next (MCSVM;
        Crammer and Singer 2001).
    inner_passes : int, default=100
        Passes over a working set at most.
    inner_stop : float, default=0.05
        A working set is done when a pass finds this part of the gap its first one found; sooner
        while most of the gap is outside the sets.
    shrinking : bool, default=True
        Leave out examples that have settled.
    restricted, restricted_tol :
        As in :class:`polymargin.DualSolver`.
    time_limit : float or None, default=None
        Seconds after which to stop.
    """

    def __init__(
        self,
        *,
        working_set: Literal["auto"] | int = "auto",
        inner_passes: int = 100,
        inner_stop: float = 0.05,
        shrinking: bool = True,
        restricted: str = "auto",
        restricted_tol: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.working_set = working_set
        self.inner_passes = inner_passes
        self.inner_stop = inner_stop
        self.shrinking = shrinking
        self.restricted = restricted
        self.restricted_tol = restricted_tol
        self.time_limit = time_limit

    def solve(
        self,
        problem: KernelProblem,
        *,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        cache_bytes: int = 200 * 2**20,
        random_state: Any = None,
        verbose: int = 0,
        start: DualSolution | None = None,
        progress: Progress | None = None,
    ) -> KernelSolution:
        """Solve ``problem`` to a relative duality gap of ``tol``.

        Parameters
        ----------
        problem : KernelProblem
        tol : float
        max_iter : int
            Working sets at most.
        cache_bytes : int
            For kernel rows that are kept.
        random_state : int, RandomState or None
        verbose : int
            Print a line per round.
        start : DualSolution or None
            Warm start from the solution of the same data with other weights.
        progress : callable or None
            Called after every round with a dict, as by :meth:`DualSolver.solve`.

        Returns
        -------
        KernelSolution
            Also on Ctrl-C, then with status ``"interrupted"``.
        """
        self._check()
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        run = _Run(self, problem, tol, np.random.default_rng(seed), cache_bytes, verbose)
        try:
            run.start(start)
            run.loop(max_iter, progress)
        except KeyboardInterrupt:
            run.status = "interrupted"
        return run.solution()

    def _check(self) -> None:
        size = self.working_set
        if size != "auto" and not (isinstance(size, int | np.integer) and size >= 1):
            raise ValueError(f'working_set must be "auto" or a positive integer, got {size!r}.')
        if not self.inner_passes >= 1:
            raise ValueError(f"inner_passes must be at least 1, got {self.inner_passes!r}.")
        if not 0 <= self.inner_stop < 1:
            raise ValueError(f"inner_stop must lie in [0, 1), got {self.inner_stop!r}.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit must be positive seconds or None, got {self.time_limit}.")


@dataclass(kw_only=True)
class KernelSolution(DualSolution):
    """A kernel machine's dual and its certificate.

    Attributes
    ----------
    n_kernel_evaluations : int
    """

    n_kernel_evaluations: int


class _Run:
    """One call of :meth:`KernelSolver.solve`."""

    def __init__(
        self,
        settings: KernelSolver,
        problem: KernelProblem,
        tol: float,
        rng: np.random.Generator,
        cache_bytes: int,
        verbose: int,
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.tol = tol
        self.rng = rng
        self.cache_bytes = cache_bytes
        self.began = time.perf_counter()
        self.status = "max_iter"
        self.n_iter = 0
        self.consistent = True  # whether the scores belong to the dual
        self.left_out = 0.0  # what examples left out had of the primal, when they were
        self.mark = (0, np.inf, -np.inf)  # the last progress: when, gap, dual
        self.all = np.flatnonzero(problem.c > 0)  # the others are absent
        diagonal = np.ascontiguousarray(problem.kernel.diagonal())
        _check_diagonal(diagonal)
        self.blocks = kernels.KernelBlocks(
            problem.loss.compiled,
            n_classes=problem.n_classes,
            y=np.ascontiguousarray(problem.y, np.int32),
            c=np.ascontiguousarray(problem.c, np.float64),
            squared_norms=diagonal,
            threshold=np.zeros(problem.kernel.n),
            gap=np.zeros(problem.kernel.n),
        )
        self.blocks.set_method(
            *problem.loss.check_restricted(settings.restricted, settings.restricted_tol)
        )
        self.F = np.zeros((problem.kernel.n, problem.n_classes))
        self.gram = MemberGram(problem.kernel)
        self.sets_per_round = 1
        if settings.working_set != "auto":
            self.sets_per_round = max(1, len(self.all) // (SETS_OF_ALL * settings.working_set))
        self._attend(self.all)
        self._measure()
        self.history = History("set", verbose)

    # --- the examples attended to -----------------------------------------------------------------

    def _attend(self, active: NDArray[np.int64], cache: RowCache | None = None) -> None:
        """Keep scores, shares and kernel columns of these examples only."""
        self.active = active
        self.whole = len(active) == len(self.all)
        if self.whole:
            self.left_out = 0.0
        kept_bytes = int(self.cache_bytes * (1 - GRAM_SHARE))
        self.cache = cache or RowCache(self.problem.kernel, active, kept_bytes)
        self.scores = self.F if len(active) == len(self.F) else self.F[active]
        self.loss = np.empty(len(active))
        self.share = np.empty(len(active))
        self.idle = np.zeros(len(active), np.int32)
        self.attended = self.n_iter

    def _shrink(self) -> None:
        settled = self.idle >= IDLE_ROUNDS * self.sets_per_round
        stay = np.flatnonzero(~settled)
        if len(stay) > WORTH_SHRINKING * len(self.active):
            return
        self._store()
        gone = np.flatnonzero(settled)
        loss, share = np.empty(len(gone)), np.empty(len(gone))
        norm = self.blocks.evaluate(self.scores[gone], self.active[gone], loss, share)
        self.left_out += 0.5 * float(norm) + float(loss.sum())
        self.cache.narrow(stay)
        self._attend(self.active[stay], self.cache)
        self.gram.keep(self.active)
        self._measure()

    def _store(self) -> None:
        if self.scores is not self.F:
            self.F[self.active] = self.scores

    def _wake(self) -> None:
        """Attend to all examples again, with the scores of the others computed anew."""
        self._store()
        self._rebuild(np.setdiff1d(self.all, self.active, assume_unique=True))
        self._attend(self.all)
        self._measure()

    def _rebuild(self, rows: NDArray[np.int64]) -> None:
        """``F = K A`` for some examples."""
        a = self._solution_rows()
        support = np.flatnonzero(np.diff(a.indptr))
        self.F[rows] = self.problem.kernel.times(rows, support, a[support].toarray())

    def _solution_rows(self) -> sparse.csr_array:
        return self.solution_of(float("nan"), float("nan")).dual_coef()

    # --- rounds -----------------------------------------------------------------------------------

    def start(self, start: DualSolution | None) -> None:
        """Take over a dual, scaled to the best feasible point on its ray."""
        if start is None:
            return
        self._import(start.block)
        self._rebuild(self.all)
        self._attend(self.all)
        norm = self._measure()
        factor = feasible_start(self.problem.c, start, norm)
        self._import((start.block * factor).tocsr())
        self.scores *= factor
        self._measure()

    def _import(self, block: sparse.csr_array) -> None:
        self.blocks.dual_import(
            block.indptr.astype(np.int64, copy=False),
            block.indices.astype(np.int32, copy=False),
            block.data.astype(np.float64, copy=False),
        )

    def loop(self, max_iter: int, progress: Progress | None) -> None:
        """Rounds until the gap is certified or a limit is reached."""
        progress = to_all_listeners(progress)
        while True:
            if self.gap <= self.tol:
                if self.whole:
                    self.status = "converged"
                    break
                self._wake()
                continue
            if self.n_iter >= max_iter or self._out_of_time() or self._stalled():
                break
            shrunk_for = self.n_iter - self.attended
            if not self.whole and shrunk_for >= LONGEST_SHRUNK * self.sets_per_round:
                self._wake()
            self._round()
            if progress is not None:
                progress(self._record())
            if self.settings.shrinking and self.gap > self.tol:
                self._shrink()

    def _stalled(self) -> bool:
        """Whether gap and dual have stood still for long: rounding allows no better ones."""
        since, lowest, dual = self.mark
        if self.gap < 0.99 * lowest or self.dual - dual > 0.01 * self.gap * self.primal:
            self.mark = (self.n_iter, min(self.gap, lowest), max(self.dual, dual))
        elif self.n_iter - since > max(STALL_ROUNDS, 50 * len(self.active) // self._largest_set()):
            self.status = "stalled"
        return self.status == "stalled"

    def _round(self) -> None:
        most = self._largest_set()
        self.gram.change_to(self.active[self._choose(most)], most)
        chosen = self.gram.members
        positions = np.searchsorted(self.active, chosen)
        S = np.ascontiguousarray(self.scores[positions].T.astype(self.problem.kernel.dtype))
        change = np.zeros(S.shape)
        settings = self.settings
        self.consistent = False
        self.blocks.solve_set(
            chosen,
            self.gram.matrix,
            S,
            change,
            passes=settings.inner_passes,
            stop=max(settings.inner_stop, EARLY[1] if self.gap > EARLY[0] else 0.0),
            enough=ENOUGH * self.tol * self.primal,
            full_every=FULL_EVERY,
            idle=IDLE,
            neighbours=NEIGHBOURS,
            neighbour_passes=NEIGHBOUR_PASSES,
            neighbour_stop=NEIGHBOUR_STOP,
            seed=int(self.rng.integers(2**62)),
        )
        moved = np.flatnonzero(change.any(axis=0))
        others = np.ones(len(self.active), bool)
        others[positions] = False
        added = self.cache.times(chosen[moved], change[:, moved].T, np.flatnonzero(others))
        own = np.zeros((len(chosen), len(change)))
        add_product(self.gram.matrix, np.ascontiguousarray(change.T, S.dtype), own)
        added[positions] = own
        self.scores += added
        self.consistent = True
        self.n_iter += 1
        self._measure()
        self.history.add(
            self.n_iter, self._elapsed(), self.primal, self.dual, self.gap, len(self.active)
        )

    def _largest_set(self) -> int:
        """How many examples a working set may have."""
        if self.settings.working_set != "auto":
            return int(self.settings.working_set)
        budget = self.cache_bytes * GRAM_SHARE / self.problem.kernel.dtype.itemsize
        return max(16, int(np.sqrt(budget)))

    def _choose(self, most: int) -> NDArray[np.int64]:
        """Positions of the working set, ``most`` of them at most; ties at random."""
        key = self.share * (1.0 + 1e-3 * self.rng.random(len(self.share)))
        if self.settings.working_set != "auto":
            return _largest(key, np.flatnonzero(key > 0), most)
        counts = np.empty(self.problem.kernel.n, np.int64)
        self.blocks.dual_counts(counts)
        support = counts[self.active] > 0
        new = min(max(NEW_EXAMPLES, int(support.sum()) // 2), most // 2)
        fresh = _largest(key, np.flatnonzero((key > 0) & ~support), new)
        members = _largest(key, np.flatnonzero(support), most - len(fresh))
        return np.concatenate([members, fresh])

    def _measure(self) -> float:
        """Objectives from the scores; returns ``||W||^2``."""
        norm = float(self.blocks.evaluate(self.scores, self.active, self.loss, self.share))
        total, missing = float(self.loss.sum()), float(self.share.sum())
        if not np.isfinite(norm + total):
            raise ValueError("The objective overflowed: scale the features or use a smaller C.")
        if self.whole and norm < -1e-6 * (abs(norm) + total):
            raise ValueError(
                "The kernel is not positive semi-definite on these data (||W||^2 came out as "
                f"{norm:.3g}): the problem is not convex. Use another kernel or other parameters."
            )
        self.primal = 0.5 * norm + total + self.left_out
        self.dual = self.primal - missing
        self.gap = missing / self.primal if self.primal > 0 else 0.0
        quiet = self.share <= 0.1 * self.tol * max(self.primal, 0.0) / len(self.share)
        self.idle[quiet] += 1
        self.idle[~quiet] = 0
        return norm

    def _record(self) -> Record:
        return {
            "pass": self.n_iter,
            "time": self._elapsed(),
            "gap": self.gap,
            "certified_gap": self.gap if self.whole else float("nan"),
            "n_awake": len(self.active),
            "tol": self.tol,
        }

    def _elapsed(self) -> float:
        return time.perf_counter() - self.began

    def _out_of_time(self) -> bool:
        limit = self.settings.time_limit
        if limit is None or self._elapsed() < limit:
            return False
        self.status = "time_limit"
        return True

    def solution(self) -> KernelSolution:
        """The dual as it stands, certified."""
        if not self.consistent:  # interrupted between the dual and its scores
            self._rebuild(self.all)
            self._attend(self.all)
            self._measure()
        elif not self.whole:
            self._wake()
        if self.gap <= self.tol and self.status != "interrupted":
            self.status = "converged"  # as all examples show, though those attended to did not
        return self.solution_of(self.primal, self.dual)

    def solution_of(self, primal: float, dual: float) -> KernelSolution:
        """The dual with these objective values."""
        pb = self.problem
        indptr = np.zeros(pb.kernel.n + 1, np.int64)
        self.blocks.dual_counts(indptr[1:])
        np.cumsum(indptr, out=indptr)
        classes = np.empty(indptr[-1], np.int32)
        values = np.empty(indptr[-1])
        self.blocks.dual_export(classes, values)
        block = sparse.csr_array((values, classes, indptr), shape=(pb.kernel.n, pb.n_classes))
        block.sort_indices()
        return KernelSolution(
            primal=primal,
            dual=dual,
            gap=self.gap,
            n_iter=self.n_iter,
            history=self.history.arrays(),
            status=self.status,
            block=block,
            c=pb.c,
            y=pb.y,
            loss=pb.loss,
            n_kernel_evaluations=pb.kernel.n_evaluations,
        )


def _largest(key: NDArray, among: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The members of ``among`` with the largest keys, ``size`` at most, in no order."""
    if len(among) <= size:
        return among
    return among[np.argpartition(-key[among], size - 1)[:size]]


def _check_diagonal(diagonal: NDArray[np.float64]) -> None:
    if not np.isfinite(diagonal).all():
        raise ValueError("The kernel of an example with itself is NaN or infinite.")
    if (diagonal < 0).any():
        raise ValueError(
            "The kernel of an example with itself is negative: the kernel is not positive "
            "semi-definite. Use another kernel or other parameters."
        )
