"""The linear multiclass support vector machine with C chosen by cross-validation."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods

from polymargin.estimators._cross_validated import CrossValidatedMixin
from polymargin.estimators._folds import LinearFolds
from polymargin.estimators._parameters import LinearParameters, parameter, with_parameters
from polymargin.estimators._predictions import LinearPredictionMixin
from polymargin.estimators.linear import LinearMulticlassSVC
from polymargin.solvers import DualSolver


@with_parameters
class LinearMulticlassSVCCV(
    LinearParameters, CrossValidatedMixin, LinearPredictionMixin, BaseEstimator
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
        A scorer's name, a callable ``scorer(estimator, X, y)``, ``"top_3_accuracy"`` and the like
        for the share of examples whose label is among the 3 best, or ``"neg_mean_cost"`` for what
        predictions cost. None means accuracy; with a `cost_matrix`, ``"neg_mean_cost"``.
    refit : bool, default=True
        Whether to train the model on all data with the chosen C. Without, there is no model to
        predict with, only `C_` and the scores.
    early_stopping : bool, default=True
        Whether to go no further up the grid once the score has clearly peaked: when the last C is
        worse than the best by three standard errors of the difference within folds, or the last
        two by one each. The scores of larger values are then NaN. It keeps the state of all folds
        in memory, otherwise that of `n_jobs` of them.
    loss, top_k, smoothing, tol, max_iter, fit_intercept, intercept_scaling, class_weight, \
            cost_matrix, probability, store_dual
        As in :class:`LinearMulticlassSVC`; `probability` is for the refit, since models of folds
        have no folds of their own. A "balanced" `class_weight` is that of the training
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
            dual_coef_, temperature_
        With `refit`, those of the model with `C_`, as in :class:`LinearMulticlassSVC`.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The features seen during fit; their names, if X has names that are all strings.

    See Also
    --------
    regularization_path : The models for a grid of C.
    sklearn.model_selection.GridSearchCV : Searches any parameter of any estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVCCV(Cs=[0.01, 0.1, 1.0, 10.0, 100.0], random_state=0).fit(X, y)
    >>> clf.scores_.shape
    (5, 5)
    >>> clf.dual_gap_ <= clf.tol
    True
    """

    solver: DualSolver | None = parameter(HasMethods(["solve", "solve_path"]), None, default=None)

    _model_class = LinearMulticlassSVC
    _folds_class = LinearFolds
