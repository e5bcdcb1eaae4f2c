"""The linear multiclass support vector machine as a scikit-learn classifier."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from polymargin.arrays import Matrix, MatrixLike
from polymargin.data import PER_EXAMPLE, BlockRows, Rows
from polymargin.estimators._base import (
    CERTIFIED,
    Prepared,
    WeightedClassifier,
    checked_rows,
    n_threads,
)
from polymargin.estimators._parameters import (
    POSITIVE,
    LinearParameters,
    parameter,
    with_parameters,
)
from polymargin.estimators._stored import blocks_of, bytes_of, copied, is_stored, opened
from polymargin.estimators._stream import PartialFitMixin
from polymargin.estimators._target import EncodedTarget, encode_target
from polymargin.estimators.compat import check_sample_weight
from polymargin.files import BlockSource, Dataset, StoredMatrix
from polymargin.problem import Problem
from polymargin.solvers import Checkpoint, DualSolver, Solution, StreamSolver
from polymargin.solvers.partitioned import PartitionedSolution
from polymargin.solvers.progress import Progress
from polymargin.solvers.settings import draw_seed
from polymargin.storage import TemporaryFolder


@with_parameters
class LinearMulticlassSVC(
    LinearParameters,
    PartialFitMixin,
    WeightedClassifier[Problem, Solution],
):
    """Linear multiclass support vector machine, trained to a certified duality gap.

    It minimises ``1/2 ||W||^2 + sum_i c_i loss_i(W)`` over a weight vector per class, where
    ``c_i = C * sample_weight_i * class_weight_{y_i}``, by block coordinate descent on the dual.
    The difference between the primal and the dual objective bounds the distance to the optimum;
    training stops when it is small enough.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest", \
            "one_vs_rest_squared", "softmax", "top_k_entropy"}, default="crammer_singer"
        The loss of an example. With the margin violations ``h_j = 1 + s_j - s_y`` of the wrong
        classes:

        - "crammer_singer": the largest violation, ``max(0, max_j h_j)``;
        - "weston_watkins": all violations, ``sum_j max(0, h_j)``;
        - "top_k_alpha": ``max(0, mean of the k largest h_j)``, for top-k accuracy;
        - "top_k_beta": ``mean of the k largest max(0, h_j)``, for top-k accuracy;
        - "one_vs_rest": a hinge loss per class, ``sum_m max(0, 1 - y_m s_m)`` with ``y_m`` 1 for
          the true class and -1 for the others;
        - "one_vs_rest_squared": the same with squared hinges, as in LinearSVC by default;
        - "softmax": ``log(1 + sum_j exp(s_j - s_y))``, multinomial logistic regression. Its dual is
          dense and takes up to 16 bytes per example and class (rounded up to a power of two);
        - "top_k_entropy": softmax that forgives ``top_k - 1`` wrong classes ahead; a dense dual.
    C : float, default=1.0
        Weight of the loss against the regulariser; finite and positive.
    top_k : int, default=None
        The k of the top-k losses, which need it: 1 to n_classes - 1. The others ignore it.
    smoothing : float, default=0.0
        Makes a hinge loss differentiable: below the loss by at most ``smoothing / 2`` (times the
        classes that "weston_watkins" and "one_vs_rest" add up), with a gradient that changes at a
        rate of at most ``1 / smoothing``. Not for "one_vs_rest_squared", "softmax" and
        "top_k_entropy".
    tol : float, default=1e-3
        Training stops at a relative duality gap ``(primal - dual) / primal`` of at most `tol`.
        This is not the tolerance of ``LinearSVC``, which bounds a violation.
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
    cost_matrix : array-like of shape (n_classes, n_classes), dict or DataFrame, default=None
        Costs between classes, which are the margins: ``h_j = cost[y, j] + s_j - s_y``. An array has
        a row per true class and a column per predicted one, in the order of `classes_`, and zeros
        on its diagonal; a dict has the keys (true label, predicted label), a DataFrame the labels
        as index and columns. For the losses that compare classes: not for "one_vs_rest",
        "one_vs_rest_squared", "softmax" and "top_k_entropy". See :mod:`polymargin.costs` for ways
        to make one.
    probability : bool, default=False
        Whether to fit a temperature after training, for `predict_proba` and `predict_log_proba`:
        the softmax of the scores divided by it. It minimises the log loss of examples that were
        held out, weighted as in training: all of them in five folds where there are up to 2,000, a
        fifth (at most 5,000) in one fold from 10,000 on. "softmax" has probabilities without.
    warm_start : bool, default=False
        Whether to start from the previous fit. One of the same problem goes on where it ended, with
        a smaller `tol` or more passes, as if it had not; its state takes the memory of a few sets
        of weights. Else the dual variables are a start: they are made to fit after a
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
        1: a bar with the gap and the time left, on a terminal (standard error) or in a notebook;
        elsewhere lines, one per certificate and estimates now and then. 2: lines everywhere.
    solver : DualSolver, default=None
        Expert settings of `fit`; None means ``DualSolver()``.
    stream : StreamSolver, default=None
        Expert settings of `partial_fit`; None means ``StreamSolver()``.
    checkpoint : str, path or Checkpoint, default=None
        A file that `fit` saves its state to every minute, and goes on from when it finds one: the
        result is then bit-identical to that of a fit without interruption. It is removed when the
        tolerance is reached. A :class:`~polymargin.Checkpoint` says how often to save.
    memory_limit : str or float, default=None
        Bytes that `fit` may hold, such as "2GB", besides the weights and the dual variables, when X
        is a data directory or a :class:`~polymargin.io.BlockSource`: what is larger is read in
        blocks. None: as much as there are. Arrays are in memory already, whatever it says.

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
        One entry per pass: "pass", "time", "n_awake"; "primal", "dual" and "gap", which are NaN
        where nothing was certified; and "estimated_primal", "estimated_dual" and "estimated_gap",
        which the pass could tell without looking at all examples, and which prove nothing.
    dual_coef_ : csr_array of shape (n_classes, n_samples), or (1, n_samples) for two classes
        With `store_dual`: the dual variables, signed such that ``dual_coef_ @ X`` is `coef_` at
        the optimum. For two classes, the rows are combined as those of `coef_`.
    temperature_ : float
        With `probability`: what scores are divided by for probabilities.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        The features seen during fit; their names, if X has names that are all strings.

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

    C: float = parameter(POSITIVE, default=1.0)
    warm_start: bool = parameter("boolean", default=False)
    stream: StreamSolver | None = parameter(StreamSolver, None, default=None)
    checkpoint: Checkpoint | str | os.PathLike[str] | None = parameter(
        str, os.PathLike, Checkpoint, None, default=None
    )
    memory_limit: str | float | None = parameter(str, POSITIVE, None, default=None)

    _fitted_names = (*CERTIFIED, "coef_", "intercept_", "dual_coef_")

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Compute the mean accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; or a data directory or a source of blocks, which have their labels and weights.
        y : array-like of shape (n_samples,), default=None
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.

        Returns
        -------
        float
            The part of the examples, by weight, whose label is predicted.
        """
        if not is_stored(X):
            return float(super().score(X, y, sample_weight))
        right, total = 0.0, 0.0
        for part, labels, weights in blocks_of(X):
            if labels is None:
                raise ValueError("There are no labels to compare with.")
            hits = self.predict(part) == labels
            right += float(hits.sum() if weights is None else hits @ weights)
            total += float(len(hits) if weights is None else np.sum(weights))
        return right / total

    @contextmanager
    def _at_hand(self, X: MatrixLike, y: ArrayLike | None) -> Iterator[MatrixLike]:
        _check_no_labels(X, y)
        if not isinstance(X, BlockSource):
            yield X
            return
        with TemporaryFolder() as folder:
            yield copied(X, folder)

    def _prepare(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, C: float
    ) -> Prepared[Problem]:
        limit = None if self.memory_limit is None else bytes_of(self.memory_limit)
        if not is_stored(X):
            return super()._prepare(X, y, sample_weight, C=C)
        _check_no_labels(X, y)
        data, held = opened(X)
        if data.y is None:
            raise ValueError(f"{data.source} has no labels to learn.")
        weight = data.weight if sample_weight is None else sample_weight
        size = data.X.nbytes if isinstance(data.X, np.ndarray) else data.X.data.nbytes
        size += 0 if isinstance(data.X, np.ndarray) else data.X.indices.nbytes
        if limit is None or size + PER_EXAMPLE * data.n_examples <= limit:
            X = np.array(data.X) if isinstance(data.X, np.ndarray) else data.X.copy()
            return super()._prepare(X, np.array(data.y), weight, C=C)
        return self._prepare_blocks(data, weight, limit, held, C)

    def _prepare_blocks(
        self, data: Dataset, weight: ArrayLike | None, limit: float, held: object, C: float
    ) -> Prepared[Problem]:
        """The problem of data that are read in blocks."""
        validate_data(self, data.X[:1], accept_sparse="csr", dtype=None, ensure_all_finite=False)
        y = np.asarray(data.y)
        check_classification_targets(y)
        weights = np.broadcast_to(np.float64(1.0), y.shape)
        if weight is not None:
            weights = check_sample_weight(weight, y)
        target = encode_target(y, C=C, sample_weight=weights, class_weight=self.class_weight)
        dense = isinstance(data.X, np.ndarray)
        rows = BlockRows(StoredMatrix(Path(data.source), data.X.shape, dense=dense), limit)
        rows.held = held
        problem = self._problem(rows, target)
        return Prepared(data.X, y, weights, weight is not None, target, problem)

    def _problem(self, X: Matrix | Rows, target: EncodedTarget) -> Problem:
        return Problem(
            X=checked_rows(self, X),
            y=target.codes,
            c=target.c,
            loss=self._loss(target.classes),
            n_classes=len(target.classes),
            intercept_scaling=self._constant_feature,
        )

    @property
    def _constant_feature(self) -> float:
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _solve(
        self, problem: Problem, start: Solution | None, progress: Progress | None
    ) -> Solution:
        solver = DualSolver() if self.solver is None else self.solver
        seed = draw_seed(self.random_state)
        save: dict[str, Any] = {"keep_state": True} if self.warm_start else {}
        if self.checkpoint is not None:
            save["checkpoint"] = Checkpoint.of(self.checkpoint)
        solution: Solution = solver.solve(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=None if self.random_state is None else seed,
            n_jobs=n_threads(self.n_jobs),
            verbose=int(self.verbose),
            start=start,
            progress=progress,
            **save,
        )
        check_overflow(solution)
        return solution

    def _attributes(
        self, classes: NDArray, problem: Problem, solution: Solution
    ) -> dict[str, object]:
        fold = problem.loss.fold
        found: dict[str, object] = {"coef_": fold(solution.coef)}
        found["intercept_"] = fold(solution.intercept)
        if self.store_dual:
            found["dual_coef_"] = fold(solution.dual_coef().T.tocsr())
        return found

    def _stale_names(self) -> tuple[str, ...]:
        return (*super()._stale_names(), "_stream", "n_samples_seen_")


def _check_no_labels(X: Any, y: ArrayLike | None) -> None:
    if is_stored(X) and y is not None:
        raise ValueError("y must be left out: stored data and blocks have their own labels.")


def check_overflow(solution: Solution | PartitionedSolution) -> None:
    """Raise ``ValueError`` where the weights are not numbers; those of a finite objective are."""
    if np.isfinite(solution.primal):
        return
    if np.isinf(solution.primal) or not np.isfinite(solution.coef).all():
        raise ValueError("Training overflowed: scale the features or use a smaller C.")
