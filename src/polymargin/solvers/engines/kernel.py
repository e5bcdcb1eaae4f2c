"""The engine of kernel machines: working sets of many examples, solved exactly.

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

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from polymargin.arrays import Doubles, Floats, Indices, Mask
from polymargin.core import core
from polymargin.kernel_functions import add_product
from polymargin.problem import KernelProblem
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.engines.base import Engine, Seen
from polymargin.solvers.engines.row_cache import MemberGram, RowCache
from polymargin.solvers.solution import (
    DualSolution,
    best_factor,
    check_start,
    feasible_block,
    signed_dual,
)
from polymargin.solvers.state import check_memory, exported_dual, import_dual

if TYPE_CHECKING:
    from polymargin.solvers.kernel import KernelSolver

NEW_EXAMPLES = 512  # per round, or as many as there are support patterns
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
SAFE = 0.5  # or when its margins have room for this part of what its scores moved in a round
MOVING = 0.1  # and the gap is above this: later what moves is small, and they would come and go,
WORTH_SHRINKING = 0.7  # when what stays is at most this part of the columns,
LONGEST_SHRUNK = 10  # and comes back after so many: to be left out may have been wrong
SETS_OF_ALL = 8  # for sets of a given size, so many hold all examples: they count as a round


class KernelEngine(Engine[sparse.csr_array]):
    """Rounds over working sets of a kernel problem; `cache_bytes` are for kept kernel rows."""

    last_is_best = True

    def __init__(
        self,
        problem: KernelProblem,
        settings: KernelSolver,
        rng: np.random.Generator,
        cache_bytes: int,
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.rng = rng
        self.cache_bytes = cache_bytes
        self.n_rounds = 0
        self.tolerance = 0.0  # the relative gap to reach
        self.consistent = True  # whether the scores belong to the dual
        self.left_out = 0.0  # what examples left out had of the primal, when they were
        self.mark = (0, np.inf, -np.inf)  # the last progress: when, gap, dual
        self.all = np.flatnonzero(problem.c > 0)  # the others are absent
        check_memory(problem.loss, len(self.all), problem.n_classes, np.dtype(np.float64))
        diagonal = np.ascontiguousarray(problem.kernel.diagonal())
        _check_diagonal(diagonal)
        self.blocks = core.KernelBlocks(
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

    def start(self, start: DualSolution | None) -> None:
        """Take over a dual, scaled to the best feasible point on its ray."""
        if start is None:
            return
        check_start(self.problem, start)
        block = feasible_block(self.problem.c, start.block, start.c)
        import_dual(self.blocks, block, np.dtype(np.float64))
        self._rebuild(self.all)
        self._attend(self.all)
        factor = best_factor(1.0, self.blocks.dual_sum(), self._measure())
        import_dual(self.blocks, (block * factor).tocsr(), np.dtype(np.float64))
        self.scores *= factor
        self._measure()

    # --- the examples attended to -----------------------------------------------------------------

    def _attend(self, active: Indices, cache: RowCache | None = None) -> None:
        """Keep scores, shares and kernel columns of these examples only."""
        self.active = active
        self.whole = len(active) == len(self.all)
        if self.whole:
            self.left_out = 0.0
        few_at_a_time = self.settings.working_set != "auto"
        worth_keeping = few_at_a_time or not self.problem.kernel.cheap
        kept_bytes = int(self.cache_bytes * (1 - GRAM_SHARE)) if worth_keeping else 0
        self.cache = cache or RowCache(self.problem.kernel, active, kept_bytes)
        self.scores = self.F if len(active) == len(self.F) else self.F[active]
        self.loss = np.empty(len(active))
        self.share = np.empty(len(active))
        self.idle = np.zeros(len(active), np.int32)
        self.moved = np.full(len(active), np.inf)  # by how much a score has, in the last round
        self.attended = self.n_rounds

    def _shrink(self) -> None:
        settled = self.idle >= IDLE_ROUNDS * self.sets_per_round
        if self.certificate.gap > MOVING:
            settled |= self._far_away()
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

    def _far_away(self) -> Mask:
        """Who has no dual variables, and would have no loss after half a round like the last."""
        far: Mask = (self.loss == 0) & np.isfinite(self.moved) & ~self._are_support()
        rows = np.flatnonzero(far)
        room = SAFE * self.moved[rows]
        own = (np.arange(len(rows)), self.problem.y[self.active[rows]])
        scores = self.scores[rows] + room[:, None]
        scores[own] -= 2 * room
        loss, share = np.empty(len(rows)), np.empty(len(rows))
        self.blocks.evaluate(scores, self.active[rows], loss, share)
        far[rows] = loss == 0
        return far

    def _are_support(self) -> Mask:
        """Which of those attended to have dual variables."""
        counts = np.empty(self.problem.kernel.n, np.int64)
        self.blocks.dual_counts(counts)
        has: Mask = counts > 0
        return has[self.active]

    def _store(self) -> None:
        if self.scores is not self.F:
            self.F[self.active] = self.scores

    def _wake(self) -> None:
        """Attend to all examples again, with the scores of the others computed anew."""
        self._store()
        self._rebuild(np.setdiff1d(self.all, self.active, assume_unique=True))
        self._attend(self.all)
        self._measure()

    def _rebuild(self, rows: Indices) -> None:
        """``F = K A`` for some examples."""
        a = signed_dual(self.model(copy=False), self.problem.y, coupled=self.problem.loss.coupled)
        support = np.flatnonzero(np.diff(a.indptr))
        self.F[rows] = self.problem.kernel.times(rows, support, a[support].toarray())

    # --- rounds -----------------------------------------------------------------------------------

    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """Solve a working set; leave out those who have settled before, or let them come back."""
        self.tolerance = goal / self.certificate.primal if self.certificate.primal > 0 else 0.0
        if self.settings.shrinking and self.n_rounds > 0:
            self._shrink()
        shrunk_for = self.n_rounds - self.attended
        if not self.whole and shrunk_for >= LONGEST_SHRUNK * self.sets_per_round:
            self._wake()
        self._round()
        return Seen(
            len(self.active),
            gap=self.certificate.gap,
            certificate=self.certificate,
            provisional=not self.whole,
            stalled=self._stalled(),
        )

    def _stalled(self) -> bool:
        """Whether gap and dual have stood still for long: rounding allows no better ones."""
        since, lowest, dual = self.mark
        now, gap = self.certificate, self.certificate.gap
        if gap < 0.99 * lowest or now.dual - dual > 0.01 * now.difference:
            self.mark = (self.n_rounds, min(gap, lowest), max(now.dual, dual))
            return False
        most = max(STALL_ROUNDS, 50 * len(self.active) // self._largest_set())
        return self.n_rounds - since > most

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
            stop=max(settings.inner_stop, EARLY[1] if self.certificate.gap > EARLY[0] else 0.0),
            enough=ENOUGH * self.tolerance * self.certificate.primal,
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
        weights = np.ascontiguousarray(change.T, S.dtype)
        add_product(self.gram.matrix, weights, own, self.problem.kernel.threads)
        added[positions] = own
        self.scores += added
        self.moved = np.abs(added).max(axis=1)
        self.consistent = True
        self.n_rounds += 1
        self._measure()

    def _largest_set(self) -> int:
        """How many examples a working set may have."""
        if self.settings.working_set != "auto":
            return int(self.settings.working_set)
        budget = self.cache_bytes * GRAM_SHARE / self.problem.kernel.dtype.itemsize
        return max(16, int(np.sqrt(budget)))

    def _choose(self, most: int) -> Indices:
        """Positions of the working set, ``most`` of them at most; ties at random."""
        key = self.share * (1.0 + 1e-3 * self.rng.random(len(self.share)))
        if self.settings.working_set != "auto":
            return _largest(key, np.flatnonzero(key > 0), most)
        support = self._are_support()
        new = min(max(NEW_EXAMPLES, int(support.sum())), most // 2)
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
        primal = 0.5 * norm + total + self.left_out
        self.certificate = Certificate(primal, primal - missing)
        quiet = self.share <= 0.1 * self.tolerance * max(primal, 0.0) / len(self.share)
        self.idle[quiet] += 1
        self.idle[~quiet] = 0
        return norm

    # --- what it is worth ------------------------------------------------------------------------

    @property
    def known(self) -> Certificate | None:
        """The certificate, which the shares give."""
        return self.certificate if self.whole else None

    def certify(self) -> Certificate:
        """Objectives with all examples attended to."""
        if not self.consistent:  # interrupted between the dual and its scores
            self._rebuild(self.all)
            self._attend(self.all)
            self.consistent = True
            self._measure()
        elif not self.whole:
            self._wake()
        return self.certificate

    def mend(self) -> None:
        """The dual is whole; whatever else there is follows from it."""
        self.consistent = False

    def see_everyone(self) -> None:
        """Attend to all examples."""
        if not self.whole:
            self._wake()

    def model(self, *, copy: bool) -> sparse.csr_array:
        """The dual."""
        pb = self.problem
        return exported_dual(self.blocks, pb.kernel.n, pb.n_classes, np.dtype(np.float64))


def _largest(key: Floats, among: Indices, size: int) -> Indices:
    """The members of ``among`` with the largest keys, ``size`` at most, in no order."""
    if len(among) <= size:
        return among
    return among[np.argpartition(-key[among], size - 1)[:size]]


def _check_diagonal(diagonal: Doubles) -> None:
    if not np.isfinite(diagonal).all():
        raise ValueError("The kernel of an example with itself is NaN or infinite.")
    if (diagonal < 0).any():
        raise ValueError(
            "The kernel of an example with itself is negative: the kernel is not positive "
            "semi-definite. Use another kernel or other parameters."
        )
