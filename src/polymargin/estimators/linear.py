"""The linear multiclass support vector machine as a scikit-learn classifier."""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from polymargin.data import Rows, as_rows, check_sparse_structure
from polymargin.estimators._html import CertificateHTMLMixin
from polymargin.estimators._progress import PassReporter
from polymargin.estimators._stream import PartialFitMixin
from polymargin.estimators._target import EncodedTarget, encode_target
from polymargin.estimators._top_k import TopLabelsMixin
from polymargin.losses import LOSSES, Loss, get_loss
from polymargin.problem import Problem
from polymargin.solvers import Checkpoint, DualSolver, Solution, StreamSolver


class LinearMulticlassSVC(
    CertificateHTMLMixin,
    CallbackSupportMixin,
    PartialFitMixin,
    TopLabelsMixin,
    LinearClassifierMixin,
    SparseCoefMixin,
    BaseEstimator,
):
    """Linear multiclass support vector machine, trained to a certified duality gap.

    It minimises ``1/2 ||W||^2 + sum_i c_i loss_i(W)`` over a weight vector per class, where
    ``c_i = C * sample_weight_i * class_weight_{y_i}``, by block coordinate descent on the dual.
    The difference between the primal and the dual objective bounds the distance to the optimum;
    training stops when it is small enough.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest"}, \
            default="crammer_singer"
        The loss of an example. With the margin violations ``h_j = 1 + s_j - s_y`` of the wrong
        classes:

        - "crammer_singer": the largest violation, ``max(0, max_j h_j)``;
        - "weston_watkins": all violations, ``sum_j max(0, h_j)``;
        - "top_k_alpha": ``max(0, mean of the k largest h_j)``, for top-k accuracy;
        - "top_k_beta": ``mean of the k largest max(0, h_j)``, for top-k accuracy;
        - "one_vs_rest": a hinge loss per class, ``sum_m max(0, 1 - y_m s_m)`` with ``y_m`` 1 for
          the true class and -1 for the others.

    C : float, default=1.0
        Weight of the loss against the regulariser; finite and positive.

    top_k : int, default=None
        The k of the top-k losses, which need it: 1 to n_classes - 1. The others ignore it.

    tol : float, default=1e-3
        Training stops at a relative duality gap ``(primal - dual) / primal`` of at most `tol`.
        This is not the tolerance of :class:`~sklearn.svm.LinearSVC`, which bounds a violation.

    max_iter : int, default=1000
        Largest number of passes over the data.

    fit_intercept : bool, default=True
        Whether to append a constant feature. Its weight is penalised, as in LIBLINEAR.

    intercept_scaling : float, default=1.0
        The value of the constant feature; the larger, the less the intercept is penalised.

    class_weight : dict or "balanced", default=None
        Weights of the classes, by label; a label that is not listed weighs 1. "balanced" weighs
        a class by ``n_samples / (n_classes * n_samples_of_the_class)``, where samples count with
        their `sample_weight`. The weight of an example is that of its own class for every loss.
        With "one_vs_rest" it thus weighs the example in all n_classes binary problems, where
        LIBLINEAR weighs it only in the one in which it is a positive.

    warm_start : bool, default=False
        Whether to start from the dual variables of the previous fit. They are made to fit after a
        change of `C`, of weights or of features. With other labels, another number of examples or
        another loss, the fit starts afresh.

    store_dual : bool, default=False
        Whether to keep the dual variables in `dual_coef_`.

    random_state : int, RandomState instance or None, default=None
        Determines the order in which passes visit the examples. The same integer and the same
        `n_jobs` give bit-identical models.

    n_jobs : int, default=None
        Number of threads; None means 1, and -1 all cores. It is taken as it is inside of parallel
        workers too, since the number of threads may change the last digits of a model.

    verbose : int, default=0
        If positive, print a line per certificate.

    solver : DualSolver, default=None
        Expert settings of `fit`; None means ``DualSolver()``.

    stream : StreamSolver, default=None
        Expert settings of `partial_fit`; None means ``StreamSolver()``.

    checkpoint : str, path or Checkpoint, default=None
        A file that `fit` saves its state to every minute, and goes on from when it finds one: the
        result is then bit-identical to that of a fit without interruption. It is removed when the
        tolerance is reached. A :class:`~polymargin.Checkpoint` says how often to save.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, with the dtype of X. For two classes it is the difference of the two weight
        vectors ``W_1 - W_0`` (for "one_vs_rest": ``W_1``), so that a positive score means
        ``classes_[1]``.

    intercept_ : ndarray of shape (n_classes,) or (1,)
        Constants of the decision function; zeros without `fit_intercept`.

    classes_ : ndarray of shape (n_classes,)
        The labels that have an example of positive weight, sorted.

    objective_ : float
        The primal objective of the model, the penalty on the intercept included. For two classes,
        it is that of both weight vectors.

    dual_objective_ : float
        The dual objective, a lower bound of the optimum.

    dual_gap_ : float
        The certified relative gap ``(objective_ - dual_objective_) / objective_``; NaN with
        ``DualSolver(certify=False)``.

    n_iter_ : int
        Number of passes; 1 after `partial_fit`, which proves nothing: the objectives, the gap, the
        history and the dual variables exist after `fit` only.

    n_samples_seen_ : int
        After `partial_fit`: the examples of positive weight that the stream has had so far.

    history_ : dict of ndarray
        One entry per certificate: "pass", "time", "primal", "dual", "gap", "n_awake".

    dual_coef_ : csr_array of shape (n_classes, n_samples), or (1, n_samples) for two classes
        With `store_dual`: the dual variables, signed such that ``dual_coef_ @ X`` is `coef_` at
        the optimum. For two classes, the rows are combined as those of `coef_`.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if X has names that are all strings.

    See Also
    --------
    sklearn.svm.LinearSVC : The wrapper of LIBLINEAR.

    Notes
    -----
    An example of weight zero counts as absent, a class without other examples as well.

    A training stopped with Ctrl-C leaves the best certified model so far in the fitted attributes
    before KeyboardInterrupt goes on to the caller. A callback that returns True at the end of a
    pass stops the training, which then returns normally.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVC(random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.predict_top_k(X[:2], k=2)
    array([[0, 1],
           [0, 1]])
    >>> clf.dual_gap_ <= clf.tol
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES))],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "top_k": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "store_dual": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "solver": [HasMethods("solve"), None],
        "stream": [StreamSolver, None],
        "checkpoint": [str, os.PathLike, Checkpoint, None],
    }

    def __init__(
        self,
        *,
        loss="crammer_singer",
        C=1.0,
        top_k=None,
        tol=1e-3,
        max_iter=1000,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        warm_start=False,
        store_dual=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        solver=None,
        stream=None,
        checkpoint=None,
    ):
        self.loss = loss
        self.C = C
        self.top_k = top_k
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.store_dual = store_dual
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver = solver
        self.stream = stream
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearMulticlassSVC:
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float32 and float64 are kept, other types become float64. C-contiguous
            arrays and canonical CSR matrices are not copied.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, not negative.

        Returns
        -------
        LinearMulticlassSVC
            The fitted estimator.
        """
        X, y = self._validate_training_data(X, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        target = encode_target(y, C=self.C, sample_weight=weight, class_weight=self.class_weight)
        problem = self._problem(X, target)

        arguments = {"X": X, "y": y}
        if sample_weight is not None:
            arguments["metadata"] = {"sample_weight": weight}
        context = self._init_callback_context(max_subtasks=self.max_iter)
        context.call_on_fit_task_begin(estimator=self, **arguments)
        reporter = PassReporter(context, self, arguments)
        solution = self._solve(problem, reporter)
        self.classes_ = target.classes
        self._set_fitted_attributes(problem, solution)
        if solution.status == "interrupted" and not reporter.stopped:
            raise KeyboardInterrupt
        self._warn_unless_converged(solution)
        context.call_on_fit_task_end(estimator=self, **arguments, reconstruction_attributes={})
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of the classes.

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
        stream = vars(self).get("_stream")
        if stream is not None:
            return self._stream_scores(stream, X)
        return super().decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validate_training_data(
        self,
        X: Any,
        y: Any,
        *,
        reset: bool = True,
        check_labels: Any = check_classification_targets,
    ) -> tuple[Any, np.ndarray]:
        """Check data and labels, and bring the data to a layout that the kernels read."""
        if not (sparse.issparse(X) and X.format == "csr"):  # as_rows looks at CSR rows
            check_sparse_structure(X)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            reset=reset,
            ensure_all_finite=False,
        )
        check_labels(y)
        return X, y

    def _rows(self, X: Any) -> Rows:
        """The rows of validated data, whose values are looked at here."""
        try:
            return as_rows(X)
        except ValueError:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")  # says more
            raise

    def _problem(self, X: Any, target: EncodedTarget) -> Problem:
        return Problem(
            X=self._rows(X),
            y=target.codes,
            c=target.c,
            loss=get_loss(self.loss, self.top_k),
            n_classes=len(target.classes),
            intercept_scaling=float(self.intercept_scaling) if self.fit_intercept else 0.0,
        )

    def _solve(self, problem: Problem, reporter: PassReporter) -> Solution:
        solver = DualSolver() if self.solver is None else self.solver
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        save = {} if self.checkpoint is None else {"checkpoint": Checkpoint.of(self.checkpoint)}
        solution = solver.solve(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=None if self.random_state is None else seed,
            n_jobs=_n_threads(self.n_jobs),
            verbose=int(self.verbose),
            start=self._start_for(problem),
            progress=reporter if hasattr(self, "_skl_callbacks") else None,
            **save,
        )
        check_overflow(solution)
        return solution

    def _start_for(self, problem: Problem) -> Solution | None:
        """Give the previous solution if its dual means something for this problem."""
        kept: tuple[Loss, Solution] | None = getattr(self, "_warm_start_state", None)
        if not self.warm_start or kept is None:
            return None
        loss, solution = kept
        same = (
            loss == problem.loss
            and solution.block.shape == (problem.n_examples, problem.n_classes)
            and np.array_equal(solution.y, problem.y)
        )
        return solution if same else None

    def _set_fitted_attributes(self, problem: Problem, solution: Solution) -> None:
        for name in ("_stream", "n_samples_seen_"):
            self.__dict__.pop(name, None)
        fold = problem.loss.fold
        self.coef_, self.intercept_ = fold(solution.coef), fold(solution.intercept)
        self.objective_ = solution.primal
        self.dual_objective_ = solution.dual
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.history_ = solution.history
        self.__dict__.pop("dual_coef_", None)
        if self.store_dual:
            self.dual_coef_ = fold(solution.dual_coef().T.tocsr())
        self.__dict__.pop("_warm_start_state", None)
        if self.warm_start:
            self._warm_start_state = (problem.loss, solution)

    def _warn_unless_converged(self, solution: Solution) -> None:
        if solution.status not in ("max_iter", "time_limit"):
            return
        warnings.warn(
            f"{type(self).__name__} stopped at its {solution.status} after {solution.n_iter} "
            f"passes, at a relative duality gap of {solution.gap:.2g} (tol={self.tol:g}): "
            f"{_distance_to_optimum(solution.gap)}. Increase max_iter or tol, scale the features "
            "to a similar range, or use a smaller C.",
            ConvergenceWarning,
            stacklevel=4,  # the caller of fit, which scikit-learn wraps
        )


def check_overflow(solution: Solution) -> None:
    """Raise ``ValueError`` where the weights are not numbers."""
    if not np.isfinite(solution.coef).all() or np.isinf(solution.primal):
        raise ValueError("Training overflowed: scale the features or use a smaller C.")


def _distance_to_optimum(gap: float) -> str:
    """Say what a relative gap guarantees, since ``P* >= D = (1 - gap) P``."""
    if not gap < 1.0:
        return "no bound on the distance to the optimum is known yet"
    return f"the objective is at most {100 * gap / (1 - gap):.2g} % above the optimum"


def _n_threads(n_jobs: int | None) -> int:
    """Resolve `n_jobs` without regard to a surrounding parallel backend, for reproducibility."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give a number of threads, or -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + int(n_jobs))
