"""The folds of a problem: one X for all, the examples a fold holds out cost nothing."""

from __future__ import annotations

import copy
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_method_params

from polymargin.estimators._base import Prepared
from polymargin.estimators._progress import StopRequested
from polymargin.estimators._search import FoldStep
from polymargin.estimators._target import encode_target
from polymargin.estimators.linear import LinearMulticlassSVC, check_overflow
from polymargin.problem import Problem
from polymargin.solvers import DualSolver, Solution, Status
from polymargin.solvers.progress import Record
from polymargin.solvers.solution import DualSolution


class ModelFolds(ABC):
    """Trains and scores every fold along a grid of C.

    Parameters
    ----------
    model : estimator
        With the settings of all models, `classes_` and `n_features_in_`.
    prepared : Prepared
        All examples, with C = 1.
    splits : sequence of (train, test)
        Rows of every fold.
    Cs : float64 ndarray
        Values of C, ascending.
    scorer : callable
    score_params : dict
        What else the scorer gets, for all examples.
    """

    def __init__(
        self,
        model: Any,
        prepared: Prepared[Any],
        splits: Sequence[tuple[Any, Any]],
        Cs: NDArray[np.float64],
        scorer: Callable[..., float],
        score_params: dict[str, Any],
    ) -> None:
        self.Cs = Cs
        self._model = model
        self._X = prepared.X
        self._y = prepared.y
        self._problem = prepared.problem
        self._scorer = scorer
        self._score_params = score_params
        everyone = np.arange(len(prepared.y))
        self._held_out = [everyone[test] for _, test in splits]
        self._costs = [
            self._cost(fold, everyone[train], prepared.weight)
            for fold, (train, _) in enumerate(splits)
        ]
        self._seeds = check_random_state(model.random_state).randint(
            np.iinfo(np.int32).max, size=len(splits)
        )
        self._stopped = threading.Event()

    def __len__(self) -> int:
        return len(self._costs)

    def stop(self) -> None:
        """Make every fold end at its next pass."""
        self._stopped.set()

    def path(self, fold: int) -> Iterator[FoldStep]:
        """Train and score one fold, once per C."""
        held_out = self._held_out[fold]
        X, y = _safe_indexing(self._X, held_out), self._y[held_out]
        params = _check_method_params(self._X, self._score_params, indices=held_out)
        for C, (problem, solution) in zip(self.Cs, self._solutions(fold), strict=True):
            if solution.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            fitted = self._fitted(fold, C, X)
            fitted._set_fitted(self._model.classes_, problem, solution)
            score = float(self._scorer(fitted, X, y, **params))
            if not np.isfinite(score):
                raise ValueError(f"scoring gave {score} for C={C:g} in fold {fold + 1}.")
            yield FoldStep(score, solution.gap, solution.n_iter, solution.status)

    @abstractmethod
    def _solutions(self, fold: int) -> Iterator[tuple[Any, DualSolution]]:
        """The problem and its solution, once per C."""

    @abstractmethod
    def _fitted(self, fold: int, C: float, X: Any) -> Any:
        """A model to be given the attributes of a fit, then to score the held-out rows X."""

    def _look(self, record: Record) -> None:
        if self._stopped.is_set():
            raise StopRequested

    def _cost(
        self, fold: int, train: NDArray[np.int64], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Costs of a fold at C = 1: a row weighs as often as it occurs in the training part."""
        if len(train) == 0 or len(self._held_out[fold]) == 0:
            part = "train on" if len(train) == 0 else "score"
            raise ValueError(f"Fold {fold + 1} has no examples to {part}.")
        counts = np.bincount(train, minlength=len(weight))
        classes = self._model.classes_
        present = np.isin(classes, self._y[(counts > 0) & (weight > 0)])
        if not present.all():
            raise ValueError(
                f"Fold {fold + 1} has no example of the class(es) {classes[~present].tolist()} to "
                "train on: every class must occur in the training part of every fold. Use fewer "
                "folds or stratified ones, or leave rare classes out."
            )
        return encode_target(
            self._y, C=1.0, sample_weight=weight * counts, class_weight=self._model.class_weight
        ).c

    def warn_unless_converged(self, steps: list[list[FoldStep]], name: str) -> None:
        """Say how many of the folds' models stopped early."""
        open_ends = [step for found in steps for step in found if step.status.is_early]
        if not open_ends:
            return
        worst = max(step.gap for step in open_ends)
        warnings.warn(
            f"{name}: {len(open_ends)} of {sum(map(len, steps))} models of the folds stopped before"
            f" their tolerance of {self._model.tol:g}, the worst at a relative duality gap of "
            f"{worst:.2g}. Their scores may be off. Increase max_iter or tol, scale the features, "
            "or leave out the largest values of C.",
            ConvergenceWarning,
            stacklevel=5,  # the caller of fit, which scikit-learn wraps
        )


class LinearFolds(ModelFolds):
    """The folds of a linear problem."""

    def _solutions(self, fold: int) -> Iterator[tuple[Problem, Solution]]:
        problem = self._problem.with_cost(self._costs[fold])
        solver = DualSolver() if self._model.solver is None else self._model.solver
        for solution in solver.solve_path(
            problem,
            self.Cs,
            tol=self._model.tol,
            max_iter=self._model.max_iter,
            random_state=self._seeds[fold],
            progress=self._look,
        ):
            if solution.status is not Status.INTERRUPTED:
                check_overflow(solution)
            yield problem, solution

    def _fitted(self, fold: int, C: float, X: Any) -> LinearMulticlassSVC:
        return copy.copy(self._model).set_params(C=C, store_dual=False)
