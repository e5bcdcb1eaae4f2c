"""The multiclass kernel machine as a scikit-learn classifier."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite

from polymargin.arrays import Matrix
from polymargin.estimators._base import (
    CERTIFIED,
    CertifiedClassifier,
    Prepared,
    SolutionT,
    WeightedClassifier,
    checked_rows,
    n_threads,
)
from polymargin.estimators._parameters import (
    COUNT,
    POSITIVE,
    LossParameters,
    parameter,
    with_parameters,
)
from polymargin.estimators._predictions import KernelPredictionMixin
from polymargin.estimators._target import EncodedTarget
from polymargin.kernel_functions import TrainingKernel, resolve_gamma, training_kernel
from polymargin.losses import Loss
from polymargin.problem import KernelProblem
from polymargin.solvers.kernel import KernelSolution, KernelSolver
from polymargin.solvers.progress import Progress
from polymargin.solvers.settings import draw_seed


class KernelMachine(KernelPredictionMixin, CertifiedClassifier[KernelProblem, SolutionT]):
    """A classifier that is trained with a kernel, its own or a matrix of kernel values."""

    @abstractmethod
    def _loss(self, classes: ArrayLike | None = None) -> Loss:
        """What its problem has."""

    def _problem(self, X: Matrix, target: EncodedTarget) -> KernelProblem:
        kernel, n_classes = self._training_kernel(X), len(target.classes)
        return KernelProblem(kernel, target.codes, target.c, self._loss(target.classes), n_classes)

    def _training_kernel(self, X: Matrix) -> TrainingKernel:
        """Give the kernel of the rows of X; the one a search has computed for them, if any."""
        if self._shared_kernel is not None:
            return self._shared_kernel
        if self._precomputed:
            check_gram_matrix(self, X)
            self.gamma_ = 1.0
            return TrainingKernel(X, None)
        X = checked_rows(self, X).matrix
        self.gamma_ = resolve_gamma(self.gamma, X)
        return training_kernel(X, self._kernel_function(), n_threads(self.n_jobs))


def check_gram_matrix(estimator: BaseEstimator, K: NDArray) -> None:
    """Raise ``ValueError`` unless K is square and symmetric (as far as a sample of rows shows)."""
    assert_all_finite(K, estimator_name=type(estimator).__name__, input_name="X")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix (n_samples, n_samples), got {K.shape}."
        )
    sample = np.linspace(0, len(K) - 1, min(len(K), 64)).astype(int)
    scale = float(np.abs(K[sample]).max(initial=0.0))
    if np.abs(K[sample] - K[:, sample].T).max(initial=0.0) > 1e-3 * scale:
        raise ValueError("A precomputed kernel must be a symmetric matrix; this one is not.")


@with_parameters
class KernelMulticlassSVC(
    LossParameters, KernelMachine[KernelSolution], WeightedClassifier[KernelProblem, KernelSolution]
):
    """Multiclass support vector machine with a kernel, trained to a certified duality gap.

    It minimises ``1/2 ||W||^2 + sum_i c_i loss_i`` over a function per class in the space of the
    kernel, where ``c_i = C * sample_weight_i * class_weight_{y_i}``, as one problem (not one per
    pair of classes), without an intercept.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest", \
            "one_vs_rest_squared", "softmax", "top_k_entropy"}, default="crammer_singer"
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
    smoothing : float, default=0.0
        Of the hinge losses, as in :class:`LinearMulticlassSVC`.
    tol : float, default=1e-3
        Training stops at a relative duality gap ``(primal - dual) / primal`` of at most `tol`.
    max_iter : int, default=10000
        Largest number of working sets.
    class_weight : dict or "balanced", default=None
        Weights of the classes, as in :class:`LinearMulticlassSVC`.
    cost_matrix : array-like of shape (n_classes, n_classes), dict or DataFrame, default=None
        Costs between classes, as in :class:`LinearMulticlassSVC`.
    probability : bool, default=False
        Whether to fit a temperature for `predict_proba`, as in :class:`LinearMulticlassSVC`.
    cache_size : float, default=200
        Megabytes for kernel values. No more of them are ever held, apart from a block of 64 MB.
    warm_start : bool, default=False
        Whether to start from the dual variables of the previous fit. They are made to fit after a
        change of `C` or of weights. With other labels, another number of examples or another loss,
        the fit starts afresh.
    random_state : int, RandomState instance or None, default=None
        Determines the order of the updates. The same integer gives bit-identical models.
    n_jobs : int, default=None
        Number of threads of kernel values (of dense rows) and of predictions; None means 1, and -1
        all cores. The same bits for any number.
    verbose : int, default=0
        1: a bar with the gap and the time left, on a terminal (standard error) or in a notebook;
        elsewhere lines, one per certificate and estimates now and then. 2: lines everywhere.
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
        One entry per working set, as in :class:`LinearMulticlassSVC`. While examples are left out
        (``n_awake < n_samples``), there are estimates only. Examples of weight zero always are.
    n_kernel_evaluations_ : int
        Kernel values computed in training.
    gamma_ : float
        The coefficient used.
    temperature_ : float
        With `probability`: what scores are divided by for probabilities.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The features seen during fit; their names, if X has names that are all strings.

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

    C: float = parameter(POSITIVE, default=1.0)
    max_iter: int = parameter(COUNT, default=10_000)
    warm_start: bool = parameter("boolean", default=False)

    _fitted_names = (
        *CERTIFIED,
        "support_",
        "support_vectors_",
        "dual_coef_",
        "n_support_",
        "n_kernel_evaluations_",
    )
    _unit_of_work = "working sets"

    def _solve(
        self, problem: KernelProblem, start: KernelSolution | None, progress: Progress | None
    ) -> KernelSolution:
        solver = KernelSolver() if self.solver is None else self.solver
        solution: KernelSolution = solver.solve(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            cache_bytes=int(self.cache_size * 2**20),
            random_state=draw_seed(self.random_state),
            verbose=int(self.verbose),
            start=start,
            progress=progress,
        )
        return solution

    def _add_to_fit(self, prepared: Prepared[KernelProblem], solution: KernelSolution) -> None:
        super()._add_to_fit(prepared, solution)
        self.n_kernel_evaluations_ = prepared.problem.kernel.n_evaluations

    def _attributes(
        self, classes: NDArray, problem: KernelProblem, solution: KernelSolution
    ) -> dict[str, object]:
        rows, kernel = solution.dual_coef(), problem.kernel
        support = np.flatnonzero(np.diff(rows.indptr))
        dual = np.ascontiguousarray(rows[support].toarray().T.astype(kernel.dtype))
        return {
            "support_": support,
            "support_vectors_": np.empty((0, 0)) if self._precomputed else kernel.X[support],
            "dual_coef_": problem.loss.fold(dual),
            "n_support_": np.bincount(problem.y[support], minlength=problem.n_classes),
            "n_kernel_evaluations_": solution.n_kernel_evaluations,
        }
