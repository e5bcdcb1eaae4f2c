"""The accelerated outer loop for ill-conditioned problems.

Instead of ``P(W)`` each pass works on ``P(W) + kappa/2 ||W - Y||^2`` with an extrapolated centre
``Y <- W + beta (W - W_previous)``, ``beta = (1 - sqrt(q)) / (1 + sqrt(q))``,
``q = 1 / (1 + kappa)`` (accelerated proximal point; Shalev-Shwartz and Zhang 2014, Lin, Mairal and
Harchaoui 2015). In a sweep this only means curvature ``A / (1 + kappa)`` and
``W = (kappa Y + V) / (1 + kappa)``; the dual stays feasible for the original problem.

Two additions. The primal point is a moving average of W over about
``1 + 3 (sqrt(1 + kappa) - 1)`` passes: the iterates circle the optimum, and their mean halves the
gap. And ``kappa``, which starts
at ``sqrt(mean c_i ||x_i||^2)`` (less for losses that are less steep than hinges), adapts: see
:class:`Control`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Literal, NamedTuple

import numpy as np

from polymargin.arrays import Floats
from polymargin.problem import Problem
from polymargin.solvers import audit
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.state import State, converted


@dataclass(frozen=True)
class Constants:
    """What the outer loop goes by.

    After the values that were tried instead: passes relative to those with the default, as a mean
    over problems, and for one problem where that says more (``docs/benchmarking.md``).
    """

    # the start: the root of the mean of c_i ||x_i||^2
    worthwhile: float = 0.3  # below it none: time, not passes; not measured again
    safe: float = 2.0  # at most, on few examples, and no way back leads below; 1: 1.13, 4: 1.17
    redundant: float = 10.0  # examples per row of W that are not few; 20: mnist 4.2
    largest_start: float = 10.0  # at most, on redundant data; 5: 1.18, none: usps 3.6
    # growth, on redundant data
    growth: float = 1.5  # 1.22: 1.02, 2.25: 1.00, but satimage 1.52
    grow_after: int = 4  # passes; 2: 0.93, but dna 1.79; 8: 1.04
    largest: float = 500.0  # it grew to 51 at most on data; where nothing moves, nothing stops it
    back: float = 0.5  # where it is too large; 0.25: 1.24, 0.75: 1.00, but letter 1.31
    fall: float = 0.05  # of the dual, in parts of the gap, that says so; 0.025: 1.07, 0.1: 0.97
    rise: float = 4.0  # of the gap, while it grows, that says so; without: top-k on letter 1.86
    # the gap hardly falls when it does not come to `slow` of what it was in `window` times
    # sqrt(1 + kappa) passes, and stands still when not to `lower` in `patience` times 1 + kappa
    slow: float = 0.75  # 0.5: 1.02, 0.9: 0.98, but dna 3.3
    window: float = 3.0  # 1.5: 1.02, 6: 0.97
    lower: float = 0.9  # 0.8: clinc150 1.45, 0.95: 1.00
    patience: float = 12.0  # 6: satimage 2.42, 24: rcv1 1.34
    # the average, over `1 + memory * (sqrt(1 + kappa) - 1)` passes; without the 1: 1.02
    memory: float = 3.0  # 1.5: 1.03, 6: 1.02
    short_memory: float = 2.0  # passes that are worth an array; 1: 0.99


CONSTANTS = Constants()


def is_redundant(state: State) -> bool:
    """Whether the examples are so many that one pass solves a proximal problem well."""
    return len(state.problem.visited) >= CONSTANTS.redundant * len(state.W)


def curvature(problem: Problem) -> float:
    """The mean of ``c_i ||x_i||^2``."""
    chosen = problem.visited
    if len(chosen) == 0:
        return 0.0
    return float(np.mean(problem.c[chosen] * problem.squared_norms[chosen]))


def initial_kappa(state: State, choice: Literal["auto"] | bool | float) -> float:
    """The proximal strength to start with; 0 for none."""
    if choice is False:
        return 0.0
    if choice is not True and choice != "auto":
        return float(choice)
    problem = state.problem
    largest = CONSTANTS.largest_start if is_redundant(state) else CONSTANTS.safe
    kappa = min(math.sqrt(problem.loss.steepness * curvature(problem)), largest)
    return kappa if choice is True or kappa >= CONSTANTS.worthwhile else 0.0


class Phase(Enum):
    """Where the control of ``kappa`` stands."""

    GROWING = "growing"
    GROWN = "grown"
    STEADY = "steady"
    STANDING_STILL = "standing still"


class Move(NamedTuple):
    """The next ``kappa``, and whether to start over from W without momentum."""

    kappa: float
    start_over: bool


@dataclass
class Control:
    """The state machine that adapts ``kappa`` to what each pass did.

    ================== ======================== ==============================================
    phase              meanwhile                until, then
    ================== ======================== ==============================================
    ``GROWING``        kappa grows              the dual falls or the gap rises: ``GROWN``
    ``GROWN``          kappa may be too large   the dual falls or the gap hardly does: ``STEADY``
    ``STEADY``         kappa stays              the gap stands still: ``STANDING_STILL``
    ``STANDING_STILL`` everybody is visited     the end
    ================== ======================== ==============================================

    With the first two changes kappa is halved, and whenever the dual falls: too large a kappa for
    one inner pass diverges. Every change drops the momentum.

    Kappa grows only where one pass solves a proximal problem well (:func:`is_redundant`); elsewhere
    it begins ``STEADY``. With one inexact pass per step every kappa has a gap it circles at, the
    larger the sooner, hence ``GROWN``. Examples that sleep miss the momentum, which can make the
    iterates circle without end, hence ``STANDING_STILL``.
    """

    start: float  # the first kappa
    grows: bool  # whether it grows by itself
    phase: Phase
    steps: int = 0  # passes in which it grew
    last_dual: float = -math.inf
    lower_gap: float = math.inf  # the last that was lower than the one before by a factor,
    passes_since: int = 0  # and how many passes ago that was

    def after_pass(self, kappa: float, dual: float, gap: float) -> Move:
        """What to do after a pass with `kappa` that led to this dual value and estimated gap."""
        falls = dual < self.last_dual - CONSTANTS.fall * gap
        rises = gap > CONSTANTS.rise * self.lower_gap
        self.last_dual = dual
        lower = CONSTANTS.slow if self.phase is Phase.GROWN else CONSTANTS.lower
        if gap < lower * self.lower_gap:
            self.lower_gap, self.passes_since = gap, 0
        else:
            self.passes_since += 1
        hardly_falls = self.passes_since >= CONSTANTS.window * math.sqrt(1.0 + kappa)
        stands_still = self.passes_since >= CONSTANTS.patience * (1.0 + kappa)

        match self.phase:
            case Phase.GROWING if falls or rises or kappa >= CONSTANTS.largest:
                return self._start_over(Phase.GROWN, self._back(kappa), gap)
            case Phase.GROWN if falls:
                return self._start_over(Phase.STEADY, self._back(kappa), gap)
            case Phase.GROWN if hardly_falls:  # not below its start, nor up to it
                back = min(kappa, max(self._back(kappa), self.start))
                return self._start_over(Phase.STEADY, back, gap)
            case Phase.STEADY | Phase.STANDING_STILL if falls:
                return self._start_over(self.phase, self._back(kappa), gap)
            case Phase.STEADY if stands_still:
                return self._start_over(Phase.STANDING_STILL, kappa, gap)
            case Phase.GROWING:
                self.steps += 1
                if self.steps % CONSTANTS.grow_after == 0:
                    kappa *= CONSTANTS.growth
        return Move(kappa, start_over=False)

    def _back(self, kappa: float) -> float:
        return max(CONSTANTS.back * kappa, min(self.start, CONSTANTS.safe))

    def _start_over(self, phase: Phase, kappa: float, gap: float) -> Move:
        self.phase = phase
        self.lower_gap, self.passes_since = gap, 0
        return Move(kappa, start_over=True)


def loaded_control(known: Tree) -> Control:
    """The control that a checkpoint has as a dict."""
    return Control(
        start=audit.number(known, "start", 0.0),
        grows=audit.flag(known, "grows"),
        phase=Phase(known["phase"]),
        steps=audit.count(known, "steps"),
        last_dual=audit.number(known, "last_dual"),
        lower_gap=audit.number(known, "lower_gap"),
        passes_since=audit.count(known, "passes_since"),
    )


class OuterLoop:
    """Extrapolation, averaging and the control of ``kappa``."""

    def __init__(self, state: State, kappa: float, *, may_grow: bool) -> None:
        self._state = state
        state.Y, self._previous = state.new_weights(), state.new_weights()
        self._begin(kappa, grows=may_grow and is_redundant(state))

    def _begin(self, kappa: float, *, grows: bool) -> None:
        """Without momentum, from W as it is."""
        state = self._state
        assert state.Y is not None
        state.kappa = kappa
        self._control = Control(kappa, grows, Phase.GROWING if grows else Phase.STEADY)
        if state.W.any():  # a warm start; else their pages are not touched before they are used
            state.Y[:] = state.W
            self._previous[:] = state.W
        self._mean: Floats | None = None
        self._passes = 0

    def begin_again(self, kappa: float) -> None:
        """Start from W on a problem of other costs, which alone would start with `kappa`.

        What the one before ended with counts as much: it was stable there. Where `kappa` grows by
        itself, it had better do so again.
        """
        grows = self._control.grows
        self._begin(kappa if grows else math.sqrt(kappa * self._state.kappa), grows=grows)

    def begin_constant(self, intercept: Floats) -> None:
        """Start from this intercept where the constant is held back.

        Its weights then follow the centre more than the dual, which may be far from them.
        """
        state, k = self._state, self._state.problem.n_classes
        if state.rho == 1.0 or intercept.shape != (k,):
            return
        assert state.Y is not None
        V = state.dual_weights()
        state.Y[-1, :k] = intercept / state.problem.intercept_scaling
        self._previous[-1] = state.Y[-1]
        state.set_from_dual(V)

    def step(self) -> tuple[float, float]:
        """One outer step after a pass; returns ``||V||^2`` and ``||W - V||^2`` before it."""
        state = self._state
        root = math.sqrt(1.0 + state.kappa)
        self._passes += 1
        horizon = min(1.0 + CONSTANTS.memory * (root - 1.0), self._passes)
        blend = 0.0 if self._mean is None else 1.0 / horizon
        if self._mean is None and horizon >= CONSTANTS.short_memory:
            self._mean = state.new_weights()
            blend = 1.0
        beta = (root - 1.0) / (root + 1.0)
        w, v, both = state.extrapolate(self._previous, self.primal_point, beta, blend)
        return v, max(0.0, w + v - 2.0 * both)

    def use(self, state: State) -> None:
        """Go on with the weights of this state, of another precision."""
        self._state = state
        self._previous = converted(self._previous, state)
        if self._mean is not None:
            self._mean = converted(self._mean, state)

    @property
    def primal_point(self) -> Floats:
        """The moving average of W; W itself (before extrapolation) where memory is short."""
        return self._previous if self._mean is None else self._mean

    @property
    def stands_still(self) -> bool:
        """Whether passes had better visit all examples."""
        return self._control.phase is Phase.STANDING_STILL

    def control(self, dual: float, gap: float) -> None:
        """Adapt ``kappa`` to what the pass did: the dual value and the estimated gap after it."""
        state = self._state
        assert state.Y is not None
        kappa, start_over = self._control.after_pass(state.kappa, dual, gap)
        if kappa == state.kappa and not start_over:
            return
        V = state.dual_weights()  # the dual, and so V, stays as it is
        if start_over:
            state.Y[:] = self._previous
        state.kappa = kappa
        state.set_from_dual(V)

    def state_dict(self) -> Tree:
        """What the passes so far have left; W, Y and ``kappa`` are the state's."""
        control = asdict(self._control) | {"phase": self._control.phase.value}
        known: Tree = {"control": control, "passes": self._passes, "previous": self._previous}
        return known if self._mean is None else known | {"mean": self._mean}

    def load_state_dict(self, known: Tree) -> None:
        """Go on as the loop that gave this `state_dict` would have, to the last bit."""
        state, k = self._state, self._state.problem.n_classes
        self._control = loaded_control(known["control"])
        self._passes = audit.count(known, "passes")
        self._previous[:] = audit.weights(known, "previous", state.W, k)
        self._mean = None
        if "mean" in known:
            self._mean = state.like_weights(audit.weights(known, "mean", state.W, k))
