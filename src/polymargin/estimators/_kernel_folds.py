"""The folds of a kernel machine: one kernel matrix for all, where it fits in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.arrays import MatrixLike
from polymargin.estimators._base import Prepared
from polymargin.estimators._folds import ModelFolds
from polymargin.estimators.kernel import KernelMulticlassSVC
from polymargin.kernel_functions import SharedKernel, TrainingKernel
from polymargin.problem import KernelProblem
from polymargin.solvers.kernel import KernelSolution, KernelSolver


class KernelFolds(ModelFolds):
    """The folds of a kernel problem.

    Attributes
    ----------
    shared : SharedKernel or None
        The kernel matrix of all examples, if it was given or takes at most `cache_size`.
    """

    def __init__(
        self, model: KernelMulticlassSVC, prepared: Prepared[KernelProblem], *others: Any
    ) -> None:
        super().__init__(model, prepared, *others)
        self._cache_bytes = int(model.cache_size * 2**20)
        kernel = prepared.problem.kernel
        fits = kernel.n**2 * kernel.dtype.itemsize <= self._cache_bytes
        self.shared = SharedKernel(kernel) if fits or kernel.function is None else None
        if self.shared is not None:
            model._shared_kernel = self.shared  # for the refit
        self._kernels = [self.shared or self._own_kernel() for _ in range(len(self))]

    def _own_kernel(self) -> TrainingKernel:
        kernel = self._problem.kernel
        return TrainingKernel(kernel.X, kernel.function)

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

    def _fitted(self, fold: int, C: float, X: Any) -> FoldModel:
        fitted = FoldModel(**self._model.get_params(deep=False)).set_params(C=C)
        for name in ("classes_", "gamma_", "n_features_in_", "feature_names_in_"):
            if hasattr(self._model, name):
                setattr(fitted, name, getattr(self._model, name))
        fitted._held_out = (X, self._kernels[fold], self._held_out[fold])
        return fitted


class FoldModel(KernelMulticlassSVC):
    """A fold's model. It knows the examples it is to score: their kernel values may be at hand."""

    _held_out: tuple[Any, TrainingKernel, NDArray[np.int64]]

    def decision_function(self, X: MatrixLike) -> NDArray:
        """As always; the rows that the fold holds out need not be compared anew."""
        rows, kernel, held_out = self._held_out
        if X is not rows:
            return super().decision_function(X)
        scores = kernel.times(held_out, self.support_, self.dual_coef_.T).astype(kernel.dtype)
        return scores.ravel() if len(self.classes_) == 2 else scores
