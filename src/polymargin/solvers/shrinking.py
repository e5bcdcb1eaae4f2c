"""Which examples a pass visits: shrinking by visiting less often.

An example whose block is optimal where it lies gains nothing from a visit. Instead of removing it
(and having to reconstruct later) each example has an interval, in passes, until its next visit.
What a visit finds is the example's share of the duality gap, ``c_i loss_i - p_i.h_i``, that has
built up since the last one; it grows about quadratically with the interval. Intervals are therefore
multiplied by ``sqrt(theta * mean share / share)``, at most by 2 and at least by 1/2, so that every
visit finds about the same: examples that sit still (all zero, or at a vertex without violation) are
soon visited every sixteenth pass only, free ones in every pass. The mean falls as the solver
converges, which is the cooling of the tolerance in Keerthi et al. (2008), section 2.

A certificate looks at all examples and wakes those that violate.

With many classes, a pass can be followed by short ones: the examples that moved most, each with the
few classes of its dual row only (Keerthi's shrinking of classes). They cost a fraction where a row
of W is much longer than the list of an example's classes.

Rows on disk are read part by part, and reading is what costs: there the examples of a part that
moved most are visited once more before it leaves memory, with the classes of their dual rows, and
no short passes follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polymargin.arrays import Indices
from polymargin.core import core
from polymargin.data.rows import Arranged, next_seed, shuffled
from polymargin.solvers import audit
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.state import Pass, State, SweepTotals

if TYPE_CHECKING:
    from polymargin.solvers.dual import DualSolver

TARGET = 0.05  # theta
LONGEST = 16.0
SLOWEST_RISE = 1.2  # of the mean share, per pass
MOST_SHORT = 3
FIRST_SHORT = 3  # short passes only after this many full ones
WAKE = 0.01  # a certificate wakes examples with more than this times the mean share


class AdaptiveSchedule:
    """Chooses the examples of each pass."""

    _SCALARS = ("awake", "n_short", "pass", "mean")

    def __init__(self, state: State, rng: np.random.Generator, settings: DualSolver) -> None:
        self._state = state
        self._rng = rng
        self._shrinking = settings.shrinking
        self._shuffle = settings.shuffle
        self._repeats = not state.problem.rows.is_whole  # whether to visit again what will leave
        self._short = settings.certify and not self._repeats  # whether short passes may follow
        self._awake = False
        self._n_short = 0  # short passes still to make
        self._visited = state.problem.visited
        self._pass = 0
        self._busy = self._visited[:0]
        self._mean = np.inf  # of the shares, damped: one heavy example must not lull the others
        if self._shrinking:
            self._interval = np.ones(state.problem.n_examples, np.float32)
            self._next = np.zeros(state.problem.n_examples, np.int32)

    def next_pass(self) -> Pass:
        """The examples of the next pass."""
        if self._n_short > 0:
            self._n_short -= 1
            return Pass(self._in_order(self._busy), full=False)
        order = self._visited
        if self._shrinking and not self._awake:
            due = np.empty_like(order)
            n_due = core.list_due(order, self._next, self._pass, due)
            if n_due > 0:  # else everything sleeps: wake everything
                order = due[:n_due]
        return Pass(self._in_order(order), full=True)

    def again(self, part: Indices) -> Indices:
        """Whom to visit once more before a part of a full pass, just visited, leaves memory."""
        if not (self._repeats and self._shrinking):
            return part[:0]
        chosen = self._above(part, TARGET * self._mean if np.isfinite(self._mean) else 0.0)
        return shuffled(chosen, self._rng) if self._shuffle else chosen

    def _above(self, order: Indices, bound: float) -> Indices:
        found = np.empty_like(order)
        return found[: core.list_above(order, self._state.gap, bound, found)]

    def _in_order(self, chosen: Indices) -> Arranged:
        rows = self._state.problem.rows
        return rows.arranged(chosen, self._rng if self._shuffle else None)

    def after(self, done: Pass, seen: SweepTotals) -> None:
        """Set the next visit of the examples just visited, and the short passes to follow."""
        if not done.full:
            return
        done_at, order = self._pass, done.order
        self._pass += 1
        if not self._shrinking or self._awake or len(order) == 0:
            return
        share = self._state.gap
        self._mean = min(core.mean_share(order, share), SLOWEST_RISE * self._mean)
        target = TARGET * self._mean
        core.set_next_visits(
            order, share, target, LONGEST, done_at, next_seed(self._rng), self._interval, self._next
        )
        if not self._short:
            return
        self._busy = self._above(order, target)
        self._n_short = self._short_passes(seen.entries)
        # its own: not to keep all the room that was there for them
        self._busy = self._busy[: len(self._busy) if self._n_short else 0].copy()

    def _short_passes(self, entries: int) -> int:
        """How many short passes pay after a pass that saw this many dual entries."""
        if self._pass < FIRST_SHORT or len(self._busy) == 0:
            return 0
        vectors = self._state.W.itemsize * self._state.ld // core.vector_bytes
        listed = entries / len(self._busy) + 1
        cost = self._state.problem.rows.listed_cost * listed
        return min(int(vectors / cost), MOST_SHORT)

    def wake(self, *, everyone: bool = False) -> None:
        """After a certificate: visit every example that violates (or `everyone`) next."""
        if everyone:
            self._n_short = 0
        if self._shrinking:
            share = self._state.gap
            awake = share > (-1.0 if everyone else WAKE * share.mean())
            self._next[awake] = np.minimum(self._next[awake], self._pass)

    def use(self, state: State) -> None:
        """Look at the shares of this state from now on."""
        self._state = state

    def keep_awake(self) -> None:
        """Let all passes from now on visit all examples."""
        self._awake = True

    def state_dict(self) -> Tree:
        """What the passes so far have left."""
        state: Tree = {name: getattr(self, f"_{name}") for name in self._SCALARS}
        state["busy"] = self._busy
        if self._shrinking:
            state |= {"interval": self._interval, "next": self._next}
        return state

    def load_state_dict(self, state: Tree) -> None:
        """The inverse of `state_dict`."""
        n = self._state.problem.n_examples
        self._awake, self._mean = audit.flag(state, "awake"), audit.number(state, "mean", 0.0)
        self._n_short, self._pass = audit.count(state, "n_short"), audit.count(state, "pass")
        self._busy = audit.examples(state, "busy", n)
        if self._shrinking:
            self._interval[:] = audit.array(state, "interval", np.float32, (n,))
            self._next[:] = audit.array(state, "next", np.int32, (n,))
