"""One run of the dual solver: the passes, when to certify, when to stop.

What happens per example is compiled (``src/core``); a run decides per pass: whom to visit
(:mod:`~polymargin.solvers.shrinking`), the outer loop
(:mod:`~polymargin.solvers.acceleration`), and when a certificate
(:mod:`~polymargin.solvers.certificate`) is worth its cost of a pass.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._kernels import kernels
from polymargin.problem import Problem
from polymargin.solvers.acceleration import OuterLoop, initial_kappa
from polymargin.solvers.certificate import Certificate, certify, squared_norm
from polymargin.solvers.checkpoint import CheckpointFile
from polymargin.solvers.history import History
from polymargin.solvers.path_checkpoint import PathFile
from polymargin.solvers.progress import Progress, Record, to_all_listeners
from polymargin.solvers.sequential import SequentialSchedule
from polymargin.solvers.shrinking import AdaptiveSchedule
from polymargin.solvers.snapshot import snapshot
from polymargin.solvers.solution import Solution, best_factor, feasible_start
from polymargin.solvers.state import Pass, State, SweepTotals

if TYPE_CHECKING:
    from polymargin.solvers.dual import DualSolver

CHUNK = {"rows": 2e8, "listed": 2e8, "blocked": 4e9}  # multiplications between looks at Ctrl-C
FIRST_GUESS = {True: 0.66, False: 0.7}  # of the gap to what a full, a short sweep sees of it
LONGEST_WAIT = 50  # passes between two certificates at most
FEW_PASSES = 5
L2_BYTES = 400_000
MANY_VECTORS = 16


def sweep_mode(state: State, blocked: Literal["auto"] | bool) -> str:
    """``"blocked"`` or ``"rows"``: how to sweep.

    Blocks are for dense rows; they pay where W does not fit the second-level cache and has many
    classes.
    """
    if not state.problem.rows.can_be_blocked or blocked is False:
        return "rows"
    vectors = state.W.itemsize * state.ld // kernels.vector_bytes
    large = state.W.nbytes >= L2_BYTES and vectors >= MANY_VECTORS
    return "blocked" if large or blocked is True else "rows"


@dataclass
class _Best:
    certificate: Certificate
    weights: NDArray
    block: sparse.csr_array


class Run:
    """One call of :meth:`DualSolver.solve`, or of :meth:`DualSolver.solve_path`."""

    def __init__(
        self,
        settings: DualSolver,
        problem: Problem,
        tol: float,
        max_iter: int,
        rng: np.random.Generator,
        n_jobs: int,
        verbose: int,
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        began = time.perf_counter()
        self.rng = rng
        self.state = State(problem)
        self.mode = sweep_mode(self.state, settings.blocked)
        self.state.set_method(
            *problem.loss.check_restricted(settings.restricted, settings.restricted_tol)
        )
        self.outer: OuterLoop | None = None
        self._begin(rng)
        self.began = began  # the engine's set-up counts

    def _begin(self, rng: np.random.Generator) -> None:
        """Count from zero, with everybody awake."""
        self.began = time.perf_counter()
        self.spent = 0.0  # seconds before the checkpoint it goes on from
        self.plan = self._schedule(rng)
        self.best: _Best | None = None
        self.status = "max_iter" if self.settings.certify else "uncertified"
        self.n_iter = 0
        self.dual_sum = self.state.dual_sum()
        self.guess = dict(FIRST_GUESS)
        self.last_certified = 0
        self.v: float | None = None  # ||V||^2 after pass v_pass
        self.v_pass = -1
        self.history = History("pass", self.verbose)

    def _schedule(self, rng: np.random.Generator) -> AdaptiveSchedule | SequentialSchedule:
        chosen = self.settings
        if chosen.schedule == "sdm":
            return SequentialSchedule(
                self.state,
                rng,
                shrinking=chosen.shrinking,
                shuffle=chosen.shuffle,
                cooling=chosen.cooling,
                effort=chosen.effort,
            )
        return AdaptiveSchedule(
            self.state,
            rng,
            shrinking=chosen.shrinking,
            shuffle=chosen.shuffle,
            short=chosen.certify,
        )

    def start(self, start: Solution | None) -> None:
        """Warm start, and the outer loop if the problem asks for one."""
        if start is not None:
            self._take_over(start)
        self._accelerate()

    def _accelerate(self) -> None:
        choice = self.settings.acceleration
        few = not self.settings.certify and self.max_iter <= FEW_PASSES
        if choice == "auto" and (few or self.settings.schedule == "sdm"):
            return
        kappa = initial_kappa(self.problem, choice)
        if kappa > 0:
            may_grow = choice == "auto" or choice is True
            self.outer = OuterLoop(self.state, kappa, may_grow=may_grow)

    def _take_over(self, start: Solution) -> None:
        pb = self.problem
        shape = (pb.n_examples, pb.n_classes)
        if start.block.shape != shape or start.loss != pb.loss:
            raise ValueError(
                f"start is a solution for {start.loss} with {start.block.shape[0]} examples and "
                f"{start.block.shape[1]} classes; this problem is {pb.loss} with {shape[0]} and "
                f"{shape[1]}."
            )
        if not np.array_equal(start.y, pb.y):
            raise ValueError("start is a solution for other labels; its dual means nothing here.")
        self.state.set_dual(start.block)
        V = self.state.rebuild()
        factor = feasible_start(self.problem.c, start, float(np.vdot(V, V)))
        self.state.set_dual((start.block * factor).tocsr())
        self.state.W[:] = V * V.dtype.type(factor)
        self.dual_sum = self.state.dual_sum()

    def move_to(self, problem: Problem, rng: np.random.Generator) -> None:
        """Go on from here with the same problem at other costs, a multiple of these."""
        state = self.state
        V = state.dual_weights()
        ratio = float(problem.c.max() / self.problem.c.max())
        factor = best_factor(ratio, self.dual_sum, squared_norm(V))
        state.set_dual((state.dual_block() * factor).tocsr())
        self.problem = problem
        state.set_cost(problem)
        state.W[:] = V * V.dtype.type(factor)
        if self.outer is None:
            self._accelerate()
        else:
            self.outer.begin_again(initial_kappa(problem, self.settings.acceleration))
        self._begin(rng)

    def loop(
        self, progress: Progress | None, checkpoint: CheckpointFile | PathFile | None = None
    ) -> None:
        """Passes until the gap is certified or a limit is reached."""
        relative = float("inf")
        progress = to_all_listeners(progress)
        while self.n_iter < self.max_iter:
            visits = self.plan.next_pass()
            seen = self._sweep(visits)
            self.plan.after(visits, seen)
            self.n_iter += 1
            n_awake = len(visits.order)
            if visits.full or self.settings.schedule == "auto":
                relative = self._outer_step(seen, visits.full)
                if self.settings.certify and self._worth_certifying(relative, visits.full):
                    self._certify(relative, visits)
            elif self.outer is not None:
                self.outer.step()
            if progress is not None:
                progress(self._record(relative, n_awake))
            if self.status == "converged" or self._out_of_time():
                break
            if checkpoint is not None:
                self._save(checkpoint)
        if self.settings.certify and self.last_certified < self.n_iter:
            self._certify(float("nan"), None)

    def _save(self, checkpoint: CheckpointFile | PathFile) -> None:
        """Save when it is time, and at the last pass: to go on with a larger ``max_iter``."""
        if checkpoint.due(self.n_iter) or self.n_iter == self.max_iter:
            checkpoint.save(snapshot(self))

    def _sweep(self, visits: Pass) -> SweepTotals:
        order = visits.order
        mode = self.mode if visits.full else "listed"
        per_visit = (self.problem.rows.per_row + 1) * self.state.ld
        chunk = max(256, int(CHUNK[mode] / per_visit))
        total = SweepTotals(0.0, 0.0, 0.0, 0, 0)
        for first in range(0, len(order), chunk):
            total += self.state.sweep(order[first : first + chunk], mode, n_jobs=self.n_jobs)
            if self._out_of_time():
                break
        self.dual_sum += total.dual
        return total

    def _outer_step(self, seen: SweepTotals, full: bool) -> float:
        """The estimated relative gap after a pass; extrapolates."""
        gap = seen.gap
        if self.outer is None:
            v = squared_norm(self.state.W)
        else:
            v, distance = self.outer.step()
            gap += 0.5 * distance
        self.v, self.v_pass = v, self.n_iter
        dual = self.dual_sum - 0.5 * v + self.problem.constant_loss
        if self.outer is not None and full:
            self.outer.control(dual, gap)
            self.plan.keep_awake(self.outer.stands_still)
        primal = dual + gap
        return gap / primal if primal > 0 else float("inf")

    def _worth_certifying(self, relative: float, full: bool) -> bool:
        waited = self.n_iter - self.last_certified
        return self.guess[full] * relative <= self.tol or (full and waited >= LONGEST_WAIT)

    def _certify(self, relative: float, visits: Pass | None) -> None:
        point = self.state.W if self.outer is None else self.outer.primal_point
        known = self.v if self.n_iter == self.v_pass else None
        found = certify(self.state, None if self.outer is None else point, known, self.n_jobs)
        self.dual_sum = self.state.dual_sum()
        self.last_certified = self.n_iter
        if relative > 0 and visits is not None:
            most = 1.0 if visits.full else 2.0  # a short pass does not see all of the gap
            self.guess[visits.full] = min(most, found.gap / relative)
        self.plan.wake()
        n_awake = 0 if visits is None else len(visits.order)
        self.history.add(self.n_iter, self._elapsed(), found.primal, found.dual, found.gap, n_awake)
        if not np.isfinite(found.gap):
            raise ValueError(
                f"The objective cannot be evaluated (primal {found.primal:.3g}, dual "
                f"{found.dual:.3g}): the data or C are too large for {self.state.W.dtype}. Scale "
                "the features, use a smaller C, or float64."
            )
        converged = found.gap <= self.tol
        if self.best is None or found.gap < self.best.certificate.gap:
            # nothing touches the weights after the last certificate, so they need no copy
            self.set_best(found, point if converged else point.copy(), self.state.dual_block())
        if converged and self.status == "max_iter":
            self.status = "converged"

    def set_best(self, found: Certificate, weights: NDArray, block: sparse.csr_array) -> None:
        """Keep a model as the best so far."""
        self.best = _Best(found, weights, block)

    def _record(self, relative: float, n_awake: int) -> Record:
        certified = self.best.certificate.gap if self.best else float("nan")
        return {
            "pass": self.n_iter,
            "time": self._elapsed(),
            "gap": relative,
            "certified_gap": certified,
            "n_awake": n_awake,
            "tol": self.tol,
        }

    def _elapsed(self) -> float:
        return self.spent + time.perf_counter() - self.began

    def _out_of_time(self) -> bool:
        limit = self.settings.time_limit
        if limit is None or self._elapsed() - self.spent < limit:
            return False
        if self.status == "max_iter":
            self.status = "time_limit"
        return True

    def solution(self) -> Solution:
        """The best certified model; without certificates, the last one."""
        if self.best is None and self.settings.certify:
            self.v_pass = -1  # Ctrl-C may have ended a pass halfway since ||V||^2 was computed
            self._certify(float("nan"), None)
        if self.best is not None:
            weights, block = self.best.weights, self.best.block
            found = self.best.certificate
            gap = found.gap
        else:
            weights = self.state.W if self.outer is None else self.outer.primal_point
            block = self.state.dual_block()
            found, gap = Certificate(float("nan"), float("nan")), float("nan")
        pb = self.problem
        coef, intercept = self.state.split(weights)
        return Solution(
            coef=coef,
            intercept=intercept,
            primal=found.primal,
            dual=found.dual,
            gap=gap,
            n_iter=self.n_iter,
            history=self.history.arrays(),
            status=self.status,
            block=block,
            c=pb.c,
            y=pb.y,
            loss=pb.loss,
        )
