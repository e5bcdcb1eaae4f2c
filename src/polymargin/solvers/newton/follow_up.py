"""What may follow the sweeps of a linear engine: the watch over the gap, then the Newton phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polymargin.arrays import Floats
from polymargin.solvers import audit
from polymargin.solvers.acceleration import OuterLoop
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.newton.handover import Handover, is_affordable
from polymargin.solvers.newton.phase import NewtonPhase, Step
from polymargin.solvers.state import State


class FollowUp:
    """Watches the passes, hands over to the Newton phase, and back where it gets no further.

    Parameters
    ----------
    state : State
    sweep : callable
        Sweeps over examples.
    choice : "auto" or True
        See :class:`polymargin.DualSolver`.
    """

    def __init__(
        self,
        state: State,
        sweep: Callable[[NDArray[np.int64]], None],
        choice: Literal["auto"] | bool,
    ) -> None:
        self._state, self._sweep = state, sweep
        self._handover: Handover | None = None
        if choice is True or is_affordable(state):
            self._handover = Handover(state, asked_for=choice is True)
        self._phase: NewtonPhase | None = None
        self._kappa = 0.0  # of the sweeps before it

    @property
    def has_begun(self) -> bool:
        """Whether the phase is on: then W is V, and the primal point its own."""
        return self._phase is not None

    @property
    def primal_point(self) -> Floats:
        """The best primal point of the phase."""
        assert self._phase is not None
        return self._phase.primal_point

    def after_pass(self, visits: int, gap: float, goal: float, point: Floats) -> None:
        """Begin the phase from a primal point, if it is time to: see `Handover.is_due`."""
        if self._handover is None or not self._handover.is_due(visits, gap, goal):
            return
        state, self._handover = self._state, None
        self._kappa, state.kappa = state.kappa, 0.0
        state.W[:] = state.rebuild()
        self._phase = NewtonPhase(state, point, self._sweep)

    def advance(self, out_of_time: Callable[[], bool]) -> Step:
        """A step of the phase."""
        assert self._phase is not None
        return self._phase.advance(out_of_time)

    @property
    def stalled(self) -> bool:
        """Whether the phase gets no further."""
        return self._phase is not None and self._phase.stalled

    def end(self, outer: OuterLoop | None, kappa: float) -> None:
        """Back to sweeps: from the phase's primal point, without momentum.

        Parameters
        ----------
        outer : OuterLoop or None
        kappa : float
            What an outer loop of this problem begins with.
        """
        state, point = self._state, self.primal_point
        self._phase = None
        if outer is None:
            return
        V, state.kappa, state.W[:] = state.W.copy(), self._kappa, point
        outer.begin_again(kappa)
        state.set_from_dual(V)

    def state_dict(self) -> Tree:
        """What the passes and steps so far have left."""
        known: Tree = {"kappa": self._kappa}
        if self._handover is not None:
            known["handover"] = self._handover.state_dict()
        if self._phase is not None:
            known["phase"] = self._phase.state_dict()
        return known

    def load_state_dict(self, known: Tree) -> None:
        """The inverse of `state_dict`; the state has been loaded before."""
        self._kappa = audit.number(known, "kappa", 0.0)
        if "handover" not in known:
            self._handover = None
        elif self._handover is not None:
            self._handover.load_state_dict(known["handover"])
        if "phase" in known:
            self._phase = NewtonPhase(self._state, self._state.W, self._sweep)
            self._phase.load_state_dict(known["phase"])
