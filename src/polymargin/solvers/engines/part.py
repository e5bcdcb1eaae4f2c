"""One partition of the examples: its rows, its dual, and local passes over them.

Partition ``m`` of ``M`` is sent the weights W and looks for the change of its dual that is best if
its share of V were ``sigma`` times as large as it is (CoCoA+, Ma et al. 2015, with ``sigma = M``:
then the changes of all partitions may be added up). In a sweep this only means curvature and
updates of W times ``sigma / (1 + kappa)``. It answers with ``V_m = sum_i x_i a_i^T``, rebuilt from
the dual it holds: nothing that is added up elsewhere can drift from it, whatever happened to it.

The constant feature is common to all examples. Partitions that would only exchange dual mass along
it, which changes nothing in all, each see their own part of the exchange ``sigma`` times, and
hardly dare to. It therefore has a proximal strength of its own, ``kappa_0``, as if its value were
`constant` in place of ``intercept_scaling``: ``constant^2 / intercept_scaling^2 =
(1 + kappa) / (1 + kappa_0)``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from polymargin.arrays import Codes, Doubles, Floats, Indices, Matrix
from polymargin.losses import Loss
from polymargin.problem import Problem
from polymargin.solvers import audit
from polymargin.solvers.engines.linear import sweep_mode
from polymargin.solvers.newton.side import Looked, NewtonSide, Point
from polymargin.solvers.shrinking import AdaptiveSchedule
from polymargin.solvers.solution import signed_dual
from polymargin.solvers.state import State
from polymargin.storage import digest_of

if TYPE_CHECKING:
    from polymargin.solvers.dual import DualSolver

Version = tuple[str, int]  # of a dual: of which part, and after how many changes


@dataclass(frozen=True)
class Common:
    """What all partitions of a problem share."""

    loss: Loss
    n_classes: int
    n_features: int
    dtype: np.dtype
    intercept_scaling: float  # 0 without an intercept
    constant: float  # the value that the constant feature has in local passes
    settings: DualSolver
    seed: int

    @property
    def shape(self) -> tuple[int, int]:
        """That of the weights: a row per feature, the last for the constant, if there is one."""
        return self.n_features + (self.intercept_scaling != 0), self.n_classes


class PartSeen(NamedTuple):
    """What a partition says of itself."""

    version: Version
    dual_sum: float
    value: float = 0.0  # of its losses, or its part of the gap as far as the pass saw it
    n_visited: int = 0


class HeldDual(NamedTuple):
    """The dual ``p`` of a partition, and the costs and labels that it is for."""

    block: sparse.csr_array
    c: Doubles
    y: Codes


@dataclass(frozen=True)
class Share:
    """``V_m`` of one partition, for its features, or the sum of those of several."""

    features: Indices | None  # None: all
    V: Floats
    seen: tuple[PartSeen, ...]
    looked: tuple[Looked, ...] = ()  # of a Newton round


def add_up(shares: Sequence[Share], shape: tuple[int, int]) -> Share:
    """The sum, in the order given; `shape` is that of all features."""
    whole = shares[0].features is None
    V = np.zeros(shares[0].V.shape if whole else shape, shares[0].V.dtype)
    for share in shares:
        if share.features is None:
            V += share.V
        else:
            V[share.features] += share.V
    seen = tuple(seen for share in shares for seen in share.seen)
    return Share(None, V, seen, tuple(one for share in shares for one in share.looked))


class Part:
    """A partition: rows, labels, costs and dual; `number` is its place among all."""

    def __init__(self, number: int, X: Matrix, y: Codes, c: Doubles, common: Common) -> None:
        self.number, self.common, self.X, self.y, self.c = number, common, X, y, c
        self._birth = uuid.uuid4().hex
        self._changes = 0
        self._state: State | None = None  # None: nobody is here
        self._newton: NewtonSide | None = None
        if not (c > 0).any():
            return
        problem = Problem(X, y, c, common.loss, common.n_classes, common.constant)
        self._state = state = State(problem)
        settings = replace(common.settings, certify=False)  # a round has no short passes
        state.set_method(
            *common.loss.check_restricted(settings.restricted, settings.restricted_tol)
        )
        self._mode = sweep_mode(state, settings.blocked, 1)
        self._plan = AdaptiveSchedule(state, np.random.default_rng([common.seed, number]), settings)
        self._features = state.features
        if self._features is not None and problem.has_intercept:
            self._features = np.append(self._features, common.n_features)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins a life of its own, with the dual as it is."""
        return _copied, (self.number, self.X, self.y, self.c, self.common, self.dual()[0])

    @property
    def version(self) -> Version:
        """Two parts of the same version have the same dual."""
        return self._birth, self._changes

    def _changed(self) -> None:
        """Called before the dual changes: Ctrl-C may come any time."""
        self._changes += 1
        if self._newton is not None:
            self._newton.forget()

    def constant_loss(self) -> float:
        """What its all-zero rows add to the primal and to the dual alike."""
        return 0.0 if self._state is None else self._state.problem.constant_loss

    def _seen(self, value: float = 0.0, n_visited: int = 0) -> PartSeen:
        dual_sum = 0.0 if self._state is None else self._state.dual_sum()
        return PartSeen(self.version, dual_sum, value, n_visited)

    # --- weights, as the problem has them and as local passes do ---------------------------------

    def _ratio(self) -> float:
        return self.common.intercept_scaling / self.common.constant

    def _local(self, state: State, W: Floats) -> Floats:
        weights = state.new_weights()
        weights[:, : self.common.n_classes] = W if self._features is None else W[self._features]
        if state.problem.has_intercept:  # the same scores
            weights[-1] *= self._ratio()
        return weights

    def _share(self, seen: PartSeen) -> Share:
        state = self._state
        if state is None:
            empty: Indices = np.empty(0, np.int64)
            return Share(empty, np.zeros((0, self.common.n_classes), self.common.dtype), (seen,))
        V = state.rebuild()[:, : self.common.n_classes]
        if state.problem.has_intercept:
            V[-1] *= self._ratio()
        return Share(self._features, np.ascontiguousarray(V), (seen,))

    # --- what is asked of it ---------------------------------------------------------------------

    def sweep(self, W: Floats, scale: float) -> Share:
        """A local pass from W, with curvature and updates times `scale`; then, ``V_m``."""
        state = self._state
        if state is None:
            return self._share(self._seen())
        state.W[:] = self._local(state, W)
        state.kappa = 1.0 / scale - 1.0
        visits = self._plan.next_pass()
        self._changed()
        totals = state.sweep(visits.order, self._mode)
        self._plan.after(visits, totals)
        return self._share(self._seen(totals.gap, len(visits.order)))

    def held(self) -> Share:
        """``V_m`` as it is."""
        return self._share(self._seen())

    def evaluate(self, W: Floats) -> PartSeen:
        """The sum of the losses at W; wakes the examples that violate."""
        state = self._state
        if state is None:
            return self._seen()
        losses = state.evaluate(self._local(state, W))
        self._plan.wake()
        return self._seen(float(losses.sum()))

    # --- Newton rounds: see NewtonSide ------------------------------------------------------------

    def _side(self, state: State) -> NewtonSide:
        if self._newton is None:
            self._newton = NewtonSide(state)
        return self._newton

    def look(self, at: Point) -> Share:
        """``V(N)`` at a point."""
        if self._state is None:
            return Share(None, np.zeros(self.common.shape), (self._seen(),))
        V, looked = self._side(self._state).look(at)
        return Share(None, V, (self._seen(),), (looked,))

    def times(self, at: Point, D: Doubles) -> Share:
        """``(H - I) D`` at a point."""
        V = np.zeros(self.common.shape)
        if self._state is not None:
            V = self._side(self._state).times(at, D)
        return Share(None, V, (self._seen(),))

    def blocks(self, at: Point) -> Share:
        """The blocks of ``H - I`` of each class at a point, a column each."""
        if self._state is None:
            rows, k = self.common.shape
            return Share(None, np.zeros((rows * rows, k)), ())
        return Share(None, self._side(self._state).blocks(at), ())

    def move(self, at: Point) -> Share:
        """Let the maximiser at a point be the dual; then, ``V_m``."""
        if self._state is not None:
            self.set_dual(self._side(self._state).maximiser(at))
        return self.held()

    # --- the rest --------------------------------------------------------------------------------

    def keep_awake(self) -> None:
        """Let all passes from now on visit all examples."""
        if self._state is not None:
            self._plan.keep_awake()

    def dual(self) -> tuple[sparse.csr_array, Version]:
        """``p`` of its examples, and which it is."""
        if self._state is None:
            empty = sparse.csr_array((len(self.y), self.common.n_classes), dtype=self.common.dtype)
            return empty, self.version
        return self._state.dual_block(), self.version

    def signed_dual(self) -> tuple[sparse.csr_array, Version]:
        """Rows ``a_i`` of its examples, and of which dual."""
        p, version = self.dual()
        return signed_dual(p, self.y, coupled=self.common.loss.coupled), version

    def held_dual(self) -> HeldDual:
        """What another fit needs to begin from its dual."""
        return HeldDual(self.dual()[0], self.c, self.y)

    def task(self) -> tuple[Codes, Doubles]:
        """Labels and costs."""
        return self.y, self.c

    def check_dual(self) -> None:
        """Raise where the dual is not feasible."""
        if self._state is not None:
            p = self._state.dual_block()
            audit.check_dual(self._state.problem, p.indptr, p.indices, p.data)

    def set_dual(self, p: sparse.csr_array) -> None:
        """Take over a dual."""
        if self._state is not None:
            self._changed()
            self._state.set_dual(p)

    def digest(self) -> str:
        """A hash of rows, labels and costs."""
        rows = "none" if self._state is None else self._state.problem.rows.digest()
        return digest_of(rows, self.y, self.c)


def _copied(
    number: int, X: Matrix, y: Codes, c: Doubles, common: Common, dual: sparse.csr_array
) -> Part:
    part = Part(number, X, y, c, common)
    part.set_dual(dual)
    return part
