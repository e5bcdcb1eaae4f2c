"""LaRank (Bordes, Bottou, Gallinari and Weston 2007): epochs, certificates and when to stop.

What happens within an epoch, the operations and the schedule that picks them, is in
``src/core/larank/``. Here are the passes over the examples and the duality gap

    P - D,   P = 1/2 ||w||^2 + C sum_i max(0, 1 + max_{y != y_i} S(x_i, y) - S(x_i, y_i)),

where D and ||w||^2 come from freshly computed scores, not from the gradients that training keeps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polymargin.core import core
from polymargin.solvers.patterns import PatternStore, Rows, Values

OPERATIONS = ("process_new", "process_old", "optimize")
CERTIFY_ROWS = 4096


@dataclass(frozen=True)
class Settings:
    """What a machine is made with; the names are those of the paper.

    Attributes
    ----------
    C : float
        Weight of the loss.
    tau, kappa : float
        Tolerances of a step and of its bounds (section 3.4), kappa as a fraction of C.
    eta : float
        Smallest probability of an operation.
    operations : tuple of str
        Those of "process_old" and "optimize" that the schedule may pick.
    measure_time : bool
        Whether the cost of an operation is its duration; otherwise it is counted.
    cache_size : float
        Megabytes for kernel values.
    """

    C: float
    tau: float = 1e-4
    kappa: float = 1e-4
    eta: float = 0.05
    operations: tuple[str, ...] = OPERATIONS[1:]
    measure_time: bool = False
    cache_size: float = 200.0


@dataclass(frozen=True)
class Certificate:
    """Both objectives at one moment."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """``(P - D) / P``; 0 where both are 0."""
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


class Model(NamedTuple):
    """Support patterns: numbers and classes of their examples, beta by class."""

    examples: NDArray[np.int64]
    y: NDArray[np.int32]
    beta: NDArray[np.float64]


class MachineInUseError(RuntimeError):
    """Another thread is training the machine; nothing was changed."""


class LaRank:
    """A machine that learns from batches of examples.

    It runs without the GIL. While one thread makes it learn, all others get a
    :class:`MachineInUseError`, or the ``RuntimeError`` of its compiled part.

    Parameters
    ----------
    settings : Settings
    patterns : PatternStore
        Where the support patterns are kept.
    dtype : dtype
        float32 or float64: the type of the kernel values that are kept.
    evaluation_cost : float
        The cost of a kernel evaluation where cost is counted, in gradient entries.
    seed : int
    """

    def __init__(
        self,
        settings: Settings,
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
        self.dtype = np.dtype(dtype)
        self._machine = self._new_machine(seed)
        self._lock = threading.RLock()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out."""
        if not self._lock.acquire(blocking=False):
            raise MachineInUseError("this LaRankClassifier is being trained by another thread")
        try:
            yield
        finally:
            self._lock.release()

    # --- learning ---

    def learn(
        self,
        X: Rows,
        codes: NDArray[np.int32],
        n_classes: int,
        orders: Iterator[NDArray[np.int64]],
        *,
        after_epoch: Callable[[int], bool],
        tolerances: Callable[[], float] = lambda: np.inf,
        keep_rows: bool = False,
    ) -> int:
        """Make epochs over a batch until `after_epoch`, or the end of `orders`, says to stop.

        Parameters
        ----------
        X : array or CSR
        codes : int32 array
            Class codes below `n_classes`.
        orders : iterator of int64 arrays
            The order of the examples in every epoch.
        after_epoch : callable
            Called with the number of epochs made; True stops.
        tolerances : callable
            Upper bound of tau and kappa in the next epoch.
        keep_rows : bool
            Whether kernel values of examples that are no support patterns may be kept: of use
            when there is a next epoch.

        Returns
        -------
        int
            Number of epochs.
        """
        epochs = 0
        with self._alone():
            self.n_classes = max(self.n_classes, n_classes)
            first = self.n_seen
            self.n_seen += X.shape[0]
            self.patterns.lend(X, first)
            try:
                for order in orders:
                    self._run(first, order, codes[order], tolerances(), keep_rows)
                    epochs += 1
                    if after_epoch(epochs):
                        break
            finally:
                self.patterns.give_back()
        return epochs

    def _run(
        self,
        first: int,
        order: NDArray[np.int64],
        y: NDArray[np.int32],
        bound: float,
        keep_rows: bool,
    ) -> None:
        self._machine.run(
            self.patterns.source,
            np.ascontiguousarray(order + first, dtype=np.int64),
            np.ascontiguousarray(y, dtype=np.int32),
            self.n_classes,
            min(self.settings.tau, bound),
            min(self.settings.kappa, bound),
            self.evaluation_cost,
            keep_rows,
        )

    def clear_cache(self) -> None:
        """Free the kernel values; those that are needed later are computed again."""
        self._machine.clear_cache()

    # --- the model ---

    @property
    def n_patterns(self) -> int:
        """The number of support patterns."""
        return int(self._machine.n_patterns)

    @property
    def dual(self) -> float:
        """The dual objective, from the gradients of the support vectors."""
        return float(self._machine.dual)

    def model(self) -> Model:
        """The support patterns and their coefficients."""
        with self._alone():
            state = self._export()
        beta = np.zeros((self.n_classes, len(state["examples"])))
        beta[state["classes"], state["patterns"]] = state["beta"]
        return Model(state["examples"], state["y"], beta)

    def vectors(self) -> Rows:
        """A copy of the support patterns' rows, in the order of :meth:`model`."""
        with self._alone():
            return self.patterns.vectors(self._export()["slots"])

    def counts(self) -> dict[str, int]:
        """Operations by name, those that changed something, kernel evaluations and arg max."""
        counts = self._machine.counts
        return {
            **{name: int(counts[s]) for s, name in enumerate(OPERATIONS)},
            **{f"{name}_steps": int(counts[3 + s]) for s, name in enumerate(OPERATIONS)},
            "arg_max": int(counts[7]),
        }

    # --- pickling: the compiled part as arrays; cached kernel values are computed again ---

    def __getstate__(self) -> dict[str, Any]:
        with self._alone():
            self._machine.compact(self.patterns.source)
            state = self.__dict__.copy()
            del state["_machine"], state["_lock"]
            state["_exported"] = (
                self._export(),
                self._machine.counts,
                self._machine.rates,
                self._machine.random_state,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        exported, counts, rates, random_state = state.pop("_exported")
        del exported["slots"]  # 0, 1, ... after compact
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._machine = self._new_machine(0)
        self._machine.import_state(self.n_classes, **exported)
        self._machine.counts, self._machine.rates = counts, rates
        self._machine.random_state = random_state

    def _new_machine(self, seed: int) -> Any:
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

    def _export(self) -> dict[str, NDArray[Any]]:
        n, n_vectors = self.n_patterns, int(self._machine.n_support_vectors)
        state: dict[str, NDArray[Any]] = {
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


def certify(
    machine: LaRank,
    codes: NDArray[np.int32],
    first: int,
    scorer: Callable[[Model], Callable[[slice], Values]],
) -> Certificate:
    """Compute both objectives over a batch that holds all support patterns.

    Parameters
    ----------
    machine : LaRank
    codes : int32 array
        Class codes of the batch.
    first : int
        Number of the batch's first example.
    scorer : callable
        ``scorer(model)(rows)``: the scores of these rows of the batch, (len(rows), n_classes).
    """
    model = machine.model()
    examples, beta = model.examples, model.beta
    scores = scorer(model)
    of_example = np.full(len(codes), -1)
    of_example[examples - first] = np.arange(len(examples))
    loss = squared_norm = 0.0
    for start in range(0, len(codes), CERTIFY_ROWS):
        rows = slice(start, min(start + CERTIFY_ROWS, len(codes)))
        S = np.asarray(scores(rows), dtype=np.float64)
        slots = of_example[rows]
        is_pattern = slots >= 0
        squared_norm += float(np.sum(beta.T[slots[is_pattern]] * S[is_pattern]))
        y = codes[rows]
        own = S[np.arange(len(y)), y]
        S[np.arange(len(y)), y] = -np.inf
        loss += float(np.maximum(0.0, 1.0 + S.max(axis=1) - own).sum())
    dual = float(np.maximum(beta, 0.0).sum()) - 0.5 * squared_norm
    return Certificate(0.5 * squared_norm + machine.settings.C * loss, dual)
