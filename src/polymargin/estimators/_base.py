"""The one fit: validate, make the problem, solve it, set the fitted attributes, warn.

An estimator says what its problem is, who solves it and what the fitted attributes are; everything
else of a fit is here, for single models, cross-validated ones and paths.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from polymargin.arrays import Attributes, Matrix, MatrixLike, precisions
from polymargin.data import Rows, as_rows, check_sparse_structure
from polymargin.estimators._advice import above_optimum, advice, measure
from polymargin.estimators._html import CertificateHTMLMixin
from polymargin.estimators._progress import PassReporter
from polymargin.estimators._target import EncodedTarget, encode_target
from polymargin.estimators._threads import SeenAtOnce, alone, publish, still
from polymargin.estimators.compat import CallbackSupportMixin, check_sample_weight, has_callbacks
from polymargin.estimators.probabilities import FOLD_TOL, fit_temperature, held_out_parts
from polymargin.problem import Examples
from polymargin.solvers import Status
from polymargin.solvers.progress import Progress
from polymargin.solvers.settings import draw_seed
from polymargin.solvers.solution import DualSolution, Outcome, fits

ProblemT = TypeVar("ProblemT", bound=Examples)
SolutionT = TypeVar("SolutionT", bound=Outcome)

CERTIFIED = ("objective_", "dual_objective_", "dual_gap_", "n_iter_", "history_", "temperature_")


@dataclass(frozen=True)
class Prepared(Generic[ProblemT]):
    """Input that has been validated, and the problem made of it."""

    X: Matrix
    y: NDArray
    weight: NDArray[np.float64]  # of the examples
    given: bool  # by the caller
    target: EncodedTarget
    problem: ProblemT

    @property
    def given_weight(self) -> NDArray[np.float64] | None:
        """The weights, if the caller gave any."""
        return self.weight if self.given else None

    @property
    def hook_arguments(self) -> Attributes:
        """What callbacks may ask for."""
        metadata = {"metadata": {"sample_weight": self.weight}} if self.given else {}
        return {"X": self.X, "y": self.y, **metadata}


class CertifiedClassifier(
    SeenAtOnce,
    CertificateHTMLMixin,
    CallbackSupportMixin,
    BaseEstimator,
    Generic[ProblemT, SolutionT],
):
    """A classifier that minimises a problem and proves how well."""

    C: float
    tol: float
    max_iter: int
    class_weight: Mapping[Any, float] | str | None
    warm_start: bool
    classes_: NDArray
    _fitted_names: ClassVar[tuple[str, ...]]  # set by a fit, `classes_` apart; the only list
    _unit_of_work: ClassVar[str] = "passes"
    _limit: ClassVar[str] = "max_iter"  # the parameter that limits them

    # --- what an estimator says ------------------------------------------------------------------

    @abstractmethod
    def _problem(self, X: Matrix, target: EncodedTarget) -> ProblemT:
        """The problem of validated data."""

    @abstractmethod
    def _solve(
        self, problem: ProblemT, start: SolutionT | None, progress: Progress | None
    ) -> SolutionT:
        """Its solution."""

    @abstractmethod
    def _attributes(self, classes: NDArray, problem: ProblemT, solution: SolutionT) -> Attributes:
        """The fitted attributes besides those of the certificate."""

    # --- the fit ---------------------------------------------------------------------------------

    def _fit(self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        work = still(self)  # until there is a model, nothing of the object itself changes
        before = dict(vars(work))
        with work._at_hand(X, y) as X:
            prepared = work._prepare(X, y, sample_weight, C=work.C)
            arguments = prepared.hook_arguments
            context = self._init_callback_context(max_subtasks=self._most_passes)
            context.call_on_fit_task_begin(estimator=self, **arguments)
            reporter = PassReporter(context, self, arguments)
            progress = reporter if has_callbacks(self) else None
            start = work._start_for(prepared.problem)
            solution = work._solve(prepared.problem, start, progress)
            work._set_fitted(prepared.target.classes, prepared.problem, solution)
            try:
                if solution.status is Status.INTERRUPTED and not reporter.stopped:
                    raise KeyboardInterrupt
                work._add_to_fit(prepared, solution)
                publish(self, work, before)
            except BaseException:
                publish(self, work, before)  # the model is a whole one
                raise
            self._warn_unless_converged(solution, prepared)
            context.call_on_fit_task_end(estimator=self, **arguments, reconstruction_attributes={})
            return self

    def _at_hand(self, X: MatrixLike, y: ArrayLike | None) -> AbstractContextManager[MatrixLike]:
        """The data, where something can be made of them, for the time of a fit."""
        return nullcontext(X)

    def _add_to_fit(self, prepared: Prepared[ProblemT], solution: SolutionT) -> None:
        """What is learned besides, once the fitted attributes are set."""

    def _prepare(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, C: float
    ) -> Prepared[ProblemT]:
        """Validate the input and make the problem of it."""
        X, y = self._validate_training_data(X, y)
        weight = check_sample_weight(sample_weight, X)
        target = encode_target(y, C=C, sample_weight=weight, class_weight=self.class_weight)
        problem = self._problem(X, target)
        return Prepared(X, y, weight, sample_weight is not None, target, problem)

    def _validate_training_data(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        *,
        reset: bool = True,
        check_labels: Callable[[NDArray], None] = check_classification_targets,
    ) -> tuple[Matrix, NDArray]:
        """Check data and labels; values and CSR index arrays are left to :func:`checked_rows`."""
        if getattr(X, "format", None) != "csr":
            check_sparse_structure(X)
        matrix, labels = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self._accepts_sparse else False,
            dtype=precisions(X),
            order="C",
            reset=reset,
            ensure_all_finite=False,
        )
        check_labels(labels)
        return matrix, labels

    @property
    def _most_passes(self) -> int:
        return self.max_iter

    @property
    def _accepts_sparse(self) -> bool:
        return True

    def _start_for(self, problem: ProblemT) -> SolutionT | None:
        """The previous solution, if its dual means something for this problem."""
        kept: SolutionT | None = getattr(self, "_warm_start_state", None)
        usable = self.warm_start and isinstance(kept, DualSolution) and fits(problem, kept)
        return kept if usable else None

    def _set_fitted(self, classes: NDArray, problem: ProblemT, solution: SolutionT) -> None:
        """Replace the fitted attributes by those of a solution."""
        found = self._attributes(classes, problem, solution) | {
            "classes_": classes,
            "objective_": solution.primal,
            "dual_objective_": solution.dual,
            "dual_gap_": solution.gap,
            "n_iter_": solution.n_iter,
            "history_": solution.history,
        }
        if self.warm_start:
            found["_warm_start_state"] = solution
        fresh = {k: v for k, v in vars(self).items() if k not in self._stale_names()} | found
        self.__dict__ = fresh

    def _stale_names(self) -> tuple[str, ...]:
        """What a new fit makes untrue."""
        return (*self._fitted_names, "_warm_start_state")

    def _warn_unless_converged(self, solution: SolutionT, prepared: Prepared[ProblemT]) -> None:
        if not solution.status.is_early:
            return
        stalled = solution.status is Status.STALLED
        by_passes = solution.status is Status.MAX_ITER
        limit = self._limit if by_passes else str(solution.status)
        reason = "the precision of its kernel values" if stalled else f"its {limit}"
        solver = getattr(self, "solver", None)
        to_try = advice(
            solution.status,
            measure(prepared.problem, prepared.X),
            C=self.C,
            limit=self._limit,
            tol=self.tol,
            history=solution.history,
            time_limit=getattr(solver, "time_limit", None),
        )
        warnings.warn(
            f"{type(self).__name__} stopped at {reason} after {solution.n_iter} "
            f"{self._unit_of_work}, at a relative duality gap of {solution.gap:.2g} "
            f"(tol={self.tol}): {above_optimum(solution.gap)}. {to_try}",
            ConvergenceWarning,
            stacklevel=6,  # the caller of fit, which scikit-learn wraps
        )


class WeightedClassifier(CertifiedClassifier[ProblemT, SolutionT]):
    """One whose examples may have weights, and whose scores may become probabilities."""

    @property
    @abstractmethod
    def _needs_temperature(self) -> bool:
        """Whether a fit must learn what scores are divided by."""

    @alone
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or kernel values (n_samples, n_samples) for a precomputed kernel. float32
            and float64 are kept, float16 becomes float32, other types float64. C-contiguous arrays
            and canonical CSR matrices are not copied. Linear models also take a data directory (its
            path, or what :func:`polymargin.io.open_directory` gives) and a
            :class:`polymargin.io.BlockSource`.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted. Directories and sources have their own.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, not negative.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _add_to_fit(self, prepared: Prepared[Any], solution: Any) -> None:
        """Fit a temperature on scores of models that are not trained on the examples they score."""
        if not self._needs_temperature:
            return
        problem, seed = prepared.problem, draw_seed(self.random_state)
        parts = held_out_parts(problem.y, problem.c, problem.n_classes, seed)
        scores = [self._held_out_scores(prepared, solution, part, seed) for part in parts]
        held = np.concatenate(parts)
        self.temperature_ = fit_temperature(
            np.concatenate(scores), problem.y[held], problem.c[held]
        )

    def _held_out_scores(
        self, prepared: Prepared[Any], solution: Any, part: NDArray[np.intp], seed: int
    ) -> NDArray:
        """Scores of a part of the examples, by a model that is trained on the others."""
        c = prepared.problem.c.copy()
        c[part] = 0.0
        keep = sparse.diags_array((c > 0).astype(solution.block.dtype))
        block = sparse.csr_array(keep @ solution.block)
        block.eliminate_zeros()
        problem = prepared.problem.with_cost(c)
        model = copy.copy(self)
        model.__dict__.pop("feature_names_in_", None)  # what it scores has none
        others = {"checkpoint": None, "store_dual": False, "warm_start": False, "verbose": 0}
        for name, value in others.items():
            if hasattr(model, name):
                setattr(model, name, value)
        model.tol, model.random_state = max(self.tol, FOLD_TOL), seed
        found = model._solve(problem, replace(solution, block=block), None)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        model._set_fitted(prepared.target.classes, problem, found)
        scores: NDArray = model.decision_function(_safe_indexing(prepared.X, part))
        return scores


def checked_rows(estimator: BaseEstimator, X: Matrix) -> Rows:
    """The rows of validated data, whose values are looked at here."""
    try:
        return as_rows(X)
    except ValueError:
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")  # says more
        raise


def n_threads(n_jobs: int | None) -> int:
    """Resolve `n_jobs` without regard to a surrounding parallel backend, for reproducibility."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give a number of threads, or -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + int(n_jobs))
