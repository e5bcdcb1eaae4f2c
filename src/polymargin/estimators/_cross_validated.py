"""What the estimators that choose C by cross-validation have in common: search, refit, score."""

from __future__ import annotations

import warnings
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from polymargin.arrays import Attributes, Doubles, MatrixLike
from polymargin.estimators._base import CertifiedClassifier, Prepared, n_threads
from polymargin.estimators._folds import ModelFolds
from polymargin.estimators._html import CertificateHTMLMixin
from polymargin.estimators._parameters import CostMatrix, SearchParameters
from polymargin.estimators._search import FoldStep, Scorer, grid_of, resolve_scorer, search
from polymargin.estimators._threads import SeenAtOnce, alone
from polymargin.estimators.compat import CallbackContext, CallbackSupportMixin, takes_weights


class CrossValidatedMixin(SeenAtOnce, SearchParameters, CallbackSupportMixin, CertificateHTMLMixin):
    """The search for C and the refit, for an estimator that has the parameters of its model."""

    classes_: np.ndarray
    cost_matrix: CostMatrix
    _model_class: ClassVar[type[CertifiedClassifier]]
    _folds_class: ClassVar[type[ModelFolds]]

    @property
    def _unit_of_work(self) -> str:
        return self._model_class._unit_of_work

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "objective_")

    def _new_model(self) -> CertifiedClassifier:
        """A model with the parameters that are the model's."""
        shared = set(self._get_param_names()) & set(self._model_class._get_param_names())
        return self._model_class(**{name: getattr(self, name) for name in shared - {"verbose"}})

    @alone
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: object
    ) -> Self:
        """Choose C, and train the model with it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or kernel values (n_samples, n_samples) for a precomputed kernel. Shared
            by all folds; only the rows that a fold scores are copied.
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
        estimator
            The fitted estimator.
        """
        model = self._new_model()
        prepared = model._prepare(X, y, sample_weight, C=1.0)
        model.classes_ = prepared.target.classes
        Cs = np.sort(grid_of(self.Cs, prepared.problem))
        scorer = self._scorer(model.classes_)
        routed = self._route(scorer, prepared.given_weight, params)
        split = check_cv(self.cv, prepared.y, classifier=True).split
        splits = list(split(prepared.X, prepared.y, **routed.splitter.split))
        folds = self._folds_class(model, prepared, splits, Cs, scorer, routed.scorer.score)
        self._choose_and_refit(model, folds, prepared)
        return self

    def _choose_and_refit(
        self, model: CertifiedClassifier, folds: ModelFolds, prepared: Prepared
    ) -> None:
        """Search, train `model` with the chosen C, and set the attributes."""
        arguments = prepared.hook_arguments
        context = self._init_callback_context(max_subtasks=1 + self.refit)
        context.call_on_fit_task_begin(estimator=self, **arguments)
        steps = self._search(folds, context, arguments)
        found = self._search_attributes(model, folds, steps)
        if self.refit:
            self._refit(model, found, prepared, context, arguments)
        else:
            self._set_attributes(model, found)
        folds.warn_unless_converged(steps, type(self).__name__)
        _warn_at_the_edge(found, type(self).__name__)
        context.call_on_fit_task_end(estimator=self, **arguments, reconstruction_attributes={})

    def _folds_at_a_time(self, folds: ModelFolds) -> int:
        return n_threads(self.n_jobs)

    def _search(
        self, folds: ModelFolds, context: CallbackContext, arguments: dict[str, object]
    ) -> list[list[FoldStep]]:
        """Walk the folds up the grid; a callback that returns True ends the walk."""
        task = context.subcontext("search", max_subtasks=len(folds) * len(folds.Cs))
        task.call_on_fit_task_begin(estimator=self, **arguments)

        def report(fold: int, position: int, step: FoldStep) -> bool:
            if self.verbose:
                print(
                    f"C {folds.Cs[position]:.3g}  fold {fold + 1}/{len(folds)}  "
                    f"score {step.score:.4f}  gap {step.gap:.1e}  "
                    f"{self._unit_of_work} {step.n_iter}",
                    flush=True,
                )
            leaf = task.subcontext("fold and C")
            leaf.call_on_fit_task_begin(estimator=self, **arguments)
            return leaf.call_on_fit_task_end(estimator=self, **arguments)

        steps = search(
            folds,
            len(folds.Cs),
            n_threads=self._folds_at_a_time(folds),
            early_stopping=self.early_stopping,
            report=report,
        )
        task.call_on_fit_task_end(estimator=self, **arguments)
        return steps

    def _search_attributes(
        self, model: CertifiedClassifier, folds: ModelFolds, steps: list[list[FoldStep]]
    ) -> Attributes:
        """What the search found."""
        scores = np.full((len(folds), len(folds.Cs)), np.nan)
        gaps = scores.copy()
        for fold, found in enumerate(steps):
            scores[fold, : len(found)] = [step.score for step in found]
            gaps[fold, : len(found)] = [step.gap for step in found]
        mean = scores[:, : len(steps[0])].mean(axis=0)
        best = int(mean.argmax())
        of_data = ("n_features_in_", "feature_names_in_", "classes_")
        return {name: getattr(model, name) for name in of_data if hasattr(model, name)} | {
            "Cs_": folds.Cs,
            "scores_": scores,
            "dual_gaps_": gaps,
            "C_": float(folds.Cs[best]),
            "best_score_": float(mean[best]),
        }

    def _model_attributes(self, model: CertifiedClassifier, found: Attributes) -> Attributes:
        """Those of the model with the chosen C."""
        return {name: getattr(model, name) for name in model._fitted_names if hasattr(model, name)}

    def _set_attributes(self, model: CertifiedClassifier, found: Attributes) -> None:
        """Replace the fitted attributes, all at once."""
        stale = (*model._fitted_names, "feature_names_in_")
        now = {name: one for name, one in vars(self).copy().items() if name not in stale}
        self.__dict__ = now | found

    def _refit(
        self,
        model: CertifiedClassifier,
        found: Attributes,
        prepared: Prepared,
        context: CallbackContext,
        arguments: dict[str, object],
    ) -> None:
        """Train on all data with the chosen C; on Ctrl-C keep the model so far, if there is one."""
        model.set_params(C=found["C_"])
        task = context.subcontext("refit")
        with task.propagate_callback_context(model):
            task.call_on_fit_task_begin(estimator=self, **arguments)
            try:
                model.fit(prepared.X, prepared.y, prepared.given_weight)
                self._set_attributes(model, found | self._model_attributes(model, found))
            except BaseException:
                if hasattr(model, "objective_"):
                    self._set_attributes(model, found | self._model_attributes(model, found))
                raise
        task.call_on_fit_task_end(estimator=self, **arguments)

    def _scorer(self, classes: np.ndarray | None = None) -> Scorer:
        return resolve_scorer(self.scoring, classes, self.cost_matrix)

    def _route(self, scorer: Scorer, weight: Doubles | None, params: dict[str, object]) -> Bunch:
        """Which parameters of `fit` go to the splitter and to the scorer."""
        if _routing_enabled():
            return process_routing(self, "fit", sample_weight=weight, **params)
        params = dict(params)
        split = {"groups": params.pop("groups")} if "groups" in params else {}
        _raise_for_params(params, self, "fit")
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
                scorer=self._scorer(),
                method_mapping=to_scorer.add(caller="score", callee="score"),
            )
        )

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: object
    ) -> float:
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
        scorer = self._scorer(self.classes_)
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if _routing_enabled():
            params = process_routing(self, "score", **params).scorer.score
        return float(scorer(self, X, y, **params))


def _warn_at_the_edge(found: Attributes, name: str) -> None:
    """Say that the best C is the first or the last of the grid, where beyond may be better."""
    Cs, scores = found["Cs_"], found["scores_"].mean(axis=0)
    best = int(np.nanargmax(scores))
    last = len(Cs) - 1
    if last == 0 or best not in (0, last) or not np.isfinite(scores).any():
        return
    if best == 0 and not scores[0] > scores[1]:  # as good as its neighbour: no slope
        return
    edge, beyond = ("small", Cs[0] / 10) if best == 0 else ("large", Cs[-1] * 10)
    warnings.warn(
        f"{name}: the best C, {Cs[best]:.3g}, is the {edge.rstrip('e')}est of the grid, where a "
        f"{edge.rstrip('e')}er one may be better: let Cs go on to {beyond:.3g}.",
        UserWarning,
        stacklevel=7,
    )
