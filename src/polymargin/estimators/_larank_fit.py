"""What LaRankClassifier needs beside a machine: one fit's decisions, and the model as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polymargin.estimators._kernel_prediction import kernel_scores
from polymargin.estimators._labels import StreamLabels
from polymargin.estimators._progress import PassReporter
from polymargin.estimators.compat import has_callbacks
from polymargin.solvers.larank import Certificate, LaRank, Model, certify
from polymargin.solvers.patterns import PrecomputedPatterns

if TYPE_CHECKING:
    from polymargin.estimators.larank import LaRankClassifier


class OnlineModel:
    """A machine with its labels, and copies of what it has learned.

    Make a new one when the machine has learned more.
    """

    def __init__(self, machine: LaRank, labels: StreamLabels) -> None:
        self.machine, self.labels = machine, labels

    @cached_property
    def _state(self) -> Model:
        return self.machine.model()

    @property
    def support(self) -> NDArray[np.int64]:
        """Numbers of the support patterns' examples."""
        return self._state.examples

    @cached_property
    def vectors(self) -> Any:
        """Rows of the support patterns."""
        return self.machine.vectors()

    @cached_property
    def dual_coef(self) -> NDArray:
        """Coefficients in the order of the sorted labels; one row for two classes."""
        beta = self._state.beta[self.labels.sorted_codes()].astype(self.machine.dtype)
        return beta[1:] - beta[:1] if len(beta) == 2 else beta

    @cached_property
    def n_support(self) -> NDArray[np.int64]:
        """Support patterns per class, in the order of the sorted labels."""
        codes = self.labels.sorted_codes()
        return np.bincount(self._state.y, minlength=len(codes))[codes]


def model_array(name: str) -> property:
    """An attribute of an estimator that is one of its model."""

    def get(self: LaRankClassifier) -> Any:
        if not hasattr(self, "_model"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        return getattr(self._model, name)

    return property(get)


class OneFit:
    """One call of fit: orders, certificates, and whether to stop."""

    def __init__(
        self,
        estimator: LaRankClassifier,
        machine: LaRank,
        X: Any,
        codes: NDArray[np.int32],
        reporter: PassReporter,
    ) -> None:
        self.estimator, self.machine, self.X, self.codes = estimator, machine, X, codes
        self.reporter = reporter if has_callbacks(estimator) else None
        self.certificate: Certificate | None = None
        self.n_gap_evaluations = 0
        self.n_epochs = 0
        self._bound = np.inf

    def orders(self, random: np.random.RandomState, n_epochs: int) -> Iterator[NDArray[np.int64]]:
        n = len(self.codes)
        for _ in range(n_epochs):
            self.certificate = None  # not that of the model that is going to be
            yield random.permutation(n) if self.estimator.shuffle else np.arange(n)

    def after_epoch(self, n_epochs: int) -> bool:
        self.n_epochs = n_epochs
        if self.estimator.tol is not None:
            self.certificate = certify(self.machine, self.codes, 0, self._scorer)
            self._bound = 0.5 * self._target / (len(self.codes) * self.estimator.C)
        if self.estimator.verbose:
            print(self._line())
        if self.reporter is not None:
            gap = np.nan if self.certificate is None else self.certificate.gap
            tol = self.estimator.tol if isinstance(self.estimator.tol, float) else 0.0
            n = len(self.codes)
            self.reporter(
                {
                    "pass": n_epochs,
                    "time": 0.0,
                    "gap": gap,
                    "certified_gap": gap,
                    "n_awake": n,
                    "tol": tol,
                }
            )
        return self.converged

    def tolerances(self) -> float:
        """Examples whose steps stay below tau add at most ``n C tau`` to the gap."""
        return self._bound

    @property
    def converged(self) -> bool:
        """Whether the last certificate is good enough."""
        if self.certificate is None:
            return False
        return self.certificate.primal - self.certificate.dual <= self._target

    @property
    def _target(self) -> float:
        assert self.certificate is not None
        if self.estimator.tol == "C":
            return self.estimator.C
        return self.estimator.tol * self.certificate.primal

    def _scorer(self, model: Model) -> Callable[[slice], NDArray]:
        self.n_gap_evaluations += len(self.codes) * len(model.examples)
        if isinstance(self.machine.patterns, PrecomputedPatterns):
            columns = model.examples
            return lambda rows: kernel_scores(None, self.X[rows][:, columns], None, model.beta)
        support = self.machine.vectors()
        function, n_jobs = self.estimator._kernel_function(), self.estimator.n_jobs
        return lambda rows: kernel_scores(function, self.X[rows], support, model.beta, n_jobs)

    def _line(self) -> str:
        line = f"epoch {self.n_epochs}: {self.machine.n_patterns} support patterns"
        if self.certificate is None:
            return f"{line}, dual {self.machine.dual:.6g}"
        c = self.certificate
        return f"{line}, primal {c.primal:.6g}, dual {c.dual:.6g}, relative gap {c.gap:.2g}"
