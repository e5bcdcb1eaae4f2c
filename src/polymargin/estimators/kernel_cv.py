"""The multiclass kernel machine with C chosen by cross-validation."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from polymargin.arrays import Attributes
from polymargin.estimators._base import CertifiedClassifier
from polymargin.estimators._cross_validated import CrossValidatedMixin
from polymargin.estimators._folds import KernelFolds, ModelFolds
from polymargin.estimators._parameters import (
    COUNT,
    LossParameters,
    parameter,
    with_parameters,
)
from polymargin.estimators._predictions import KernelPredictionMixin
from polymargin.estimators._search import FoldStep
from polymargin.estimators.kernel import KernelMulticlassSVC


@with_parameters
class KernelMulticlassSVCCV(
    LossParameters, CrossValidatedMixin, KernelPredictionMixin, BaseEstimator
):
    """Multiclass support vector machine with a kernel that chooses its C by cross-validation.

    In every fold, the models for all values of C are trained one from the other, from the smallest
    C up, each to a certified duality gap. Where the kernel matrix of all examples fits in
    `cache_size`, it is computed once: all folds, values of C, scores and the refit read it.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        The values of C to try, in any order. A number stands for that many values, evenly spread
        in their logarithm, from 0.01 to 100 divided by the mean kernel value of an example with
        itself (1 for "rbf").
    cv, scoring, refit, early_stopping
        As in :class:`LinearMulticlassSVCCV`.
    loss, kernel, degree, coef0, top_k, smoothing, tol, max_iter, class_weight, \
            cost_matrix, probability
        As in :class:`KernelMulticlassSVC`; `probability` is for the refit, since models of folds
        have no folds of their own. A "balanced" `class_weight` is that of the training
        part of each fold. For "precomputed", X is the kernel matrix of all examples.
    gamma : {"scale", "auto"} or float, default="scale"
        As in :class:`KernelMulticlassSVC`; "scale" is that of all of X, the same for every fold.
    cache_size : float, default=200
        Megabytes of a kernel matrix that is shared, and of the kernel values that each fold being
        trained keeps besides. A larger matrix is not held: every fold then computes the kernel
        values it needs.
    random_state : int, RandomState instance or None, default=None
        Determines the order of the updates, not the folds. The same integer gives bit-identical
        models, scores and choices.
    n_jobs : int, default=None
        Number of folds that are trained at the same time, in threads, and of threads of
        predictions; None means 1, and -1 all cores. A kernel that is a Python function is called
        by one thread only.
    verbose : int, default=0
        If positive, print a line per fold and C.
    solver : KernelSolver, default=None
        Expert settings; None means ``KernelSolver()``. A `time_limit` counts for each C anew.

    Attributes
    ----------
    C_, Cs_, scores_, best_score_, dual_gaps_
        What the search found, as in :class:`LinearMulticlassSVCCV`.
    n_kernel_evaluations_ : int
        Kernel values computed in all: ``n_samples ** 2`` with a shared matrix, none with a
        precomputed one.
    classes_, gamma_
        As in :class:`KernelMulticlassSVC`.
    support_, support_vectors_, dual_coef_, n_support_, objective_, dual_objective_, dual_gap_, \
            n_iter_, history_, temperature_
        With `refit`, those of the model with `C_`, as in :class:`KernelMulticlassSVC`.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The features seen during fit; their names, if X has names that are all strings.

    See Also
    --------
    KernelMulticlassSVC : The model for one C.
    LinearMulticlassSVCCV : The same without a kernel, for large data.
    sklearn.model_selection.GridSearchCV : Searches any parameter, `gamma` too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import KernelMulticlassSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelMulticlassSVCCV(Cs=[0.01, 0.1, 1.0], random_state=0).fit(X, y)
    >>> clf.scores_.shape
    (5, 3)
    >>> clf.n_kernel_evaluations_ == len(X) ** 2
    True
    """

    max_iter: int = parameter(COUNT, default=10_000)

    _model_class = KernelMulticlassSVC
    _folds_class = KernelFolds

    def _folds_at_a_time(self, folds: ModelFolds) -> int:
        wanted = super()._folds_at_a_time(folds)
        computing = isinstance(folds, KernelFolds) and folds.shared is None
        return 1 if computing and callable(self.kernel) else wanted

    def _search_attributes(
        self, model: CertifiedClassifier, folds: ModelFolds, steps: list[list[FoldStep]]
    ) -> Attributes:
        assert isinstance(folds, KernelFolds)
        found = super()._search_attributes(model, folds, steps)
        return found | {
            "gamma_": model.gamma_,
            "n_kernel_evaluations_": folds.n_kernel_evaluations,
        }

    def _model_attributes(self, model: CertifiedClassifier, found: Attributes) -> Attributes:
        attributes = super()._model_attributes(model, found)
        if model._shared_kernel is None:  # else the search has counted its values
            more = attributes["n_kernel_evaluations_"]
            return attributes | {"n_kernel_evaluations_": found["n_kernel_evaluations_"] + more}
        return attributes | {"n_kernel_evaluations_": found["n_kernel_evaluations_"]}
