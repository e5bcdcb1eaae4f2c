"""The linear multiclass support vector machine with C chosen by cross-validation."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackContext, CallbackSupportMixin
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from polymargin.estimators._folds import LinearFolds
from polymargin.estimators._grid import check_grid, resolve_grid
from polymargin.estimators._scoring import resolve_scorer, takes_weights
from polymargin.estimators._search import FoldStep, search
from polymargin.estimators._sparse import check_sparse_structure
from polymargin.estimators._target import encode_target
from polymargin.estimators._top_k import best_labels
from polymargin.estimators.linear import LinearMulticlassSVC, _n_threads

_OF_THE_MODEL = (
    "loss",
    "top_k",
    "tol",
    "max_iter",
    "fit_intercept",
    "intercept_scaling",
    "class_weight",
    "store_dual",
    "random_state",
    "n_jobs",
    "solver",
)
_FITTED = (
    "coef_",
    "intercept_",
    "classes_",
    "objective_",
    "dual_objective_",
    "dual_gap_",
    "n_iter_",
    "history_",
    "dual_coef_",
)


class LinearMulticlassSVCCV(
    CallbackSupportMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator
):
    """Linear multiclass support vector machine that chooses its C by cross-validation.

    In every fold, the models for all values of C are trained one from the other, from the smallest
    C up, each to a certified duality gap. All folds read the same X.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        The values of C to try, in any order. A number stands for that many values, evenly spread
        in their logarithm, from 0.01 to 100 divided by the mean squared length of the rows of X.

    cv : int, cross-validation generator or iterable, default=None
        The folds, as everywhere in scikit-learn: None means 5 stratified folds, an integer that
        many. Every class must occur in the training part of every fold.

    scoring : str or callable, default=None
        A scorer's name, a callable ``scorer(estimator, X, y)``, or ``"top_3_accuracy"`` and the
        like for the share of examples whose label is among the 3 best. None means accuracy.

    refit : bool, default=True
        Whether to train the model on all data with the chosen C. Without, there is no model to
        predict with, only `C_` and the scores.

    early_stopping : bool, default=True
        Whether to go no further up the grid once the score has clearly peaked: when the last C is
        worse than the best by three standard errors of the difference within folds, or the last
        two by one each. The scores of larger values are then NaN. It keeps the state of all folds
        in memory, otherwise that of `n_jobs` of them.

    loss, top_k, tol, max_iter, fit_intercept, intercept_scaling, class_weight, store_dual
        As in :class:`LinearMulticlassSVC`. A "balanced" `class_weight` is that of the training
        part of each fold.

    random_state : int, RandomState instance or None, default=None
        Determines the order in which passes visit the examples, not the folds. The same integer
        gives bit-identical models, scores and choices.

    n_jobs : int, default=None
        Number of folds that are trained at the same time, in threads; None means 1, and -1 all
        cores.

    verbose : int, default=0
        If positive, print a line per fold and C.

    solver : DualSolver, default=None
        Expert settings; None means ``DualSolver()``. A `time_limit` counts for each C anew.

    Attributes
    ----------
    C_ : float
        The value with the highest mean score; the smallest of them where several are equal.

    Cs_ : ndarray of shape (n_Cs,)
        The values of C, ascending.

    scores_ : ndarray of shape (n_folds, n_Cs)
        Score of each fold; NaN for values of C that were not reached.

    best_score_ : float
        The mean score of `C_`.

    dual_gaps_ : ndarray of shape (n_folds, n_Cs)
        The certified gap of each fold's model.

    coef_, intercept_, classes_, objective_, dual_objective_, dual_gap_, n_iter_, history_, \
            dual_coef_
        With `refit`, those of the model with `C_`, as in :class:`LinearMulticlassSVC`.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if X has names that are all strings.

    See Also
    --------
    regularization_path : The models for a grid of C.
    sklearn.model_selection.GridSearchCV : Searches any parameter of any estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVCCV(Cs=[0.01, 0.1, 1.0], random_state=0).fit(X, y)
    >>> clf.C_
    0.1
    >>> clf.scores_.shape
    (5, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: LinearMulticlassSVC._parameter_constraints[name] for name in _OF_THE_MODEL},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "early_stopping": ["boolean"],
        "verbose": ["verbose"],
        "solver": [HasMethods(["solve", "solve_path"]), None],
    }

    def __init__(
        self,
        *,
        Cs=10,
        cv=None,
        scoring=None,
        refit=True,
        early_stopping=True,
        loss="crammer_singer",
        top_k=None,
        tol=1e-3,
        max_iter=1000,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        store_dual=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        solver=None,
    ):
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.early_stopping = early_stopping
        self.loss = loss
        self.top_k = top_k
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.store_dual = store_dual
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver = solver

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **params: Any
    ) -> LinearMulticlassSVCCV:
        """Choose C, and train the model with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. Shared by all folds; only the rows that a fold scores are copied.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, not negative, in training and in scoring (where the scorer
            takes weights).
        **params : dict
            `groups` for the splitter; with scikit-learn's metadata routing enabled, whatever the
            splitter and the scorer request.

        Returns
        -------
        LinearMulticlassSVCCV
            The fitted estimator.
        """
        model = LinearMulticlassSVC(**{name: getattr(self, name) for name in _OF_THE_MODEL})
        grid = check_grid(self.Cs)
        X, y = model._validate_training_data(X, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        target = encode_target(y, C=1.0, sample_weight=weight, class_weight=self.class_weight)
        problem = model._problem(X, target)
        model.classes_ = target.classes
        Cs = np.sort(resolve_grid(grid, problem))
        scorer = resolve_scorer(self.scoring, target.classes)
        routed = self._route(scorer, None if sample_weight is None else weight, params)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y, **routed.splitter.split))
        folds = LinearFolds(model, problem, y, weight, splits, Cs, scorer, routed.scorer.score)

        arguments: dict[str, Any] = {"X": X, "y": y}
        if sample_weight is not None:
            arguments["metadata"] = {"sample_weight": weight}
        context = self._init_callback_context(max_subtasks=1 + self.refit)
        context.call_on_fit_task_begin(estimator=self, **arguments)
        steps = self._search(folds, context, arguments)
        self._set_search_attributes(model, folds, steps)
        if self.refit:
            self._refit(model, X, y, sample_weight, context, arguments)
        folds.warn_unless_converged(steps, type(self).__name__)
        context.call_on_fit_task_end(estimator=self, **arguments, reconstruction_attributes={})
        return self

    def _search(
        self, folds: LinearFolds, context: CallbackContext, arguments: dict[str, Any]
    ) -> list[list[FoldStep]]:
        """Walk the folds up the grid; a callback that returns True ends the walk."""
        task = context.subcontext("search", max_subtasks=len(folds) * len(folds.Cs))
        task.call_on_fit_task_begin(estimator=self, **arguments)

        def report(fold: int, position: int, step: FoldStep) -> bool:
            if self.verbose:
                print(
                    f"C {folds.Cs[position]:.3g}  fold {fold + 1}/{len(folds)}  "
                    f"score {step.score:.4f}  gap {step.gap:.1e}  passes {step.n_iter}",
                    flush=True,
                )
            leaf = task.subcontext("fold and C")
            leaf.call_on_fit_task_begin(estimator=self, **arguments)
            return leaf.call_on_fit_task_end(estimator=self, **arguments)

        steps = search(
            folds,
            len(folds.Cs),
            n_threads=_n_threads(self.n_jobs),
            early_stopping=self.early_stopping,
            report=report,
        )
        task.call_on_fit_task_end(estimator=self, **arguments)
        return steps

    def _set_search_attributes(
        self, model: LinearMulticlassSVC, folds: LinearFolds, steps: list[list[FoldStep]]
    ) -> None:
        for name in (*_FITTED, "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.classes_ = model.classes_
        self.Cs_ = folds.Cs
        self.scores_ = np.full((len(folds), len(folds.Cs)), np.nan)
        self.dual_gaps_ = self.scores_.copy()
        for fold, found in enumerate(steps):
            self.scores_[fold, : len(found)] = [step.score for step in found]
            self.dual_gaps_[fold, : len(found)] = [step.gap for step in found]
        mean = self.scores_[:, : len(steps[0])].mean(axis=0)
        best = int(mean.argmax())
        self.C_ = float(folds.Cs[best])
        self.best_score_ = float(mean[best])

    def _refit(
        self,
        model: LinearMulticlassSVC,
        X: Any,
        y: np.ndarray,
        sample_weight: Any,
        context: CallbackContext,
        arguments: dict[str, Any],
    ) -> None:
        """Train on all data with the chosen C; on Ctrl-C keep the model so far."""
        model.set_params(C=self.C_)
        task = context.subcontext("refit")
        with task.propagate_callback_context(model):
            task.call_on_fit_task_begin(estimator=self, **arguments)
            try:
                model.fit(X, y, sample_weight)
            finally:
                for name in _FITTED:
                    if hasattr(model, name):
                        setattr(self, name, getattr(model, name))
        task.call_on_fit_task_end(estimator=self, **arguments)

    def _route(self, scorer: Any, weight: Any, params: dict[str, Any]) -> Bunch:
        """Which parameters of `fit` go to the splitter and to the scorer."""
        if _routing_enabled():
            return process_routing(self, "fit", sample_weight=weight, **params)
        params = dict(params)
        split = {"groups": params.pop("groups")} if "groups" in params else {}
        _raise_for_params(params, self, "fit", allow=None)
        score = {"sample_weight": weight} if weight is not None and takes_weights(scorer) else {}
        return Bunch(splitter=Bunch(split=split), scorer=Bunch(score=score))

    def get_metadata_routing(self) -> MetadataRouter:
        """Describe which metadata go to the splitter and to the scorer."""
        to_scorer = MethodMapping().add(caller="fit", callee="score")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(
                scorer=resolve_scorer(self.scoring),
                method_mapping=to_scorer.add(caller="score", callee="score"),
            )
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Score predictions by `scoring`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, where the scorer takes them.
        **params : dict
            With metadata routing enabled, what the scorer requests.

        Returns
        -------
        float
            The score.
        """
        check_is_fitted(self)
        _raise_for_params(params, self, "score")
        scorer = resolve_scorer(self.scoring, self.classes_)
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if _routing_enabled():
            params = process_routing(self, "score", **params).scorer.score
        return float(scorer(self, X, y, **params))

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes, as :meth:`LinearMulticlassSVC.decision_function`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Scores. For two classes, that of ``classes_[1]``, predicted where positive.
        """
        check_sparse_structure(X)
        return super().decision_function(X)

    def predict_top_k(self, X: Any, k: int = 5) -> np.ndarray:
        """Predict the k best labels of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.
        k : int, default=5
            Number of labels, 1 to n_classes.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Labels, best first; those of equal score in the order of `classes_`.
        """
        return best_labels(self.decision_function(X), self.classes_, k)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
