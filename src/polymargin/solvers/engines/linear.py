"""The engine of linear problems: passes of exact block updates on the dual.

What happens per example is compiled (``src/core/sweeps``); this decides per pass whom to visit
(:mod:`~polymargin.solvers.shrinking`, :mod:`~polymargin.solvers.sequential`) and makes the steps of
the outer loop (:mod:`~polymargin.solvers.acceleration`). Where sweeps would take long, a Newton
phase follows (:mod:`~polymargin.solvers.newton`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.arrays import Floats, Indices
from polymargin.core import core
from polymargin.data.rows import shuffled
from polymargin.problem import Problem
from polymargin.solvers import audit
from polymargin.solvers.acceleration import OuterLoop, initial_kappa, is_redundant
from polymargin.solvers.certificate import Certificate, relative_gap, squared_norm
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.engines.base import Best, SavableEngine, SavedBest, Seen
from polymargin.solvers.engines.shown import Shown
from polymargin.solvers.newton.follow_up import FollowUp
from polymargin.solvers.newton.handover import may_follow
from polymargin.solvers.precision import Trust, starts_in_single, take_over
from polymargin.solvers.sequential import SequentialSchedule
from polymargin.solvers.sharing import class_ranges
from polymargin.solvers.shrinking import AdaptiveSchedule
from polymargin.solvers.solution import (
    DualSolution,
    Solution,
    best_factor,
    check_start,
    feasible_block,
)
from polymargin.solvers.spread import spread_start
from polymargin.solvers.state import Pass, State, SweepTotals, converted

if TYPE_CHECKING:
    from polymargin.solvers.dual import DualSolver

# multiplications between looks at Ctrl-C
CHUNK = {"rows": 2e8, "listed": 2e8, "by_class": 1e9, "blocked": 4e9}
FEW_CLASSES = 8  # that a dual row lists, for that purpose
LARGE = {1: 4_000_000, 2: 400_000}  # bytes of W, for one thread and for several
MANY_VECTORS = 16
SEVERAL_VECTORS = 8
LONG_ROW = 64
FEW_PASSES = 5  # so few are not accelerated
NOTHING = SweepTotals(0.0, 0.0, 0.0, 0, 0)
Schedule = AdaptiveSchedule | SequentialSchedule


def sweep_mode(state: State, blocked: Literal["auto"] | bool, n_jobs: int) -> str:
    """``"rows"``, ``"by_class"`` or ``"blocked"``: how to sweep.

    The latter two are for dense rows and many classes: a few examples at a time on a copy of W by
    class; or many at a time, where W is larger than the caches, threads can share the work, or
    every visit moves all classes.
    """
    rows = state.problem.rows
    if not rows.can_be_blocked or blocked is False:
        return "rows"
    vectors = state.W.itemsize * state.ld // core.vector_bytes
    large = state.W.nbytes >= LARGE[min(n_jobs, 2)] and vectors >= MANY_VECTORS
    if large or blocked is True:
        return "blocked"
    if vectors < SEVERAL_VECTORS or rows.d < LONG_ROW:
        return "rows"
    return "blocked" if state.problem.loss.dense_dual else "by_class"


@dataclass(frozen=True)
class LinearModel:
    """Weights of the shape of the engine's, and the dual of the same moment."""

    weights: Floats
    block: sparse.csr_array


class LinearEngine(SavableEngine[LinearModel]):
    """Passes over the examples of a linear problem."""

    last_is_best = False

    def __init__(
        self,
        problem: Problem,
        settings: DualSolver,
        rng: np.random.Generator,
        *,
        n_jobs: int,
        max_iter: int,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.n_jobs = n_jobs
        self._rng = rng
        self._few = not settings.certify and max_iter <= FEW_PASSES
        self._whole = "full" if problem.loss.flat else "smooth"  # the kind of passes
        single = starts_in_single(problem, settings)
        self._double: State | None = None  # for certificates meanwhile
        self._trust = Trust()  # in single precision
        self._rebuilt: Floats | None = None  # V, by a certificate, for the next pass to begin from
        self._use(State(problem.in_single() if single else problem, n_jobs))
        self._violation = self.state.track_violation() if settings.needs_violation else None
        self.outer: OuterLoop | None = None
        self._first_is_plain = False
        self._begin()

    def _use(self, state: State) -> None:
        """Sweep with this state from now on."""
        chosen, self.state = self.settings, state
        self._mode = sweep_mode(state, chosen.blocked, self.n_jobs)
        state.set_method(
            *self.problem.loss.check_restricted(chosen.restricted, chosen.restricted_tol)
        )
        ranges = 1 if chosen.needs_violation else class_ranges(state, chosen.parallel)
        if ranges > 1:
            state.cut_classes(ranges)

    def _begin(self) -> None:
        """Everybody is awake, and nothing is known."""
        self.newton = self._follow_up()
        kind = SequentialSchedule if self.settings.schedule == "sdm" else AdaptiveSchedule
        self.plan: Schedule = kind(self.state, self._rng, self.settings)
        self._dual_sum = self.state.dual_sum()
        self._v: float | None = None  # ||V||^2, where the last pass computed it
        self._estimate = math.nan  # of the relative gap, by the last pass
        self._shown: Shown | None = None  # what was certified last, while nothing has moved

    # --- where it begins -------------------------------------------------------------------------

    def start(self, start: DualSolution | None) -> None:
        """Warm start, and the outer loop if the problem asks for one.

        From zero weights the first pass goes furthest without it, unless it alone solves a proximal
        problem well; also where the others have yet to make up for examples taken out of a start.
        """
        taken_out = False
        if start is not None:
            self._take_over(start)
            taken_out = bool((start.c[self.problem.c == 0] > 0).any())
        elif self.problem.loss.dense_dual and self.problem.rows.is_whole and not self._few:
            self._dual_sum = spread_start(self.state)
        cold = start is None and not is_redundant(self.state)
        self._first_is_plain = cold or taken_out
        if not self._first_is_plain:
            self._accelerate()
            if self.outer is not None and isinstance(start, Solution):
                self.outer.begin_constant(start.intercept)

    def _accelerate(self) -> None:
        choice = self.settings.acceleration
        plain = self._few or self.settings.schedule == "sdm" or self._violation is not None
        if choice == "auto" and plain:
            return
        kappa = initial_kappa(self.state, choice)
        if kappa > 0:
            may_grow = choice == "auto" or choice is True
            self.outer = OuterLoop(self.state, kappa, may_grow=may_grow)

    def _take_over(self, start: DualSolution) -> None:
        check_start(self.problem, start)
        block = feasible_block(self.state.problem.c, start.block, start.c)
        self.state.set_dual(block)
        V = self.state.rebuild()
        self._scale_dual(block, V, best_factor(1.0, self.state.dual_sum(), squared_norm(V)))
        self._dual_sum = self.state.dual_sum()

    def _scale_dual(self, block: sparse.csr_array, V: Floats, factor: float) -> None:
        self.state.set_dual((block * factor).tocsr())
        self.state.W[:] = V * V.dtype.type(factor)

    def move_to(self, problem: Problem) -> None:
        """Go on from here with the same problem at other costs, a multiple of these."""
        self._end_newton()
        self._settle()
        state = self.state
        V = state.dual_weights()
        ratio = float(problem.c.max() / self.problem.c.max())
        factor = best_factor(ratio, self._dual_sum, squared_norm(V))
        block = state.dual_block()
        self.problem = problem
        state.set_cost(problem.in_single() if self._in_single else problem)
        if self._double is not None:
            self._double.set_cost(problem)
        self._scale_dual(block, V, factor)
        if self.outer is None:
            self._accelerate()
        else:
            self.outer.begin_again(initial_kappa(state, self.settings.acceleration))
        self._begin()

    # --- passes ----------------------------------------------------------------------------------

    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """One pass, and a step of the outer loop; or a step of the Newton phase."""
        self._shown = None
        if self.newton is not None and self.newton.has_begun:
            return self._newton_step(self.newton, out_of_time)
        self._settle()
        if self._in_single and self._trust.is_over(self._estimate):
            self._to_double()
        visits = self.plan.next_pass()
        totals = self._sweep(visits, out_of_time)
        self.plan.after(visits, totals)
        kind, n_visited = self._whole if visits.full else "short", len(visits.order)
        if not visits.full and self.settings.schedule == "sdm":
            if self.outer is not None:
                self.outer.step()
            self._v = None
            return Seen(n_visited, kind=kind, may_wait=True)
        worst = math.nan
        if self._violation is not None:
            worst = float(self._violation[visits.order].max(initial=0.0))
        gap, primal, dual = self._outer_step(totals, visits.full)
        if self._first_is_plain:
            self._first_is_plain = False
            self._accelerate()
        if self.newton is not None:
            self.newton.after_pass(n_visited, gap, goal / primal, self._point)
        return Seen(
            n_visited,
            gap=gap,
            dual=dual,
            kind=kind,
            may_wait=not visits.full,
            violation=worst,
            everyone=visits.full and n_visited == len(self.problem.visited),
        )

    def _sweep(self, visits: Pass, out_of_time: Callable[[], bool]) -> SweepTotals:
        mode = self._mode if visits.full else "listed"
        total, self._v = NOTHING, None
        for piece in self.state.pieces(visits.arranged):
            total += self._visit(piece, mode, out_of_time)
            if out_of_time():
                break
            if visits.full:
                total += self._visit_again(piece)
        self._dual_sum += total.dual
        return total

    def _visit(self, order: Indices, mode: str, out_of_time: Callable[[], bool]) -> SweepTotals:
        """Visit examples whose rows the engine holds, some at a time."""
        classes = FEW_CLASSES if mode == "listed" else self.state.ld
        chunk = max(256, int(CHUNK[mode] / ((self.problem.rows.per_row + 1) * classes)))
        total = NOTHING
        for first in range(0, len(order), chunk):
            total += self.state.sweep(order[first : first + chunk], mode, n_jobs=self.n_jobs)
            if out_of_time():
                break
        return total

    def _visit_again(self, part: Indices) -> SweepTotals:
        """Once more those of a part that is about to leave memory who move most.

        What the first visit found of the gap is what counts.
        """
        order = self.plan.again(part)
        if len(order) == 0:
            return NOTHING
        found = self.state.gap[order]
        totals = self.state.sweep(order, "listed", n_jobs=self.n_jobs)
        self.state.gap[order] = found
        return NOTHING._replace(dual=totals.dual)

    def _outer_step(self, seen: SweepTotals, full: bool) -> tuple[float, float, float]:
        """The estimated relative gap, primal and dual value after a pass; extrapolates."""
        gap = seen.gap
        if self.outer is None:
            v = squared_norm(self.state.W)
        else:
            v, distance = self.outer.step()
            gap += 0.5 * distance
        self._v = v
        dual = self._dual_sum - 0.5 * v + self.problem.constant_loss
        if self.outer is not None and full:
            self.outer.control(dual, gap)
            if self.outer.stands_still:
                self.plan.keep_awake()
        primal = dual + gap
        self._estimate = relative_gap(gap, primal) if primal > 0 else math.inf
        return self._estimate, primal if primal > 0 else math.inf, dual

    # --- precision -------------------------------------------------------------------------------

    @property
    def _in_single(self) -> bool:
        """Whether sweeps are in single precision, on data in double."""
        return self.state.dtype != self.problem.rows.dtype

    @property
    def _exact(self) -> State:
        """The state of the data in their own precision."""
        if not self._in_single:
            return self.state
        if self._double is None:
            self._double = State(self.problem, self.n_jobs)
        return self._double

    def _settle(self) -> None:
        """Let W follow from the V of the last certificate: thousands of float32 updates drift."""
        if self._rebuilt is not None:
            self.state.set_from_dual(converted(self._rebuilt, self.state))
            self._rebuilt = None

    def _to_double(self) -> None:
        """Go on in double precision."""
        double = self._exact
        take_over(self.state, double)
        self._use(double)
        self._double = None
        self.plan.use(double)
        if self.outer is not None:
            self.outer.use(double)
        self._dual_sum, self._v, self.newton = double.dual_sum(), None, self._follow_up()

    def see_everyone(self) -> None:
        """Visit all examples in the next pass."""
        self.plan.wake(everyone=True)

    # --- the Newton phase ------------------------------------------------------------------------

    def _follow_up(self) -> FollowUp | None:
        chosen = self.settings
        if chosen.newton is False or not chosen.certify or not may_follow(self.problem):
            return None
        if self._in_single or chosen.schedule == "sdm" or self._violation is not None:
            return None
        return FollowUp(self.state, self._polish, chosen.newton)

    def _polish(self, order: NDArray[np.int64]) -> None:
        if self.settings.shuffle:
            order = shuffled(order, self._rng)
        self.state.sweep(order, self._mode, n_jobs=self.n_jobs)

    def _newton_step(self, newton: FollowUp, out_of_time: Callable[[], bool]) -> Seen:
        step, self._v, self._estimate = newton.advance(out_of_time), None, math.nan
        if newton.stalled:
            self._end_newton()
        waits = math.isnan(step.gap)
        gap = math.inf if waits else step.gap
        passes = max(1, math.ceil(step.passes))
        return Seen(step.n_visited, gap, kind="newton", may_wait=waits, passes=passes)

    def _end_newton(self) -> None:
        if self.newton is None or not self.newton.has_begun:
            return
        self.newton.end(self.outer, initial_kappa(self.state, self.settings.acceleration))
        self._dual_sum, self._v = self.state.dual_sum(), None
        self.plan.wake(everyone=True)

    # --- what it is worth ------------------------------------------------------------------------

    @property
    def _point(self) -> Floats:
        """The primal point: the Newton phase's, W, or the outer loop's average of it."""
        if self.newton is not None and self.newton.has_begun:
            return self.newton.primal_point
        return self.state.W if self.outer is None else self.outer.primal_point

    def _show(self) -> Shown:
        """The primal point, as the model of it is."""
        return Shown(self._point, self._exact)

    def certify(self) -> Certificate:
        """Exact objectives of the primal point and the dual; wakes the examples that violate."""
        found = self.objectives()
        self.plan.wake()
        return found

    def mend(self) -> None:
        """The dual is whole; the weights, without acceleration, follow from it."""
        state = self.state
        state.kappa, state.Y, self.outer, self.newton = 0.0, None, None, None
        self._rebuilt, self._v = None, None
        self._estimate, self._shown = math.nan, None
        if not self._in_single:  # else the certificate does it, in double
            state.set_from_dual(state.rebuild())

    def objectives(self) -> Certificate:
        """Exact objectives of the primal point and the dual.

        In single precision V is rebuilt from the dual first, and W with it: thousands of float32
        updates drift.
        """
        if self._in_single:
            return self._objectives_in_double()
        state, v, losses = self.state, self._v, None
        if self.newton is not None and self.newton.has_begun:
            v = squared_norm(state.rebuild())  # whatever a step that was interrupted left in W
        elif state.W.dtype == np.float32:
            if self.outer is None or self.problem.rows.is_whole:
                V = state.rebuild()
            else:  # the primal point does not depend on it, and so the rows are read once
                summed, shown = np.zeros((len(state.W), self.problem.n_classes)), self._show()
                losses = state.evaluate(shown.weights, self.n_jobs, V=summed)
                V = state.new_weights()
                V[:, : self.problem.n_classes] = summed
            v = squared_norm(V)
            state.set_from_dual(V)
        elif v is None:
            v = squared_norm(state.dual_weights())
        if losses is None:
            primal = self._primal()
        else:
            self._shown, w = shown, squared_norm(shown.weights)
            primal = 0.5 * w + float(losses.sum())
        self._dual_sum = state.dual_sum()
        return Certificate(primal, self._dual_sum - 0.5 * v + self.problem.constant_loss)

    def _objectives_in_double(self) -> Certificate:
        """The same of sweeps in single precision, on the data as they are."""
        state, double = self.state, self._exact
        double.copy_dual(state)
        V = self._rebuilt = double.rebuild()
        if self.outer is None:  # then W is the primal point
            self._settle()
        primal = self._primal()
        state.gap[:] = double.gap
        self._dual_sum = double.dual_sum()  # that of the same numbers
        dual = self._dual_sum - 0.5 * squared_norm(V) + self.problem.constant_loss
        found = Certificate(primal, dual)
        self._trust.after_certificate(found.gap, self._estimate)
        return found

    def _primal(self) -> float:
        """The primal value of what is shown from now on, while nothing moves."""
        self._shown, loss = self._show(), self.problem.loss
        several = self.settings.certify and loss.flat and loss.is_cheap
        return self._shown.primal(self.n_jobs, self._estimate if several else math.nan)

    def model(self, *, copy: bool) -> LinearModel:
        """The primal point and the dual."""
        shown = self._show() if self._shown is None else self._shown
        return LinearModel(shown.taken(copy=copy), self._exact.dual_block())

    # --- checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> Tree:
        """Weights, dual, marks of the examples, random numbers, schedule and outer loop."""
        self._settle()
        state: Tree = {
            "single": self._in_single,
            "trust": asdict(self._trust),
            "state": self.state.state_dict(),
            "dual_sum": self._dual_sum,
            "v": self._v,
            "estimate": self._estimate,
            "plan": self.plan.state_dict(),
            "random": self._rng.bit_generator.state,
        }
        if self.newton is not None:
            state["newton"] = self.newton.state_dict()
        return state if self.outer is None else state | {"outer": self.outer.state_dict()}

    def load_state_dict(self, state: Tree, best: SavedBest | None) -> Best[LinearModel] | None:
        """Go on from a state of the same problem and settings."""
        if self._in_single and not audit.flag(state, "single"):
            self._to_double()
        audit.require(state["single"] == self._in_single, "it is in single precision")
        best_found = None if best is None else self._load_best(best)  # before the state is loaded
        lost, passes, lowest = (state["trust"][name] for name in ("lost", "passes", "lowest"))
        audit.require(type(passes) is int and isinstance(lowest, float), "what it trusts")
        self._first_is_plain, self._trust = False, Trust(bool(lost), passes, lowest)
        outer, swept = state.get("outer"), state["state"]
        if outer is not None and self.outer is None:  # not from the start, or of an earlier C
            self.outer = OuterLoop(self.state, audit.number(swept, "kappa"), may_grow=False)
        audit.check_dual(self.problem, swept["indptr"], swept["classes"], swept["values"])
        self.state.load_state_dict(swept)
        self._dual_sum = audit.number(state, "dual_sum")
        if "phase" not in state.get("newton", {}):  # which counts anew when it ends
            found, room = self.state.dual_sum(), audit.ROUNDING[self.state.dtype.itemsize]
            close = abs(self._dual_sum - found) <= room * (1.0 + found)
            audit.require(close, "the sum of its dual is another")
        self._v = self._checked_norm(state["v"])
        self._estimate = audit.any_number(state, "estimate")
        self.plan.load_state_dict(state["plan"])
        self._rng.bit_generator.state = state["random"]
        if self.outer is not None:
            self.outer.load_state_dict(state["outer"])
        if self.newton is not None:
            self.newton.load_state_dict(state["newton"])
        return best_found

    def _checked_norm(self, v: object) -> float | None:
        """``||V||^2`` as a file says it, with the bits that it had."""
        if v is None:
            return None
        state = self.state
        found, centre = squared_norm(state.dual_weights()), state.Y
        kappa = state.strengths[-1][1]  # the largest
        size = found if centre is None else found + kappa**2 * squared_norm(centre)
        room = audit.ROUNDING[state.dtype.itemsize] * size
        close = isinstance(v, float) and abs(v - found) <= room
        audit.require(close, "the norm of its weights is another")
        return float(v)  # type: ignore[arg-type]

    def _load_best(self, best: SavedBest) -> Best[LinearModel]:
        """The best model, whose certificate is what the data say."""
        exact, block = self._exact, sparse.csr_array(best.model["block"])
        weights = audit.weights(best.model, "weights", exact.W, self.problem.n_classes)
        model = LinearModel(exact.like_weights(weights), block)
        found = audit.evaluated(exact, model.weights, block, self.n_jobs)
        audit.check_claim(best.claim, found, exact.dtype.itemsize)
        return Best(best.claim, model)

    def model_state(self, model: LinearModel) -> Tree:
        """A model as arrays."""
        return {"weights": model.weights, "block": model.block}
