"""The accelerated outer loop for ill-conditioned problems.

Instead of ``P(W)`` each pass works on ``P(W) + kappa/2 ||W - Y||^2`` with an extrapolated centre
``Y <- W + beta (W - W_previous)``, ``beta = (1 - sqrt(q)) / (1 + sqrt(q))``,
``q = 1 / (1 + kappa)`` (accelerated proximal point; Shalev-Shwartz and Zhang 2014, Lin, Mairal and
Harchaoui 2015). In a sweep this only means curvature ``A / (1 + kappa)`` and
``W = (kappa Y + V) / (1 + kappa)``; the dual stays feasible for the original problem.

Two additions. The primal point is a moving average of W over about ``3 (sqrt(1 + kappa) - 1)``
passes: the iterates circle the optimum, and their mean halves the gap. And ``kappa``, which starts
at ``sqrt(mean c_i ||x_i||^2)``, adapts: see :class:`Control`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Literal, NamedTuple

import numpy as np

from polymargin.arrays import Floats
from polymargin.core import core
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.state import State


@dataclass(frozen=True)
class Constants:
    """What the outer loop goes by.

    Beside each constant what half and twice of it do to the passes (see ``docs/benchmarking.md``).
    """

    worthwhile: float = 0.3  # a smaller kappa costs more than it gains: none
    safe: float = 2.0  # the largest start on few examples; no back-off goes below
    largest_start: float = 10.0  # on redundant data
    redundant: float = 10.0  # examples per row of W: one pass solves a proximal problem well
    growth: float = 1.5  # of kappa
    largest: float = 500.0  # it grew to 51 at most on data; where nothing moves, nothing stops it
    grow_after: int = 4  # passes
    back: float = 0.5
    fall: float = 0.05  # of the dual, as a part of the gap, that is too much
    slow: float = 0.75  # the gap hardly falls when it does not come to this part of what it was
    window: float = 3.0  # in this many times sqrt(1 + kappa) passes
    lower: float = 0.9  # and it stands still when it does not come to this part
    patience: float = 12.0  # in this many times 1 + kappa passes,
    well_below: float = 0.25  # until it is this part of what it was then
    memory: float = 3.0  # times sqrt(1 + kappa) - 1: passes to average over,
    short_memory: float = 2.0  # where they are at least so many


CONSTANTS = Constants()


def is_redundant(state: State) -> bool:
    """Whether the examples are so many that one pass solves a proximal problem well."""
    return len(state.problem.visited) >= CONSTANTS.redundant * len(state.W)


def initial_kappa(state: State, choice: Literal["auto"] | bool | float) -> float:
    """The proximal strength to start with; 0 for none."""
    if choice is False:
        return 0.0
    if choice is not True and choice != "auto":
        return float(choice)
    problem = state.problem
    chosen = problem.visited
    if len(chosen) == 0:
        return 0.0
    curvature = float(np.mean(problem.c[chosen] * problem.squared_norms[chosen]))
    largest = CONSTANTS.largest_start if is_redundant(state) else CONSTANTS.safe
    kappa = min(math.sqrt(curvature), largest)
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

    ================== ========================== ====================================
    phase              meanwhile                  until, then
    ================== ========================== ====================================
    ``GROWING``        kappa grows                the dual falls, or it is large: ``GROWN``
    ``GROWN``          kappa may be too large     the gap hardly falls: back, ``STEADY``
    ``STEADY``         kappa stays                the gap stands still: ``STANDING_STILL``
    ``STANDING_STILL`` all examples are visited   the gap is well below: ``STEADY``
    ================== ========================== ====================================

    In every phase a fall of the dual sets kappa back: too large a kappa for one inner pass
    diverges. "Back" is half, and it drops the momentum, as ``STANDING_STILL`` does.

    It grows only where one pass solves a proximal problem well (:func:`is_redundant`); elsewhere
    it begins ``STEADY``. With one inexact pass per step every kappa has a gap it circles at, the
    larger the sooner, hence ``GROWN``. Examples that sleep miss the momentum, which can make the
    iterates circle without end, hence ``STANDING_STILL``.

    Attributes
    ----------
    start : float
        The first kappa.
    grows : bool
        Whether it grows by itself.
    phase : Phase
    steps : int
        Passes since kappa grew last.
    last_dual : float
    lower_gap : float
        The last gap that was lower than the one before by a factor worth the name,
    passes_since : int
        and how many passes ago that was.
    until : float
        The gap that ends ``STANDING_STILL``.
    """

    start: float
    grows: bool
    phase: Phase
    steps: int = 0
    last_dual: float = -math.inf
    lower_gap: float = math.inf
    passes_since: int = 0
    until: float = 0.0

    def after_pass(self, kappa: float, dual: float, gap: float) -> Move:
        """What to do after a pass with `kappa` that led to this dual value and estimated gap."""
        fell = dual < self.last_dual - CONSTANTS.fall * gap
        self.last_dual = dual
        lower = CONSTANTS.slow if self.phase is Phase.GROWN else CONSTANTS.lower
        if gap < lower * self.lower_gap:
            self.lower_gap, self.passes_since = gap, 0
        else:
            self.passes_since += 1

        if fell:
            if self.phase is Phase.GROWING:
                self.phase = Phase.GROWN
            return self._start_over(
                max(CONSTANTS.back * kappa, min(self.start, CONSTANTS.safe)), gap
            )
        if self.phase is Phase.GROWING:
            self.steps += 1
            if kappa >= CONSTANTS.largest:
                self.phase = Phase.GROWN
            elif self.steps == CONSTANTS.grow_after:
                self.steps = 0
                kappa *= CONSTANTS.growth
        elif self.phase is Phase.GROWN:
            if self.passes_since >= CONSTANTS.window * math.sqrt(1.0 + kappa):
                self.phase = Phase.STEADY
                return self._start_over(min(kappa, max(CONSTANTS.back * kappa, self.start)), gap)
        elif self.phase is Phase.STEADY:
            if self.passes_since >= CONSTANTS.patience * (1.0 + kappa):
                self.phase = Phase.STANDING_STILL
                self.until = CONSTANTS.well_below * self.lower_gap
                return self._start_over(kappa, gap)
        elif gap < self.until:
            self.phase = Phase.STEADY
        return Move(kappa, start_over=False)

    def _start_over(self, kappa: float, gap: float) -> Move:
        self.lower_gap, self.passes_since = gap, 0
        return Move(kappa, start_over=True)


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

    def step(self) -> tuple[float, float]:
        """One outer step after a pass; returns ``||V||^2`` and ``||W - V||^2`` before it."""
        state = self._state
        assert state.Y is not None
        root = math.sqrt(1.0 + state.kappa)
        self._passes += 1
        horizon = min(max(1.0, CONSTANTS.memory * (root - 1.0)), self._passes)
        blend = 0.0 if self._mean is None else 1.0 / horizon
        if self._mean is None and horizon >= CONSTANTS.short_memory:
            self._mean = state.new_weights()
            blend = 1.0
        beta = (root - 1.0) / (root + 1.0)
        w, v, both = core.extrapolate(
            state.W, state.Y, self._previous, self.primal_point, state.kappa, beta, blend
        )
        return v, max(0.0, w + v - 2.0 * both)

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
        state.W[:] = (kappa * state.Y + V) / (1.0 + kappa)

    def state_dict(self) -> Tree:
        """What the passes so far have left; W, Y and ``kappa`` are the state's."""
        control = asdict(self._control) | {"phase": self._control.phase.value}
        known: Tree = {"control": control, "passes": self._passes, "previous": self._previous}
        return known if self._mean is None else known | {"mean": self._mean}

    def load_state_dict(self, known: Tree) -> None:
        """Go on as the loop that gave this `state_dict` would have, to the last bit."""
        self._control = Control(**known["control"] | {"phase": Phase(known["control"]["phase"])})
        self._passes = known["passes"]
        self._previous[:] = known["previous"]
        self._mean = None
        if "mean" in known:
            self._mean = self._state.like_weights(known["mean"])
