"""When sweeps give way to the Newton phase: by the measured decay of the gap.

The gap that passes see falls about geometrically. What it did in the second half of the work so
far, in effective passes (visits / examples), says how many more sweeps need to the tolerance; what
the phase needs is known from the data sets it was measured on: some passes for each factor of ten,
and about one preconditioner, whose cost follows from the dual point as it is. Nothing here looks at
a clock, so a run is the same on any machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from polymargin.problem import Problem
from polymargin.solvers import audit
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.newton.faces import has_faces
from polymargin.solvers.state import State


@dataclass(frozen=True)
class Constants:
    """What the choice goes by."""

    most_classes: int = 32  # with more, short passes make sweeps cheaper than they are counted
    widest: int = 800  # rows of W: a preconditioner has classes times their square entries
    most_entries: float = 1e7  # examples times classes: the phase keeps about ten such arrays
    most_factors: float = 5e7  # entries of the preconditioner
    per_decade: float = 45.0  # effective passes of the phase while the gap falls to a tenth
    worth: float = 2.0  # times what the phase should need, that sweeps would at least
    large: float = 0.3  # a gap that sweeps get to the end of sooner, unless they took as long
    first: float = 10.0  # effective passes before the decay means anything
    soonest: int = 10  # passes before a phase that was asked for


CONSTANTS = Constants()


def may_follow(problem: Problem) -> bool:
    """Whether there is a phase: for dense rows in memory, and a flat loss with known faces."""
    return problem.rows.can_be_blocked and problem.rows.is_whole and has_faces(problem.loss)


def is_affordable(state: State) -> bool:
    """Whether the phase's arrays are of moderate size."""
    problem, d = state.problem, len(state.W)
    return (
        problem.n_classes <= CONSTANTS.most_classes
        and d <= CONSTANTS.widest
        and problem.n_examples * problem.n_classes <= CONSTANTS.most_entries
        and d * d * problem.n_classes <= CONSTANTS.most_factors
    )


class Handover:
    """Watches the gap fall.

    Parameters
    ----------
    state : State
    asked_for : bool
        Whether the phase follows after the first passes, whatever they do.
    """

    def __init__(self, state: State, *, asked_for: bool) -> None:
        self._state = state
        self._asked_for = asked_for
        self._passes = 0
        self._work = [0.0]  # effective passes so far, after each pass,
        self._gaps = [math.inf]  # and the smallest gap seen

    def is_due(self, visits: int, gap: float, goal: float) -> bool:
        """Whether to hand over after a pass that made some visits and saw this gap.

        Parameters
        ----------
        visits : int
        gap, goal : float
            Relative gaps: that seen, and that to reach (infinite while it is not known).
        """
        self._passes += 1
        if self._asked_for:
            return self._passes >= CONSTANTS.soonest
        self._work.append(self._work[-1] + visits / max(1, len(self._state.problem.visited)))
        self._gaps.append(min(self._gaps[-1], gap))
        if not 0.0 < goal < self._gaps[-1] or self._work[-1] < CONSTANTS.first:
            return False
        left, needed = self._left(goal), self._needed(goal)
        if left < CONSTANTS.worth * needed:
            return False
        needed += self._preconditioner()
        is_near = self._gaps[-1] <= CONSTANTS.large or self._work[-1] >= needed
        return is_near and left >= CONSTANTS.worth * needed

    def _needed(self, goal: float) -> float:
        """Passes that the phase should need, without its preconditioner."""
        return CONSTANTS.per_decade * math.log10(self._gaps[-1] / goal)

    def _left(self, goal: float) -> float:
        """Passes that sweeps need to the goal at the rate of the second half of those so far."""
        now, gap = self._work[-1], self._gaps[-1]
        half = next(i for i, work in enumerate(self._work) if work >= 0.5 * now)
        fallen = math.log(self._gaps[half] / gap)
        since = now - self._work[half]
        return math.log(gap / goal) * since / fallen if fallen > 0.0 else math.inf

    def _preconditioner(self) -> float:
        """What one preconditioner costs, in effective passes, from the dual entries that are free.

        ``(sum over classes of rows d^2 / 2 + d^3 / 6) / (n d K)``.
        """
        state = self._state
        problem, d = state.problem, len(state.W)
        free = state.dual_block()[state.free_examples()]
        entries = free.nnz + problem.loss.coupled * free.shape[0]
        n, K = len(problem.visited), problem.n_classes
        return float(d * entries / (2 * n * K) + d * d / (6 * n))

    def state_dict(self) -> Tree:
        """What the passes so far have left."""
        return {"passes": self._passes, "work": self._work, "gaps": self._gaps}

    def load_state_dict(self, known: Tree) -> None:
        """The inverse of `state_dict`."""
        self._passes = audit.count(known, "passes")
        work, gaps = list(known["work"]), list(known["gaps"])
        plain = all(type(one) in (int, float) for one in work + gaps) and len(work) == len(gaps)
        audit.require(plain and work and gaps[-1] >= 0, "what it says of earlier passes")
        ordered = (np.diff(work) >= 0).all() and (np.array(gaps[1:]) <= gaps[:-1]).all()
        audit.require(ordered, "what it says of earlier passes")
        self._work, self._gaps = work, gaps
