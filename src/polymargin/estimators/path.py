"""The models of a whole grid of C, for little more than the price of one."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polymargin.arrays import Doubles, Floats, Indices, MatrixLike
from polymargin.estimators._advice import advice_on_many
from polymargin.estimators._base import n_threads
from polymargin.estimators._parameters import CostMatrix
from polymargin.estimators._search import grid_of
from polymargin.estimators._target import ClassWeight
from polymargin.estimators.linear import LinearMulticlassSVC, check_overflow
from polymargin.solvers import Checkpoint, DualSolver, Solution, Status
from polymargin.solvers.settings import RandomState, draw_seed
from polymargin.storage import Array


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Models for a grid of C, each with its certificate; every array has one entry per C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values of C, in the order given.
    coefs : ndarray of shape (n_Cs, n_classes, n_features), or (n_Cs, 1, n_features) for two classes
        Weights, as `coef_` of :class:`LinearMulticlassSVC`.
    intercepts : ndarray of shape (n_Cs, n_classes), or (n_Cs, 1)
        Constants of the decision functions.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    objectives, dual_objectives : ndarray of shape (n_Cs,)
        Primal objective of each model, and the lower bound of the optimum.
    gaps : ndarray of shape (n_Cs,)
        Certified relative duality gaps.
    n_support : ndarray of shape (n_Cs,)
        Number of examples with a nonzero dual variable.
    n_iters : ndarray of shape (n_Cs,)
        Passes made.
    times : ndarray of shape (n_Cs,)
        Seconds (wall clock), from the solution of the C before.
    histories : list of dict
        As `history_` of :class:`LinearMulticlassSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import regularization_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = regularization_path(X, y, [0.1, 1.0], random_state=0)
    >>> path.coefs.shape, bool((path.gaps <= 1e-3).all())
    ((2, 3, 4), True)
    >>> path.estimator(1.0).C
    1.0
    """

    Cs: Doubles
    coefs: Floats = field(repr=False)
    intercepts: Floats = field(repr=False)
    classes: Array
    objectives: Doubles
    dual_objectives: Doubles
    gaps: Doubles
    n_support: Indices
    n_iters: Indices
    times: Doubles
    histories: list[dict[str, Floats]] = field(repr=False)
    _model: LinearMulticlassSVC = field(repr=False)

    def __len__(self) -> int:
        return len(self.Cs)

    def estimator(self, C: float) -> LinearMulticlassSVC:
        """The model of one C as a fitted estimator; its `coef_` is a part of `coefs`, not a copy.

        Parameters
        ----------
        C : float
            One of `Cs`.

        Returns
        -------
        LinearMulticlassSVC
            Fitted.
        """
        at = np.flatnonzero(self.Cs == C)
        if len(at) == 0:
            known = ", ".join(f"{value:g}" for value in self.Cs)
            raise ValueError(f"C={C!r} is not on the path, whose values are {known}.")
        i = int(at[0])
        model: LinearMulticlassSVC = clone(self._model).set_params(C=float(C))
        model.n_features_in_ = self._model.n_features_in_
        if hasattr(self._model, "feature_names_in_"):
            model.feature_names_in_ = self._model.feature_names_in_
        model.classes_ = self.classes
        model.coef_, model.intercept_ = self.coefs[i], self.intercepts[i]
        model.objective_ = float(self.objectives[i])
        model.dual_objective_ = float(self.dual_objectives[i])
        model.dual_gap_ = float(self.gaps[i])
        model.n_iter_ = int(self.n_iters[i])
        model.history_ = self.histories[i]
        return model


def regularization_path(
    X: MatrixLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 10,
    *,
    loss: str = "crammer_singer",
    top_k: int | None = None,
    smoothing: float = 0.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    class_weight: ClassWeight = None,
    cost_matrix: CostMatrix = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    solver: DualSolver | None = None,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
) -> RegularizationPath:
    """Train the linear models for a grid of C, each from its neighbour.

    The values of C are solved from the smallest up; the dual variables of one are made to fit the
    next. Every model is certified to `tol`, as a fit of :class:`LinearMulticlassSVC` would be.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training data. C-contiguous arrays and canonical CSR matrices are not copied.
    y : array-like of shape (n_samples,)
        Labels of any type that can be sorted.
    Cs : array-like of float, or int, default=10
        Values of C in any order, without duplicates. A number stands for that many values, evenly
        spread in their logarithm, from 0.01 to 100 divided by the mean squared length of the rows.
    loss, top_k, smoothing, tol, max_iter, fit_intercept, intercept_scaling, class_weight, \
            cost_matrix, random_state, n_jobs, verbose, solver
        As in :class:`LinearMulticlassSVC`; `max_iter` and the solver's `time_limit` count for each
        C anew.
    checkpoint : str, path or Checkpoint, default=None
        A file to save the path to every so often: the models found so far and the state of the
        next. Called again with the same data and parameters, the path goes on from there to the
        same models, bit for bit. The file is removed at the end.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the examples, not negative.

    Returns
    -------
    RegularizationPath
        The models, in the order of `Cs`.

    See Also
    --------
    LinearMulticlassSVCCV : Chooses C by cross-validation.
    RegularizationPathDisplay : Draws a path.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import regularization_path
    >>> X, y = load_iris(return_X_y=True)
    >>> path = regularization_path(X, y, [0.01, 0.1, 1.0], random_state=0)
    >>> path.coefs.shape
    (3, 3, 4)
    >>> bool((path.gaps <= 1e-3).all())
    True
    >>> path.estimator(1.0).score(X, y) > 0.9
    True
    """
    model = LinearMulticlassSVC(
        loss=loss,
        top_k=top_k,
        smoothing=smoothing,
        tol=tol,
        max_iter=max_iter,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        class_weight=class_weight,
        cost_matrix=cost_matrix,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        solver=solver,
    )
    model._validate_params()
    prepared = model._prepare(X, y, sample_weight, C=1.0)
    problem = prepared.problem
    grid = grid_of(Cs, problem)
    order = np.argsort(grid)
    solutions = (DualSolver() if solver is None else solver).solve_path(
        problem,
        grid[order],
        tol=tol,
        max_iter=max_iter,
        random_state=None if random_state is None else draw_seed(random_state),
        n_jobs=n_threads(n_jobs),
        verbose=int(verbose),
        checkpoint=None if checkpoint is None else Checkpoint.of(checkpoint),
    )
    found: list[Solution] = []
    times: list[float] = []
    began = time.perf_counter()
    for solution in solutions:
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        check_overflow(solution)
        found.append(solution)
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
    unfinished = [
        f"{C:g} (gap {one.gap:.2g})"
        for C, one in zip(grid[order], found, strict=True)
        if one.status.is_early
    ]
    if unfinished:
        warnings.warn(
            f"regularization_path stopped before tol={tol:g} at C = {', '.join(unfinished)}. "
            f"{advice_on_many(one.status for one in found)}, or leave these values out.",
            ConvergenceWarning,
            stacklevel=2,
        )
    as_given = np.argsort(order)  # solutions are in the order of C
    found = [found[i] for i in as_given]
    return RegularizationPath(
        Cs=grid,
        coefs=np.stack([problem.loss.fold(one.coef) for one in found]),
        intercepts=np.stack([problem.loss.fold(one.intercept) for one in found]),
        classes=prepared.target.classes,
        objectives=np.array([one.primal for one in found]),
        dual_objectives=np.array([one.dual for one in found]),
        gaps=np.array([one.gap for one in found]),
        n_support=np.array([np.count_nonzero(np.diff(one.block.indptr)) for one in found]),
        n_iters=np.array([one.n_iter for one in found]),
        times=np.array(times)[as_given],
        histories=[one.history for one in found],
        _model=model,
    )
