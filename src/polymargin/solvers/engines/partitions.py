"""The engine of partitioned problems: a pass is a round of all partitions at once.

A round sends the weights W to every partition and takes back ``V = sum_m V_m``, added up in the
order of the partitions; what a partition does in between is in
:mod:`~polymargin.solvers.engines.part`. Around the rounds is the accelerated outer loop
(:mod:`~polymargin.solvers.acceleration`): ``W = (kappa Y + V) / (1 + kappa)``, Y extrapolated, a
moving average of W as the primal point. Without it the dual converges, but the primal lags and the
iterates circle.

A certificate takes two numbers of each partition, the sum of its losses and that of its dual. With
them comes the version of the dual. Where it is not the one that V was added up from (the partition
was lost and has begun anew, or a round was interrupted), V is asked for again: a certificate is of
what the partitions hold, or there is none.

Where the partitions are, a `Partitions` object knows. What they answer may depend on nothing but
their order and the seed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from polymargin.arrays import Floats
from polymargin.core import core
from polymargin.solvers import audit
from polymargin.solvers.acceleration import CONSTANTS, Control, Phase, loaded_control
from polymargin.solvers.certificate import Certificate, relative_gap, squared_norm
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.engines.base import Best, SavableEngine, SavedBest, Seen
from polymargin.solvers.engines.part import Common, Part, Share, Version, add_up
from polymargin.solvers.solution import best_factor
from polymargin.solvers.state import aligned_zeros, as_shown

FAN_IN = 8  # shares that are added up at a time
MOST_ATTEMPTS = 20  # at a certificate, while partitions are lost
# kappa by the number of partitions, measured on news20 and clinc150 (docs/beyond_one_machine.md)
KAPPA, KAPPA_POWER = 5.0, 1.0 / 3.0
# kappa_0 / M, in parts of the examples per class that the constant feature couples; 0.3: 1.0, 3: 2
CONSTANT_STRENGTH = 0.5

Duals = list[sparse.csr_array]


def initial_kappa(n_parts: int) -> float:
    """The proximal strength to start with."""
    return float(KAPPA * n_parts**KAPPA_POWER)


def local_constant(
    intercept_scaling: float, kappa: float, n_parts: int, per_class: float, mean_square: float
) -> float:
    """The value of the constant feature in local passes, for this many examples per class."""
    coupling = CONSTANT_STRENGTH * per_class * intercept_scaling**2 / max(mean_square, 1e-300)
    return intercept_scaling / math.sqrt(1.0 + n_parts * coupling / (1.0 + kappa))


class Partitions(ABC):
    """The partitions of a problem, wherever they are."""

    n: int

    @abstractmethod
    def call(self, method: str, *arguments: Any) -> list[Any]:
        """What a method of every `Part` gives, in their order."""

    @abstractmethod
    def total(self, method: str, *arguments: Any) -> Share:
        """The sum of the shares that a method of every `Part` gives."""

    @abstractmethod
    def set_duals(self, duals: Duals) -> None:
        """Give every partition a dual, also to begin from when it is lost."""

    def keep(self, duals: Duals) -> None:  # noqa: B027  # nothing is lost in one process
        """Duals to begin from where a partition is lost."""


class LocalPartitions(Partitions):
    """Partitions in this process, one after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self.n = len(self.parts)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """What a method of every `Part` gives, in their order."""
        return [getattr(part, method)(*arguments) for part in self.parts]

    def total(self, method: str, *arguments: Any) -> Share:
        """The sum of the shares that a method of every `Part` gives."""
        shape = self.parts[0].common.shape
        share: Share = in_groups(self.call(method, *arguments), add_up, shape)
        return share

    def set_duals(self, duals: Duals) -> None:
        """Give every partition a dual."""
        for part, dual in zip(self.parts, duals, strict=True):
            part.set_dual(dual)


def in_groups(shares: list[Any], add: Callable[..., Any], shape: tuple[int, int]) -> Any:
    """The sum, by groups of neighbours, of groups of neighbours, whoever adds them up."""
    while True:
        shares = [add(shares[i : i + FAN_IN], shape) for i in range(0, len(shares), FAN_IN)]
        if len(shares) == 1:
            return shares[0]


@dataclass(frozen=True)
class PartitionModel:
    """Weights (features and constant x classes), and the signed dual where it is kept."""

    weights: Floats
    dual: Duals | None


class PartitionEngine(SavableEngine[PartitionModel]):
    """Rounds over the partitions of a linear problem."""

    last_is_best = False

    def __init__(
        self, parts: Partitions, common: Common, kappa: float, n_busy: int, *, keep_dual: bool
    ) -> None:
        self.parts = parts
        self.common = common
        self._sigma = float(n_busy)  # partitions that have examples
        self._keep_dual = keep_dual
        self._kept: Duals | None = None
        lanes = core.vector_bytes // common.dtype.itemsize
        rows, k = common.shape
        shape = (rows, -(-k // lanes) * lanes)
        self.kappa = kappa
        self._W, self._Y, self._previous, self._mean, self._V = (
            aligned_zeros(shape, common.dtype) for _ in range(5)
        )
        self._control = Control(kappa, False, Phase.STEADY)
        self._rounds = 0
        self._versions: tuple[Version, ...] = ()
        self._dual_sum = 0.0
        self._constant_loss = float(sum(parts.call("constant_loss")))

    def start(self, duals: Duals) -> None:
        """Begin from these duals, or from the multiple of them that is best."""
        self.parts.set_duals(duals)
        self._take(self.parts.total("held"))
        factor = best_factor(1.0, self._dual_sum, squared_norm(self._V))
        if factor < 1.0:
            self.parts.set_duals([(dual * factor).tocsr() for dual in duals])
            self._take(self.parts.total("held"))
        for weights in (self._Y, self._previous, self._mean):
            weights[:] = self._V
        self._follow()

    # --- rounds ----------------------------------------------------------------------------------

    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """One round, and a step of the outer loop."""
        scale = self._sigma / (1.0 + self.kappa)
        seen = self._take(self.parts.total("sweep", self._sent(self._W), scale)).seen
        distance = self._step()
        dual = self._dual_sum - 0.5 * squared_norm(self._V) + self._constant_loss
        gap = sum(one.value for one in seen) + 0.5 * distance
        self._adapt(dual, gap)
        primal = dual + gap
        relative = relative_gap(gap, primal) if primal > 0 else math.inf
        return Seen(sum(one.n_visited for one in seen), gap=relative, dual=dual)

    def _sent(self, weights: Floats) -> Floats:
        return np.ascontiguousarray(weights[:, : self.common.n_classes])

    def _take(self, total: Share) -> Share:
        """V, and with it W, as the partitions say."""
        self._versions = ()  # until all of it is taken
        self._V[:, : self.common.n_classes] = total.V
        self._dual_sum = math.fsum(one.dual_sum for one in total.seen)
        self._versions = tuple(one.version for one in total.seen)
        self._follow()
        return total

    def _strengths(self) -> list[tuple[slice, float]]:
        """Rows of the weights, and their ``kappa``: that of the constant is another."""
        rows = self.common.n_features
        every = [(slice(0, rows), self.kappa)]
        if not self.common.intercept_scaling:
            return every
        ratio = self.common.intercept_scaling / self.common.constant
        return [*every, (slice(rows, None), (1.0 + self.kappa) * ratio**2 - 1.0)]

    def _follow(self) -> None:
        """``W = (kappa Y + V) / (1 + kappa)``."""
        for rows, kappa in self._strengths():
            W = self._W[rows]
            np.multiply(self._Y[rows], W.dtype.type(kappa), out=W)
            W += self._V[rows]
            W *= W.dtype.type(1.0 / (1.0 + kappa))

    def _step(self) -> float:
        """Extrapolate, and average W; returns ``||W - V||^2`` before."""
        root = math.sqrt(1.0 + self.kappa)
        self._rounds += 1
        blend = 1.0 / min(max(1.0, CONSTANTS.memory * (root - 1.0)), self._rounds)
        beta = (root - 1.0) / (root + 1.0)
        distance = 0.0
        for rows, kappa in self._strengths():
            arrays = (self._W[rows], self._Y[rows], self._previous[rows], self._mean[rows])
            w, v, both = core.extrapolate(*arrays, kappa, beta, blend)
            distance += max(0.0, w + v - 2.0 * both)
        return distance

    def _adapt(self, dual: float, gap: float) -> None:
        was_still = self._control.phase is Phase.STANDING_STILL
        kappa, start_over = self._control.after_pass(self.kappa, dual, gap)
        if kappa != self.kappa or start_over:
            self.kappa = kappa
            if start_over:
                self._Y[:] = self._previous
            self._follow()
        if self._control.phase is Phase.STANDING_STILL and not was_still:
            self.parts.call("keep_awake")

    # --- what it is worth ------------------------------------------------------------------------

    def certify(self) -> Certificate:
        """Exact objectives of the moving average and of the dual that the partitions hold."""
        point = self._sent(self._shown)
        for _ in range(MOST_ATTEMPTS):
            seen = self.parts.call("evaluate", point)
            agree = tuple(one.version for one in seen) == self._versions
            if self._keep_dual:
                duals = self.parts.call("signed_dual")
                self._kept = [dual for dual, _ in duals]
                agree &= tuple(version for _, version in duals) == self._versions
            if agree:
                primal = 0.5 * squared_norm(point) + math.fsum(one.value for one in seen)
                v = squared_norm(self._V)
                return Certificate(primal, self._dual_sum - 0.5 * v + self._constant_loss)
            self._take(self.parts.total("held"))
        raise RuntimeError(
            f"Partitions were lost in each of {MOST_ATTEMPTS} attempts to certify a model: workers "
            "come and go faster than they can answer."
        )

    def model(self, *, copy: bool) -> PartitionModel:
        """The moving average, and the dual of its certificate."""
        point = self._shown
        return PartitionModel(point.copy() if copy and point is self._mean else point, self._kept)

    @property
    def _shown(self) -> Floats:
        return as_shown(self._mean, self.common.n_classes)

    # --- checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> Tree:
        """Weights, control and duals; not when each example is visited next, nor random numbers."""
        duals: Duals = [dual for dual, _ in self.parts.call("dual")]
        self.parts.keep(duals)
        control = asdict(self._control) | {"phase": self._control.phase.value}
        state: Tree = {"Y": self._Y, "previous": self._previous, "mean": self._mean}
        state |= {"kappa": self.kappa, "rounds": self._rounds, "control": control}
        return state | {"duals": duals}

    def load_state_dict(self, state: Tree, best: SavedBest | None) -> Best[PartitionModel] | None:
        """Go on from there; not to the last bit, as everybody is awake."""
        k = self.common.n_classes
        for name in ("Y", "previous", "mean"):
            getattr(self, f"_{name}")[:] = audit.weights(state, name, self._W, k)
        self.kappa = audit.number(state, "kappa", 0.0)
        self._rounds = audit.count(state, "rounds")
        self._control = loaded_control(state["control"])
        duals = state["duals"]
        good = isinstance(duals, list) and len(duals) == self.parts.n
        good = good and all(sparse.issparse(one) and one.shape[1] == k for one in duals)
        audit.require(good, "its duals are not those of the partitions")
        self.parts.set_duals(duals)
        self.parts.call("check_dual")
        self._take(self.parts.total("held"))
        return None if best is None else self._certified(best)

    def _certified(self, best: SavedBest) -> Best[PartitionModel]:
        """The best model with a certificate of the dual that the partitions have now."""
        weights = audit.weights(best.model, "weights", self._W, self.common.n_classes)
        mean, self._mean = self._mean, weights
        found = self.certify()
        self._mean = mean
        audit.require(found.gap < math.inf, f"its best model has the objectives {found}")
        return Best(found, PartitionModel(weights, self._kept))

    def model_state(self, model: PartitionModel) -> Tree:
        """A model as arrays."""
        return {"weights": model.weights}
