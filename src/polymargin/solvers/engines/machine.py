"""LaRank's machine (Bordes, Bottou, Gallinari and Weston 2007): it learns from batches of examples.

What happens within an epoch, the operations and the schedule that picks them, is in
``src/core/larank/``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from polymargin.arrays import Codes, Doubles, Indices, Matrix
from polymargin.core import core
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.engines.patterns import PatternStore
from polymargin.storage import Array

OPERATIONS = ("process_new", "process_old", "optimize")


@dataclass(frozen=True)
class MachineSettings:
    """What a machine is made with; the names are those of the paper."""

    C: float
    tau: float = 1e-4  # tolerance of a step (section 3.4)
    kappa: float = 1e-4  # and of its bounds, as a fraction of C
    eta: float = 0.05  # smallest probability of an operation
    operations: tuple[str, ...] = OPERATIONS[1:]  # those that the schedule may pick
    measure_time: bool = False  # whether an operation costs its duration; otherwise it is counted
    cache_size: float = 200.0  # megabytes for kernel values


class Model(NamedTuple):
    """Support patterns: numbers and classes of their examples, beta by class."""

    examples: Indices
    y: Codes
    beta: Doubles


class LaRank:
    """A machine that learns from batches of examples.

    It runs without the GIL. While one thread makes it learn, all others wait, or get the
    ``RuntimeError`` of its compiled part, as does a kernel that asks the machine it works for.
    `dtype` is that of the kernel values that are kept; `evaluation_cost` is the cost of a kernel
    evaluation where cost is counted, in gradient entries.
    """

    def __init__(
        self,
        settings: MachineSettings,
        patterns: PatternStore,
        dtype: DTypeLike,
        evaluation_cost: float,
        seed: int,
    ) -> None:
        self.settings = settings
        self.patterns = patterns
        self.evaluation_cost = evaluation_cost
        self.n_classes = 0
        self.n_seen = 0
        self._first = 0  # the number of the batch's first example
        self.dtype = np.dtype(dtype)
        self.costs: Doubles | None = None
        self._machine = self._new_machine(seed)
        self._working = False  # on a batch
        self.lock = threading.RLock()  # of who learns, and of who wants to see it whole

    # --- learning ---

    def work_on(self, X: Matrix, n_classes: int, work: Callable[[], None]) -> None:
        """Lend a batch while ``work`` learns from it, in epochs; other threads wait."""
        with self.lock:
            if self._working:
                raise RuntimeError(
                    "this LaRankClassifier is being trained, further up in this thread"
                )
            self.n_classes = max(self.n_classes, n_classes)
            self._first = self.n_seen
            self.n_seen += X.shape[0]
            try:
                self._working = True
                self.patterns.lend(X, self._first)
                work()
            finally:
                self._working = False
                self.patterns.give_back()

    def epoch(
        self, order: Indices, codes: Codes, bound: float = np.inf, keep_rows: bool = False
    ) -> None:
        """Process examples of the batch at hand, in this order, once.

        `bound` is an upper bound of tau and kappa; `keep_rows`: kernel values of examples that are
        no support patterns may be kept, of use when there is a next epoch.
        """
        self._machine.run(
            self.patterns.source,
            np.ascontiguousarray(order + self._first, dtype=np.int64),
            np.ascontiguousarray(codes, dtype=np.int32),
            self.n_classes,
            min(self.settings.tau, bound),
            min(self.settings.kappa, bound),
            self.evaluation_cost,
            keep_rows,
        )

    def set_costs(self, costs: Doubles | None) -> None:
        """Costs between classes, by code; None: 1 for every wrong class."""
        self.costs = costs
        self._machine.set_costs(np.empty((0, 0)) if costs is None else costs)

    def clear_cache(self) -> None:
        """Free the kernel values; those that are needed later are computed again."""
        self._machine.clear_cache()

    # --- the model ---

    @property
    def n_patterns(self) -> int:
        """The number of support patterns."""
        return self._machine.n_patterns

    @property
    def dual(self) -> float:
        """The dual objective, from the gradients of the support vectors."""
        return self._machine.dual

    def model(self) -> Model:
        """The support patterns and their coefficients."""
        with self.lock:
            state = self._export()
        beta = np.zeros((self.n_classes, len(state["examples"])))
        beta[state["classes"], state["patterns"]] = state["beta"]
        return Model(state["examples"], state["y"], beta)

    def vectors(self) -> Matrix:
        """A copy of the support patterns' rows, in the order of :meth:`model`."""
        with self.lock:
            return self.patterns.vectors(self._export()["slots"])

    def counts(self) -> dict[str, int]:
        """Operations by name, those that changed something, kernel evaluations and arg max."""
        counts = self._machine.counts
        return {
            **{name: counts[s] for s, name in enumerate(OPERATIONS)},
            **{f"{name}_steps": counts[3 + s] for s, name in enumerate(OPERATIONS)},
            "arg_max": counts[7],
        }

    # --- its state: the compiled part as arrays; cached kernel values are computed again ---

    def state_dict(self) -> Tree:
        """All of it as numbers and arrays, compacted; the patterns' rows apart."""
        with self.lock:
            self._machine.compact(self.patterns.source)
            state = self._export()
            del state["slots"]  # 0, 1, ... after compact
            return state | {
                "n_classes": self.n_classes,
                "n_seen": self.n_seen,
                "evaluation_cost": float(self.evaluation_cost),
                "counts": self._machine.counts,
                "rates": self._machine.rates,
                "random_state": self._machine.random_state,
            }

    def load_state_dict(self, state: Tree) -> None:
        """Go on from a state; the patterns must be those of its examples, in its order."""
        rest = dict(state)
        self.n_classes, self.n_seen = rest.pop("n_classes"), rest.pop("n_seen")
        self.evaluation_cost = rest.pop("evaluation_cost")
        counts, rates, random_state = (rest.pop(n) for n in ("counts", "rates", "random_state"))
        self._machine = self._new_machine(0)
        self._machine.import_state(self.n_classes, **rest)
        self._machine.counts, self._machine.rates = counts, rates
        self._machine.random_state = random_state
        self.set_costs(self.costs)

    def __getstate__(self) -> Tree:
        state = self.state_dict()
        made = (self.settings, self.patterns, self.dtype)
        return {"made": made, "state": state, "costs": self.costs}

    def __setstate__(self, pickled: Tree) -> None:
        settings, patterns, dtype = pickled["made"]
        self.__init__(settings, patterns, dtype, 1.0, 0)  # type: ignore[misc]
        self.costs = pickled.get("costs")
        self.load_state_dict(pickled["state"])

    def _new_machine(self, seed: int) -> core.LaRankF32 | core.LaRankF64:
        s = self.settings
        machine = core.LaRankF32 if self.dtype == np.float32 else core.LaRankF64
        return machine(
            C=s.C,
            eta=s.eta,
            measure_time=s.measure_time,
            process_old="process_old" in s.operations,
            optimize="optimize" in s.operations,
            cache_megabytes=s.cache_size,
            seed=seed,
        )

    def _export(self) -> dict[str, Array]:
        n, n_vectors = self.n_patterns, self._machine.n_support_vectors
        state: dict[str, Array] = {
            "slots": np.empty(n, np.int32),
            "examples": np.empty(n, np.int64),
            "y": np.empty(n, np.int32),
            "diagonal": np.empty(n),
            "patterns": np.empty(n_vectors, np.int32),
            "classes": np.empty(n_vectors, np.int32),
            "beta": np.empty(n_vectors),
            "gradient": np.empty(n_vectors),
        }
        self._machine.export_state(**state)
        return state
