"""The multiclass kernel machine as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from polymargin.data import check_sparse_structure
from polymargin.estimators._html import CertificateHTMLMixin
from polymargin.estimators._kernel_classifier import KernelClassifierMixin, canonical
from polymargin.estimators._progress import PassReporter
from polymargin.estimators._target import EncodedTarget, encode_target
from polymargin.estimators.linear import _distance_to_optimum
from polymargin.kernel_functions import KERNELS, TrainingKernel, resolve_gamma
from polymargin.losses import LOSSES, get_loss
from polymargin.solvers.kernel import KernelProblem, KernelSolution, KernelSolver


class KernelMulticlassSVC(
    CertificateHTMLMixin, CallbackSupportMixin, KernelClassifierMixin, BaseEstimator
):
    """Multiclass support vector machine with a kernel, trained to a certified duality gap.

    It minimises ``1/2 ||W||^2 + sum_i c_i loss_i`` over a function per class in the space of the
    kernel, where ``c_i = C * sample_weight_i * class_weight_{y_i}``, as one problem (not one per
    pair of classes), without an intercept.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest"}, \
            default="crammer_singer"
        The loss of an example, as in :class:`LinearMulticlassSVC`.

    C : float, default=1.0
        Weight of the loss against the regulariser; finite and positive.

    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable gets two arrays of rows and returns the matrix of their kernel values. For
        "precomputed", X is the matrix of kernel values (n_samples, n_samples) in fit, and those of
        new examples with all training examples in prediction.

    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid". "scale" is ``1 / (n_features * X.var())``,
        "auto" is ``1 / n_features``.

    degree : float, default=3
        Degree of "poly".

    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".

    top_k : int, default=None
        The k of the top-k losses, which need it: 1 to n_classes - 1. The others ignore it.

    tol : float, default=1e-3
        Training stops at a relative duality gap ``(primal - dual) / primal`` of at most `tol`.

    max_iter : int, default=10000
        Largest number of working sets.

    class_weight : dict or "balanced", default=None
        Weights of the classes, as in :class:`LinearMulticlassSVC`.

    cache_size : float, default=200
        Megabytes for kernel values. No more of them are ever held, apart from a block of 64 MB.

    warm_start : bool, default=False
        Whether to start from the dual variables of the previous fit. They are made to fit after a
        change of `C` or of weights. With other labels, another number of examples or another loss,
        the fit starts afresh.

    random_state : int, RandomState instance or None, default=None
        Determines the order of the updates. The same integer gives bit-identical models.

    n_jobs : int, default=None
        Number of threads of predictions; None means 1, and -1 all cores. Training uses the threads
        of NumPy's matrix products.

    verbose : int, default=0
        If positive, print a line per working set.

    solver : KernelSolver, default=None
        Expert settings; None means ``KernelSolver()``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels that have an example of positive weight, sorted.

    support_ : ndarray of shape (n_support,)
        Rows of X that are support patterns: examples with a nonzero dual variable.

    support_vectors_ : array or csr_array of shape (n_support, n_features)
        The support patterns; empty for a precomputed kernel.

    dual_coef_ : ndarray of shape (n_classes, n_support), or (1, n_support) for two classes
        Coefficients: the score of class y is ``sum_i dual_coef_[y, i] k(x_i, x)``. For two classes
        it is the second row minus the first ("one_vs_rest": the second), so that a positive score
        means ``classes_[1]``.

    n_support_ : ndarray of shape (n_classes,)
        Number of support patterns of each class.

    objective_, dual_objective_ : float
        The primal objective, and the dual one, a lower bound of the optimum.

    dual_gap_ : float
        The certified relative gap ``(objective_ - dual_objective_) / objective_``, for kernel
        values in the dtype of X.

    n_iter_ : int
        Number of working sets.

    history_ : dict of ndarray
        One entry per working set: "pass", "time", "primal", "dual", "gap", "n_awake". While
        examples are left out (``n_awake < n_samples``), values are those of the others. Examples of
        weight zero always are.

    n_kernel_evaluations_ : int
        Kernel values computed in training.

    gamma_ : float
        The coefficient used.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if X has names that are all strings.

    See Also
    --------
    KernelMulticlassSVCCV : Chooses C by cross-validation.
    LinearMulticlassSVC : The same without a kernel, for large data.
    LaRankClassifier : Trained online.
    sklearn.svm.SVC : One binary machine per pair of classes.

    Notes
    -----
    float32 data are trained with float32 kernel values, twice as fast.

    A training stopped with Ctrl-C leaves the model so far in the fitted attributes before
    KeyboardInterrupt goes on to the caller.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import KernelMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelMulticlassSVC(random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.dual_gap_ <= clf.tol
    True
    """

    _shared_kernel: TrainingKernel

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES))],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "degree": [Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "top_k": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "solver": [HasMethods("solve"), None],
    }

    def __init__(
        self,
        *,
        loss="crammer_singer",
        C=1.0,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        top_k=None,
        tol=1e-3,
        max_iter=10_000,
        class_weight=None,
        cache_size=200,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
        solver=None,
    ):
        self.loss = loss
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.top_k = top_k
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.solver = solver

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelMulticlassSVC:
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, or kernel values (n_samples, n_samples) for a precomputed kernel. float32
            and float64 are kept, other types become float64.
        y : array-like of shape (n_samples,)
            Labels of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, not negative.

        Returns
        -------
        KernelMulticlassSVC
            The fitted estimator.
        """
        X, y = self._validate_training_data(X, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        target = encode_target(y, C=self.C, sample_weight=weight, class_weight=self.class_weight)
        self.gamma_ = resolve_gamma(self.gamma, X) if not self._precomputed else 1.0
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

    def _validate_training_data(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        check_sparse_structure(X)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=False if self._precomputed else "csr",
            dtype=[np.float64, np.float32],
            order="C",
        )
        check_classification_targets(y)
        if self._precomputed:
            check_gram_matrix(X)
        return canonical(X), y

    def _problem(self, X: Any, target: EncodedTarget) -> KernelProblem:
        return KernelProblem(
            kernel=self._training_kernel(X),
            y=target.codes,
            c=target.c,
            loss=get_loss(self.loss, self.top_k),
            n_classes=len(target.classes),
        )

    def _training_kernel(self, X: Any) -> TrainingKernel:
        """Give the kernel of the rows of X; the one a search has computed for them, if any."""
        if hasattr(self, "_shared_kernel"):
            return self._shared_kernel
        return TrainingKernel(X, None if self._precomputed else self._kernel_function())

    def _solve(self, problem: KernelProblem, reporter: PassReporter) -> KernelSolution:
        solver = KernelSolver() if self.solver is None else self.solver
        solution: KernelSolution = solver.solve(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_bytes=int(self.cache_size * 2**20),
            random_state=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            verbose=int(self.verbose),
            start=self._start_for(problem),
            progress=reporter if hasattr(self, "_skl_callbacks") else None,
        )
        return solution

    def _start_for(self, problem: KernelProblem) -> KernelSolution | None:
        """Give the previous solution if its dual means something for this problem."""
        kept: KernelSolution | None = getattr(self, "_warm_start_state", None)
        if not self.warm_start or kept is None:
            return None
        same = (
            kept.loss == problem.loss
            and kept.block.shape == (problem.kernel.n, problem.n_classes)
            and np.array_equal(kept.y, problem.y)
        )
        return kept if same else None

    def _set_fitted_attributes(self, problem: KernelProblem, solution: KernelSolution) -> None:
        rows = solution.dual_coef()
        X, dtype = problem.kernel.X, problem.kernel.dtype
        self.support_ = np.flatnonzero(np.diff(rows.indptr))
        self.support_vectors_ = X[self.support_] if not self._precomputed else np.empty((0, 0))
        dual = np.ascontiguousarray(rows[self.support_].toarray().T.astype(dtype))
        self.dual_coef_ = problem.loss.fold(dual)
        self.n_support_ = np.bincount(problem.y[self.support_], minlength=problem.n_classes)
        self.objective_ = solution.primal
        self.dual_objective_ = solution.dual
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.history_ = solution.history
        self.n_kernel_evaluations_ = solution.n_kernel_evaluations
        self.__dict__.pop("_warm_start_state", None)
        if self.warm_start:
            self._warm_start_state = solution

    def _warn_unless_converged(self, solution: KernelSolution) -> None:
        if solution.status not in ("max_iter", "time_limit", "stalled"):
            return
        reason = {"stalled": "the precision of its kernel values"}.get(
            solution.status, f"its {solution.status}"
        )
        warnings.warn(
            f"{type(self).__name__} stopped at {reason} after {solution.n_iter} "
            f"working sets, at a relative duality gap of {solution.gap:.2g} (tol={self.tol:g}): "
            f"{_distance_to_optimum(solution.gap)}. Increase max_iter or tol, use a smaller C, or "
            "float64.",
            ConvergenceWarning,
            stacklevel=4,  # the caller of fit, which scikit-learn wraps
        )


def check_gram_matrix(K: np.ndarray) -> None:
    """Raise ``ValueError`` unless K is square and symmetric (as far as a sample of rows shows)."""
    if sparse.issparse(K) or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix (n_samples, n_samples), got {K.shape}."
        )
    sample = np.linspace(0, len(K) - 1, min(len(K), 64)).astype(int)
    scale = float(np.abs(K[sample]).max(initial=0.0))
    if np.abs(K[sample] - K[:, sample].T).max(initial=0.0) > 1e-3 * scale:
        raise ValueError("A precomputed kernel must be a symmetric matrix; this one is not.")
