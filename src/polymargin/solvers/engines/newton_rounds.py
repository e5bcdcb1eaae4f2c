r"""The engine of partitioned problems with dense rows of few features: Newton rounds.

All partitions act on the same few directions there, and rounds of local passes hardly dare to move.
But sums over all examples are small: the proximal dual phi of
:mod:`~polymargin.solvers.newton.proximal`, its gradient ``W - V(N)`` and products with its Hessian
are sums over partitions, and so is the preconditioner. A round sends a point W or a direction to
all partitions and takes back such a sum.

The method is that of :mod:`~polymargin.solvers.newton.phase`, without the polish, which would have
to visit examples one after the other; and a step length is tried by looking at the whole point
there, so that the one that is taken costs no further round. The centre is the dual that the
partitions hold. It moves to N only if that has a higher dual value; a partition that is lost and
has begun anew is noticed by the version of its dual.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polymargin.solvers import audit
from polymargin.solvers.certificate import relative_gap, squared_norm
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.engines.base import Best, SavedBest, Seen
from polymargin.solvers.engines.part import Common, Share
from polymargin.solvers.engines.partitions import PartitionEngine, PartitionModel, Partitions
from polymargin.solvers.newton.bracket import Bracket
from polymargin.solvers.newton.faces import Doubles, has_faces
from polymargin.solvers.newton.handover import CONSTANTS as LIMITS
from polymargin.solvers.newton.phase import CONSTANTS
from polymargin.solvers.newton.side import Point
from polymargin.solvers.newton.system import BlockInverse, conjugate_gradients

FIRST_MU = 0.04  # in parts of the mean of ||x_i||^2; 0.01 takes a third more rounds on usps
TRIALS = 12  # of a step length


def is_for(common: Common, *, dense: bool, largest: int) -> bool:
    """Whether to make Newton rounds: `largest` is the number of examples of a partition."""
    rows, k = common.shape
    return (
        dense
        and common.settings.newton is not False
        and common.settings.certify
        and has_faces(common.loss)
        and rows <= LIMITS.widest
        and rows * rows * k <= LIMITS.most_factors
        and largest * k <= LIMITS.most_entries
    )


@dataclass(frozen=True)
class Look:
    """All partitions at a point: the gradient of phi, its value, and the two parts of the gap."""

    at: Point
    g: Doubles
    value: float
    distance: float  # 1/2 ||W - V||^2
    shares: float
    primal: float
    cost: float  # of a product with the Hessian, in passes over all examples

    @property
    def dual(self) -> float:
        """The dual value of N."""
        return self.primal - self.shares - self.distance


class NewtonRounds(PartitionEngine):
    """Newton steps on the proximal dual of a problem in partitions."""

    def __init__(
        self, parts: Partitions, common: Common, n_busy: int, mean_square: float, *, keep_dual: bool
    ) -> None:
        super().__init__(parts, common, 0.0, n_busy, keep_dual=keep_dual)
        self._mu = FIRST_MU * mean_square
        self._point = np.zeros(common.shape)  # W, in double
        self._accuracy = CONSTANTS.accuracy
        self._steps = 0  # at this centre
        self._number = 0  # of the latest point
        self._trips = 0  # since the last step was reported
        self._primal, self._dual = math.inf, -math.inf
        self._inverse: BlockInverse | None = None
        self._served = 0.0  # passes of conjugate gradients with it
        self._now: Look | None = None
        self._has_begun = False

    def _total(self, method: str, *arguments: Any) -> Share:
        self._trips += 1
        return self.parts.total(method, *arguments)

    # --- steps -----------------------------------------------------------------------------------

    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """A Newton step; where the centre's problem is solved, the centre moves."""
        self._trips = 0
        if not self._has_begun:
            self._begin()
        if self._now is None:
            self._now = self._look(self._point)
        ended = False
        if not self._is_solved(self._now):
            ended = not self._newton_step(self._now, out_of_time)
            self._steps += 1
            ended |= self._steps >= CONSTANTS.most_steps
        gap = math.nan
        if ended or self._is_solved(self._now):
            self._move(self._now)
            gap = relative_gap(self._primal - self._dual, self._primal)
        waits = math.isnan(gap)
        return Seen(
            self._n,
            gap=math.inf if waits else gap,
            dual=math.nan if waits else self._dual,
            kind="newton",
            may_wait=waits,
            passes=self._trips,
        )

    def _begin(self) -> None:
        """A round of local passes gives a centre and a point; a dual that is held is both."""
        method = "held" if self._dual_sum else "sweep"
        arguments = () if self._dual_sum else (self._sent(self._W), self._sigma)
        self._take_centre(self._total(method, *arguments))
        if not self._point.any():
            self._point = self._V[:, : self.common.n_classes].astype(np.float64)
        self._has_begun = True

    def _take_centre(self, total: Share) -> None:
        self._take(total)
        v = squared_norm(self._V)
        self._dual = self._dual_sum - 0.5 * v + self._constant_loss

    def _look(self, W: Doubles) -> Look:
        """The partitions at W; keeps the best primal point."""
        self._number += 1
        at = Point(self._number, self._mu, W)
        total = self._total("look", at)
        if tuple(one.version for one in total.seen) != self._versions:  # somebody was lost
            self._take_centre(self._total("held"))
            total = self._total("look", at)
        looked = total.looked
        losses, inner = (math.fsum(one[i] for one in looked) for i in range(2))
        self._n = sum(one.n for one in looked)
        g = W - total.V
        half = 0.5 * squared_norm(W)
        primal = half + losses + self._constant_loss
        if primal < self._primal:
            self._primal = primal
            self._mean[:, : self.common.n_classes] = W
        return Look(
            at,
            g,
            value=half + math.fsum(one.value for one in looked),
            distance=0.5 * squared_norm(g),
            shares=losses - inner,
            primal=primal,
            cost=2.0 * sum(one.n_free for one in looked) / self._n,
        )

    def _is_solved(self, at: Look) -> bool:
        rounding = np.finfo(np.float64).eps * self._primal
        return at.distance <= max(self._accuracy * at.shares, rounding)

    def _newton_step(self, now: Look, out_of_time: Callable[[], bool]) -> bool:
        """Move W; whether there was a way down."""
        rows, k = self.common.shape
        cost = rows / (2.0 * k) * now.cost + rows**2 / (6.0 * self._n)  # about, of an inverse
        if self._inverse is None or self._served > CONSTANTS.rebuild * cost:
            summed = self._total("blocks", now.at).V
            blocks = (np.array(column).reshape(rows, rows) for column in summed.T)
            self._inverse = BlockInverse(blocks, coupled=self.common.loss.coupled)
            self._served = 0.0

        lost = False  # whether a partition was: then its part of the Hessian is another one

        def times(D: Doubles) -> Doubles:
            nonlocal lost
            total = self._total("times", now.at, D)
            lost |= tuple(one.version for one in total.seen) != self._versions
            product: Doubles = D + total.V
            return product

        D, iterations = conjugate_gradients(
            times, self._inverse.apply, now.g, lambda: lost or out_of_time()
        )
        self._served += iterations * now.cost
        found = self._line_search(now, D)
        if found is None:
            return False
        self._now, self._point = found, found.at.W
        return True

    def _line_search(self, now: Look, D: Doubles) -> Look | None:
        """The point of a step length; None: phi does not fall. As `NewtonPhase._line_search`."""
        slope = float(np.vdot(now.g, D))
        bracket, enough = Bracket(slope), CONSTANTS.slope * abs(slope)
        if not slope < 0.0:
            return None
        t, best = 1.0, None
        for _ in range(TRIALS):
            there = self._look(now.at.W + t * D)
            slope = float(np.vdot(there.g, D))
            if there.value < now.value and (best is None or there.value < best.value):
                best = there
            if abs(slope) <= enough and best is there:
                return there
            t = bracket.next(t, slope)
        return best

    def _move(self, now: Look) -> None:
        """To N if that is the better dual; if not, the next attempt is more accurate."""
        if now.dual > self._dual:
            self._take_centre(self._total("move", now.at))
            self._accuracy = min(CONSTANTS.accuracy, 2.0 * self._accuracy)
            if self._steps <= CONSTANTS.few_steps:
                self._mu *= 0.5
            elif self._steps > CONSTANTS.many_steps:
                self._mu *= 1.5
        else:
            self._accuracy = max(CONSTANTS.best_accuracy, 0.1 * self._accuracy)
        self._steps, self._now = 0, None

    # --- checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> Tree:
        """The point, the best one, the strength, and the duals."""
        state = super().state_dict()
        known: Tree = {"point": self._point, "mu": self._mu, "accuracy": self._accuracy}
        return state | {"newton": known}

    def load_state_dict(self, state: Tree, best: SavedBest | None) -> Best[PartitionModel] | None:
        """Go on from there; not to the last bit, as the preconditioner is another one."""
        found = super().load_state_dict(state, best)
        known = state["newton"]
        self._point = audit.array(known, "point", np.float64, self._point.shape)
        self._mu, self._accuracy = audit.number(known, "mu"), audit.number(known, "accuracy")
        self._primal = self.certify().primal
        return found
