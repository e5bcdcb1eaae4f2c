"""The accelerated outer loop for ill-conditioned problems.

Instead of ``P(W)`` each pass works on ``P(W) + kappa/2 ||W - Y||^2`` with an extrapolated centre
``Y <- W + beta (W - W_previous)``, ``beta = (1 - sqrt(q)) / (1 + sqrt(q))``,
``q = 1 / (1 + kappa)`` (accelerated proximal point; Shalev-Shwartz and Zhang 2014, Lin, Mairal and
Harchaoui 2015). In a sweep this only means curvature ``A / (1 + kappa)`` and
``W = (kappa Y + V) / (1 + kappa)``; the dual stays feasible for the original problem.

Two additions. The primal point is a moving average of W over about ``3 (sqrt(1 + kappa) - 1)``
passes: the iterates circle the optimum, and their mean halves the gap. And ``kappa`` adapts: it
starts at ``sqrt(mean c_i ||x_i||^2)``, grows while the dual rises (where examples far outnumber
features, so that one pass solves a proximal problem well), and is halved, with the momentum
dropped, when the dual falls or the gap rises: too large a ``kappa`` for one inner pass diverges.
A ``kappa`` that has grown is taken back, to a quarter at most, while the gap hardly falls: with one
inexact pass per step, every ``kappa`` has a gap it circles at, the larger the sooner. Where the gap
stands still all the same, passes visit all examples until it has fallen well below (sleeping ones
miss the momentum, which can make the iterates circle without end); where it does so for long,
smaller values are tried, then larger ones again.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polymargin.core import core
from polymargin.problem import Problem
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.state import State

LARGEST_START = 10.0
LARGEST_FEW = 2.0  # the same where examples do not outnumber features by far (see REDUNDANT)
WORTHWHILE = 0.3  # below this kappa the outer loop costs more than it gains
GROWTH = 1.5
GROW_AFTER = 4  # passes in a row without a fall of the dual
REDUNDANT = 10  # examples per feature from which one pass solves a proximal problem well
SHORT_MEMORY = 2.0  # passes: averaging over fewer gains nothing
SMALLEST = 3.0  # no back-off goes below this (or below the start, where that is smaller)
FALL = 0.05  # a fall of the dual by this part of the gap is too much,
RISE = 4.0  # and so is a gap this many times the lowest
PATIENCE = 10.0  # times 2 + sqrt(1 + kappa): passes without a lower gap until nobody may sleep,
WELL_BELOW = 0.25  # which lasts until the gap is this part of the lowest then
TAKEN_BACK = 0.25  # of the largest kappa tried, or to where it began
WINDOW = 3.0  # times sqrt(1 + kappa): passes in which the gap should fall to a twentieth;
SLOW = 0.75  # where it does not even fall to this part, a kappa that has grown is too large


def initial_kappa(problem: Problem, choice: Literal["auto"] | bool | float) -> float:
    """The proximal strength to start with; 0 for none."""
    if choice is False:
        return 0.0
    if choice is True or choice == "auto":
        chosen = problem.visited
        if len(chosen) == 0:
            return 0.0
        curvature = float(np.mean(problem.c[chosen] * problem.squared_norms[chosen]))
        redundant = len(chosen) >= REDUNDANT * problem.n_features
        kappa = min(math.sqrt(curvature), LARGEST_START if redundant else LARGEST_FEW)
        return kappa if choice is True or kappa >= WORTHWHILE else 0.0
    return float(choice)


class OuterLoop:
    """Extrapolation, averaging and the control of ``kappa``."""

    def __init__(self, state: State, kappa: float, *, may_grow: bool) -> None:
        self._state = state
        pb = state.problem
        self._redundant = may_grow and len(pb.visited) >= REDUNDANT * len(state.W)
        state.Y, self._previous = state.new_weights(), state.new_weights()
        self._begin(kappa)

    def _begin(self, kappa: float) -> None:
        """Without momentum, from W as it is."""
        state = self._state
        assert state.Y is not None
        state.kappa = kappa
        self._may_grow = self._redundant
        self._smallest = min(kappa, SMALLEST)
        self._start = self._floor = kappa
        if state.W.any():  # a warm start; else their pages are not touched before they are used
            state.Y[:] = state.W
            self._previous[:] = state.W
        self._mean: NDArray | None = None
        self._passes = 0
        self._steady = 0
        self._lowest_gap = math.inf
        self._since_lowest = 0
        self._last_dual = -math.inf
        self._ceiling = math.inf
        self.stands_still = False
        self._until = 0.0  # the gap that ends it
        self._watch(math.inf)

    def begin_again(self, kappa: float) -> None:
        """Start from W on a problem of other costs, which alone would start with `kappa`.

        What the one before ended with counts as much: it was stable there. Where `kappa` grows by
        itself, it had better do so again.
        """
        self._begin(kappa if self._redundant else math.sqrt(kappa * self._state.kappa))

    def step(self) -> tuple[float, float]:
        """One outer step after a pass; returns ``||V||^2`` and ``||W - V||^2`` before it."""
        state = self._state
        root = math.sqrt(1.0 + state.kappa)
        self._passes += 1
        horizon = min(max(1.0, 3.0 * (root - 1.0)), self._passes)
        blend = 0.0 if self._mean is None else 1.0 / horizon
        if self._mean is None and horizon >= SHORT_MEMORY:
            self._mean = state.new_weights()
            blend = 1.0
        mean = self._previous if self._mean is None else self._mean
        beta = (root - 1.0) / (root + 1.0)
        w, v, both = core.extrapolate(
            state.W, state.Y, self._previous, mean, state.kappa, beta, blend
        )
        return v, max(0.0, w + v - 2.0 * both)

    @property
    def primal_point(self) -> NDArray:
        """The moving average of W; W itself (before extrapolation) where memory is short."""
        return self._previous if self._mean is None else self._mean

    def control(self, dual: float, gap: float) -> None:
        """Adapt ``kappa`` to what the pass did: the dual value and the estimated gap after it."""
        unstable = dual < self._last_dual - FALL * gap or gap > RISE * self._lowest_gap
        self._last_dual = dual
        if gap < 0.9 * self._lowest_gap:
            self._lowest_gap, self._since_lowest = gap, 0
        else:
            self._since_lowest += 1
        kappa = self._state.kappa
        if gap < self._until:
            self.stands_still, self._until = False, 0.0
        if unstable:
            self._ceiling = max(min(self._ceiling, kappa / GROWTH), self._smallest)
            self._start_over(0.5 * kappa, gap)
        elif not self._may_grow and kappa > self._floor and self._slow(gap):
            self._start_over(max(kappa / GROWTH, self._floor), gap)
        elif not self.stands_still and self._since_lowest > PATIENCE * (2 + math.sqrt(1 + kappa)):
            self.stands_still, self._until = True, WELL_BELOW * self._lowest_gap
            self._start_over(kappa, gap)
        elif self._since_lowest > 60.0 + 20.0 * math.sqrt(1.0 + kappa):
            self._start_over(0.5 * kappa if kappa > self._smallest else 2.0 * kappa, gap)
        elif self._may_grow:
            self._steady += 1
            if self._steady >= GROW_AFTER:
                self._steady = 0
                self._set_kappa(GROWTH * kappa)
                self._floor = max(self._start, TAKEN_BACK * self._state.kappa)

    def _watch(self, gap: float) -> None:
        """Begin to watch the gap anew."""
        self._watched = 0
        self._before = gap
        self._low = math.inf

    def _slow(self, gap: float) -> bool:
        """Whether the gap has hardly fallen over some passes; asked once a pass."""
        self._watched += 1
        self._low = min(self._low, gap)
        if self._watched < WINDOW * math.sqrt(1.0 + self._state.kappa):
            return False
        slow = self._low > SLOW * self._before
        self._watch(self._low)
        return slow

    def _start_over(self, kappa: float, gap: float) -> None:
        """Another ``kappa``, without the momentum, and no more growing by itself."""
        self._may_grow = False
        self._lowest_gap, self._since_lowest = gap, 0
        self._watch(gap)
        self._set_kappa(min(max(kappa, self._smallest), self._ceiling), centre=self._previous)

    def _set_kappa(self, kappa: float, centre: NDArray | None = None) -> None:
        """Change ``kappa`` (and the centre) with the dual, and so V, as it is."""
        state = self._state
        assert state.Y is not None
        V = state.dual_weights()
        if centre is not None:
            state.Y[:] = centre
        state.kappa = kappa
        state.W[:] = (kappa * state.Y + V) / (1.0 + kappa)

    def state_dict(self) -> Tree:
        """What the passes so far have left."""
        plain = {n: v for n, v in vars(self).items() if isinstance(v, bool | int | float)}
        state: Tree = {"plain": plain, "previous": self._previous}
        return state if self._mean is None else state | {"mean": self._mean}

    def load_state_dict(self, state: Tree) -> None:
        """The inverse of `state_dict`."""
        self.__dict__.update(state["plain"])
        self._previous[:] = state["previous"]
        self._mean = self._state.like_weights(state["mean"]) if "mean" in state else None
