r"""The Newton phase: a proximal point method on the dual, each step of it by Newton's method.

Around a centre, a feasible dual point, ``phi`` of :mod:`~polymargin.solvers.newton.proximal` is
minimised by Newton steps with conjugate gradients and a line search, until

    1/2 ||W - V(N)||^2  <=  accuracy * sum_i share_i,

with the examples' shares of the duality gap on the right: what W and the dual point N disagree on
is then a small part of the gap. A few plain sweeps from N over the rows that are not settled (the
polish) end the step. The centre moves there only if the dual value rose; if not it stays and the
next attempt is more accurate by ten, for an inexact step that is taken anyway can make the
method stall. ``mu`` follows the number of Newton steps that a centre took.

The method is the semismooth Newton augmented Lagrangian method (Li, Sun and Toh 2018, for the
Lasso) on this dual, with the exact block updates as its polish.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from polymargin.arrays import Floats
from polymargin.solvers import audit
from polymargin.solvers.certificate import relative_gap, squared_norm
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.newton.bracket import Bracket
from polymargin.solvers.newton.faces import Doubles
from polymargin.solvers.newton.proximal import ProximalDual
from polymargin.solvers.newton.system import Hessian, Preconditioner, conjugate_gradients
from polymargin.solvers.state import State


@dataclass(frozen=True)
class Constants:
    """What the phase goes by."""

    first_mu: float = 0.01  # in parts of the mean of ||x_i||^2
    few_steps: int = 4  # Newton steps of a centre that halve mu
    many_steps: int = 9  # more of them make it larger by half
    most_steps: int = 30
    accuracy: float = 0.5  # at most
    best_accuracy: float = 1e-9  # less is a stall
    slope: float = 0.3  # of the line search: part of the slope at its start that may be left
    trials: int = 30  # of the line search
    sweeps: int = 5  # of the polish at most,
    gain: float = 0.01  # while each raises the dual by this part of the gap
    projection: float = 5.0  # a projection of one entry in multiplications, for the count of passes
    rebuild: float = 1.0  # a preconditioner serves iterations that cost this many times itself
    patience: float = 300.0  # passes in which the gap must fall
    fall: float = 0.5  # to this part


CONSTANTS = Constants()


class Step(NamedTuple):
    """What a step cost in passes, whom it moved, and the relative gap, where it is known."""

    passes: float
    n_visited: int
    gap: float


class Point(NamedTuple):
    """The maximiser at W: blocks, their weights, the gradient, and the two parts of the gap."""

    p: Doubles
    V: Doubles
    g: Doubles
    distance: float  # 1/2 ||W - V||^2
    shares: float


class NewtonPhase:
    """Newton steps from where sweeps have led.

    Between steps the state has the centre as its dual, and its V as the weights.

    Parameters
    ----------
    state : State
        Without a proximal term: ``W = V``.
    W : ndarray
        The primal point, of the shape of the state's weights.
    sweep : callable
        Sweeps over examples.
    """

    def __init__(self, state: State, W: Floats, sweep: Callable[[np.ndarray], None]) -> None:
        problem = state.problem
        self._state, self._sweep = state, sweep
        self._visited = problem.visited
        mu = CONSTANTS.first_mu * float(problem.squared_norms[self._visited].mean())
        self.phi = ProximalDual(problem, mu)
        self._W = np.array(W[:, : problem.n_classes], np.float64)
        if problem.loss.coupled:
            self._W -= self._W.mean(axis=1, keepdims=True)  # equal columns change no margin
        self._H = self.phi.margins(self.phi.scores(self._W))
        self._accuracy = CONSTANTS.accuracy
        self._steps = 0  # at this centre
        self._preconditioner: Preconditioner | None = None
        self._served = 0.0  # passes of conjugate gradients with it
        self._spent = 1.0  # passes since the last step was reported
        self._lower_gap, self._since = math.inf, 0.0
        self._primal = math.inf
        self._best = self._W
        self._now: Point | None = None
        self._find_centre()

    def _find_centre(self) -> None:
        self.phi.move_to(self.phi.blocks(self._state.dual_block()))
        self._dual = self._dual_value()

    def _dual_value(self) -> float:
        state = self._state
        return state.dual_sum() - 0.5 * squared_norm(state.W) + state.problem.constant_loss

    @property
    def primal_point(self) -> Floats:
        """The best primal point so far, of the shape and type of the state's weights."""
        weights = self._state.new_weights()
        weights[:, : self.phi.n_classes] = self._best
        return weights

    @property
    def stalled(self) -> bool:
        """Whether it gets no further."""
        too_accurate = self._accuracy < CONSTANTS.best_accuracy
        return too_accurate or self._since > CONSTANTS.patience

    # --- steps -----------------------------------------------------------------------------------

    def advance(self, out_of_time: Callable[[], bool] = lambda: False) -> Step:
        """A Newton step; where the centre's problem is solved, the polish and a move."""
        if self._now is None:
            self._now = self._look(self.phi.maximiser(self._H))
        n_visited, ended = self.phi.n, False
        if not self._is_solved(self._now):
            ended = not self._newton_step(self._now, out_of_time)
            self._steps += 1
            ended |= self._steps >= CONSTANTS.most_steps
        gap = math.nan
        if ended or self._is_solved(self._now):
            n_visited = self._polish(self._now)
            gap = relative_gap(self._primal - self._dual, self._primal)
            if gap < CONSTANTS.fall * self._lower_gap:
                self._lower_gap, self._since = gap, 0.0
        passes, self._spent = self._spent, 0.0
        self._since += passes
        return Step(passes, n_visited, gap)

    def _look(self, p: Doubles) -> Point:
        """The maximiser p at W with its weights, the gradient and the two parts of the gap."""
        V, n_rows = self.phi.weights(p)
        self._spent += n_rows / self.phi.n + CONSTANTS.projection / self.phi.d
        g = self._W - V
        losses = self.phi.losses(self._H)
        primal = 0.5 * float(np.vdot(self._W, self._W)) + losses
        if primal < self._primal:
            self._primal, self._best = primal, self._W
        shares = losses - self.phi.problem.constant_loss - float(np.vdot(p, self._H))
        return Point(p, V, g, 0.5 * float(np.vdot(g, g)), shares)

    def _is_solved(self, at: Point) -> bool:
        rounding = np.finfo(np.float64).eps * self._primal
        return at.distance <= max(self._accuracy * at.shares, rounding)

    def _newton_step(self, at: Point, out_of_time: Callable[[], bool]) -> bool:
        """Move W; whether there was a way down."""
        phi = self.phi
        faces = phi.faces(at.p)
        hessian = Hessian(phi, faces)
        made = self._preconditioner
        if made is None or self._served > CONSTANTS.rebuild * made.build_cost:
            made = Preconditioner(phi, faces.rows, faces.diagonal(), phi.mu, hessian.X)
            self._preconditioner, self._served = made, 0.0
            self._spent += made.build_cost
        D, iterations = conjugate_gradients(hessian.times, made.apply, at.g, out_of_time)
        cost = iterations * (hessian.cost + made.cost)
        self._served += cost
        slopes = phi.slopes(phi.scores(D))
        self._spent += cost + 1.0
        found = self._line_search(at, D, slopes)
        if found is None:
            return False
        t, self._H, p = found
        self._W = self._W + t * D
        self._now = self._look(p)
        return True

    def _line_search(
        self, at: Point, D: Doubles, slopes: Doubles
    ) -> tuple[float, Doubles, Doubles] | None:
        """A step length with the margins and the maximiser there; None: phi does not fall.

        The slope of phi along D, ``<W + t D, D> + sum_i p_i(t).slopes_i``, rises with t and is
        piecewise linear: its root is bracketed, and approached by secants.
        """
        phi, W = self.phi, self._W
        along, squared = float(np.vdot(W, D)), float(np.vdot(D, D))
        slope = float(np.vdot(at.g, D))
        bracket, enough = Bracket(slope), CONSTANTS.slope * abs(slope)
        if not slope < 0.0:
            return None
        before = phi.value(W, self._H, at.p)
        t = 1.0
        for _ in range(CONSTANTS.trials):
            H = self._H + t * slopes
            p = phi.maximiser(H)
            self._spent += CONSTANTS.projection / phi.d
            slope = along + t * squared + float(np.vdot(p, slopes))
            if abs(slope) <= enough and (slope <= 0 or phi.value(W + t * D, H, p) <= before):
                return t, H, p
            t = bracket.next(t, slope)
        return None

    def _polish(self, at: Point) -> int:
        """Sweeps from the maximiser; the centre moves there if that is better."""
        phi, state = self.phi, self._state
        settled = (at.p == phi.centre).all(axis=1)
        settled[phi.faces(at.p).rows] = False
        order = self._visited[~settled]
        centre, V = phi.centre, state.W.copy()
        self._set_dual(at.p, at.V)
        dual = self._dual_value()
        for _ in range(CONSTANTS.sweeps):
            self._sweep(order)
            self._spent += len(order) / phi.n
            before, dual = dual, self._dual_value()
            if dual - before < CONSTANTS.gain * (self._primal - dual):
                break
        if dual > self._dual:
            self._accuracy = min(CONSTANTS.accuracy, 2.0 * self._accuracy)
            if self._steps <= CONSTANTS.few_steps:
                phi.mu *= 0.5
            elif self._steps > CONSTANTS.many_steps:
                phi.mu *= 1.5
            self._find_centre()
        else:
            self._accuracy *= 0.1
            self._set_dual(centre, V[:, : phi.n_classes])
        self._steps, self._now = 0, None
        return len(order)

    def _set_dual(self, p: Doubles, V: Floats) -> None:
        self._state.set_dual(self.phi.dual(p))
        self._state.W[:, : self.phi.n_classes] = V

    # --- checkpoints -----------------------------------------------------------------------------

    _SCALARS = ("accuracy", "steps", "served", "spent", "lower_gap", "since", "primal")

    def state_dict(self) -> Tree:
        """What the steps so far have left; the centre is the state's dual."""
        known: Tree = {name: getattr(self, f"_{name}") for name in self._SCALARS}
        known |= {"mu": self.phi.mu, "W": self._W, "best": self._best, "margins": self._H}
        known["looked"] = self._now is not None
        if self._preconditioner is not None:
            rows, diagonal, mu = self._preconditioner.recipe
            known["preconditioner"] = {"rows": rows, "mu": mu}
            known["preconditioner"]["diagonal"] = sparse.csr_array(diagonal)
        return known

    def load_state_dict(self, known: Tree) -> None:
        """Go on as the phase that gave this `state_dict`, to the last bit."""
        phi = self.phi
        self.phi.mu = audit.number(known, "mu")
        self._W = audit.array(known, "W", np.float64, self._W.shape)
        margins = phi.margins(phi.scores(self._W))
        self._H = audit.array(known, "margins", np.float64, margins.shape)
        audit.require(np.allclose(self._H, margins, 1e-6, 1e-6), "its margins are others")
        best = audit.array(known, "best", np.float64, self._W.shape)
        if "preconditioner" in known:
            recipe = known["preconditioner"]
            rows, diagonal = audit.examples(recipe, "rows", phi.n), recipe["diagonal"]
            audit.require(diagonal.shape == (len(rows), phi.n_classes), "its rows differ in number")
            mu = audit.number(recipe, "mu")
            self._preconditioner = Preconditioner(phi, rows, diagonal.toarray(), mu)
        self._find_centre()
        self._now = self._look(self.phi.maximiser(self._H)) if known["looked"] else None
        self._best = best  # and the scalars: after the look, which changes some
        for name in self._SCALARS:
            setattr(self, f"_{name}", audit.number(known, name))
        self._steps = audit.count(known, "steps")
