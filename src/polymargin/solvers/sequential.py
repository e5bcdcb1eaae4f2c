"""The sequential dual method's own schedule (Keerthi et al. 2008, sections 2.1 and 3).

A full loop over all examples is followed by shrunk loops: over the examples that have a dual
variable strictly between its bounds, each with the classes of its dual row only. They end when no
violation exceeds ``epsilon``, or when their effort (margins evaluated, in units of a full loop)
exceeds a cap. ``epsilon`` starts at 1 and is divided by a factor, the cooling, each time a full
loop finds everything optimal to it.

The paper stops at a fixed ``epsilon``; here the duality gap decides, so ``epsilon`` has no end. Its
shrunk loops for Weston-Watkins leave out the variables at their upper bound; ours visit all
nonzero ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polymargin.arrays import Indices
from polymargin.solvers import audit
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.state import Pass, State, SweepTotals

if TYPE_CHECKING:
    from polymargin.solvers.dual import DualSolver

FIRST_EPSILON = 1.0
NO_COOLING = 1e-3  # epsilon where it does not cool: the accuracy the paper calls high


class SequentialSchedule:
    """Full and shrunk loops (without shrinking: full ones), stopped by violation or effort."""

    def __init__(self, state: State, rng: np.random.Generator, settings: DualSolver) -> None:
        self._state = state
        self._rng = rng
        self._settings = settings
        self._effort = 0.0  # of the shrunk loops since the last full one
        self.epsilon = NO_COOLING if settings.cooling is None else FIRST_EPSILON
        self._violation = state.track_violation()
        self._shrunk: Indices | None = None  # the examples of the shrunk loops under way

    def next_pass(self) -> Pass:
        """A full loop, or the next shrunk one."""
        full = self._shrunk is None
        order = self._state.problem.visited if self._shrunk is None else self._shrunk
        rng = self._rng if self._settings.shuffle else None
        return Pass(self._state.problem.rows.arranged(order, rng), full)

    def again(self, part: Indices) -> Indices:
        """Nobody: the method has its own loops."""
        return part[:0]

    def after(self, done: Pass, seen: SweepTotals) -> None:
        """Cool, and decide what the next loop is."""
        settings = self._settings
        worst = float(self._violation[done.order].max(initial=0.0))
        if done.full:
            self._effort = 0.0
            if worst < self.epsilon and settings.cooling is not None:
                self.epsilon /= settings.cooling
            self._shrunk = self._state.free_examples() if settings.shrinking else None
        else:
            pb = self._state.problem
            self._effort += (seen.entries + len(done.order)) / (pb.n_classes * pb.n_examples)
            if worst < self.epsilon or self._effort > settings.effort:
                self._shrunk = None
        if self._shrunk is not None and len(self._shrunk) == 0:
            self._shrunk = None

    def wake(self, *, everyone: bool = False) -> None:
        """Nothing sleeps beyond a full loop."""
        if everyone:
            self._shrunk = None

    def use(self, state: State) -> None:
        """Look at this state from now on."""
        self._state = state

    def keep_awake(self) -> None:
        """The method decides by itself."""

    def state_dict(self) -> Tree:
        """What the passes so far have left."""
        state: Tree = {
            "epsilon": self.epsilon,
            "effort": self._effort,
            "violation": self._violation,
        }
        return state if self._shrunk is None else state | {"shrunk": self._shrunk}

    def load_state_dict(self, state: Tree) -> None:
        """The inverse of `state_dict`."""
        n = self._state.problem.n_examples
        self.epsilon, self._effort = audit.number(state, "epsilon"), audit.number(state, "effort")
        self._violation[:] = audit.array(state, "violation", np.float64, (n,))
        self._shrunk = audit.examples(state, "shrunk", n) if "shrunk" in state else None
