"""The folds of a problem: one X for all, the examples a fold holds out cost nothing.

Of a kernel machine they share one kernel matrix, where it fits in memory.
"""

from __future__ import annotations

import copy
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Generic

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_method_params

from polymargin.arrays import Doubles, Floats, Indices, Matrix, MatrixLike
from polymargin.estimators._advice import advice_on_many
from polymargin.estimators._base import CertifiedClassifier, Prepared, ProblemT, SolutionT
from polymargin.estimators._progress import StopRequested
from polymargin.estimators._search import FoldStep
from polymargin.estimators._target import encode_target
from polymargin.estimators.kernel import KernelMulticlassSVC
from polymargin.estimators.linear import LinearMulticlassSVC, check_overflow
from polymargin.kernel_functions import SharedKernel, TrainingKernel, training_kernel
from polymargin.problem import KernelProblem, Problem
from polymargin.solvers import DualSolver, Solution, Status
from polymargin.solvers.kernel import KernelSolution, KernelSolver
from polymargin.solvers.progress import Record


class ModelFolds(ABC, Generic[ProblemT, SolutionT]):
    """Trains and scores every fold along a grid of C, ascending.

    The model has the settings of all models, `classes_` and `n_features_in_`; `prepared` is all
    examples, with C = 1, and `score_params` what the scorer gets besides, for all examples.
    """

    def __init__(
        self,
        model: CertifiedClassifier[ProblemT, SolutionT],
        prepared: Prepared[ProblemT],
        splits: Sequence[tuple[Indices, Indices]],
        Cs: Doubles,
        scorer: Callable[..., float],
        score_params: dict[str, object],
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
        self._get_ready()

    def _get_ready(self) -> None:
        """Do what the folds need besides."""

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
    def _solutions(self, fold: int) -> Iterator[tuple[ProblemT, SolutionT]]:
        """The problem and its solution, once per C."""

    @abstractmethod
    def _fitted(self, fold: int, C: float, X: Matrix) -> CertifiedClassifier[ProblemT, SolutionT]:
        """A model to be given the attributes of a fit, then to score the held-out rows X."""

    def _look(self, record: Record) -> None:
        if self._stopped.is_set():
            raise StopRequested

    def _cost(self, fold: int, train: Indices, weight: Doubles) -> Doubles:
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
            f"{worst:.2g}. Their scores may be off. "
            f"{advice_on_many(step.status for step in open_ends)}, or leave out the largest values "
            "of C.",
            ConvergenceWarning,
            stacklevel=6,  # the caller of fit, which scikit-learn wraps
        )


class LinearFolds(ModelFolds[Problem, Solution]):
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

    def _fitted(self, fold: int, C: float, X: Matrix) -> LinearMulticlassSVC:
        fitted: LinearMulticlassSVC = copy.copy(self._model).set_params(C=C, store_dual=False)
        return fitted


class KernelFolds(ModelFolds[KernelProblem, KernelSolution]):
    """The folds of a kernel problem.

    They have the kernel matrix of all examples as `shared`, if it was given or takes at most
    `cache_size`; else None.
    """

    def _get_ready(self) -> None:
        self._cache_bytes = int(self._model.cache_size * 2**20)
        kernel = self._problem.kernel
        fits = kernel.n**2 * kernel.dtype.itemsize <= self._cache_bytes
        self.shared = SharedKernel(kernel) if fits or kernel.function is None else None
        if self.shared is not None:
            self._model._shared_kernel = self.shared  # for the refit
        self._kernels = [self.shared or self._own_kernel() for _ in range(len(self))]

    def _own_kernel(self) -> TrainingKernel:
        kernel = self._problem.kernel
        return training_kernel(kernel.X, kernel.function)

    @property
    def n_kernel_evaluations(self) -> int:
        """Kernel values computed so far."""
        if self.shared is not None:
            return self.shared.n_evaluations
        return sum(kernel.n_evaluations for kernel in self._kernels)

    def _solutions(self, fold: int) -> Iterator[tuple[KernelProblem, KernelSolution]]:
        solver = KernelSolver() if self._model.solver is None else self._model.solver
        solution = None
        for C in self.Cs:
            problem = replace(self._problem, kernel=self._kernels[fold], c=C * self._costs[fold])
            solution = solver.solve(
                problem,
                tol=self._model.tol,
                max_iter=self._model.max_iter,
                cache_bytes=self._cache_bytes,
                random_state=self._seeds[fold],
                start=solution,
                progress=self._look,
            )
            yield problem, solution

    def _fitted(self, fold: int, C: float, X: Matrix) -> FoldModel:
        fitted: FoldModel = FoldModel(**self._model.get_params(deep=False)).set_params(C=C)
        for name in ("classes_", "gamma_", "n_features_in_", "feature_names_in_"):
            if hasattr(self._model, name):
                setattr(fitted, name, getattr(self._model, name))
        fitted._held_out = (X, self._kernels[fold], self._held_out[fold])
        return fitted


class FoldModel(KernelMulticlassSVC):
    """A fold's model. It knows the examples it is to score: their kernel values may be at hand."""

    _held_out: tuple[Matrix, TrainingKernel, Indices]

    def decision_function(self, X: MatrixLike) -> Floats:
        """As always; the rows that the fold holds out need not be compared anew."""
        rows, kernel, held_out = self._held_out
        if X is not rows:
            return super().decision_function(X)
        scores = kernel.times(held_out, self.support_, self.dual_coef_.T).astype(kernel.dtype)
        return scores.ravel() if len(self.classes_) == 2 else scores
