"""Scores and labels of fitted machines: what linear and kernel machines predict, and the top k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from polymargin.arrays import Floats, MatrixLike, precisions
from polymargin.data import canonical_csr, check_sparse_structure
from polymargin.estimators._base import n_threads
from polymargin.estimators._parameters import KernelParameters
from polymargin.estimators._stored import blocks_of, is_stored
from polymargin.estimators._threads import at_one_moment
from polymargin.estimators.probabilities import log_probabilities, temperature_of
from polymargin.estimators.top_k import best_labels
from polymargin.kernel_functions import KernelFunction, TrainingKernel
from polymargin.solvers.kernel_scores import kernel_scores
from polymargin.storage import Array


class TopLabelsMixin:
    """The k best labels, for an estimator with `decision_function` and `classes_`."""

    classes_: Array
    decision_function: Callable[[MatrixLike], Floats]

    @at_one_moment
    def predict_top_k(self, X: MatrixLike, k: int = 5) -> Array:
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


def _has_probabilities(estimator: object) -> bool:
    if temperature_of(estimator) is not None:
        return True
    name = type(estimator).__name__
    if not getattr(estimator, "probability", False):
        raise AttributeError(
            f"{name} gives probabilities with loss='softmax' or, if it has that parameter, with "
            "probability=True; other models can be put into "
            "sklearn.calibration.CalibratedClassifierCV."
        )
    if hasattr(estimator, "classes_"):
        raise AttributeError(
            f"This {name} has no temperature: it was fitted with probability=False, by "
            "partial_fit, or interrupted. Call fit with probability=True."
        )
    return True  # once it is fitted


class ProbabilityMixin(TopLabelsMixin):
    """Probabilities of the classes: the softmax of the scores, divided by a temperature."""

    @available_if(_has_probabilities)
    @at_one_moment
    def predict_log_proba(self, X: MatrixLike) -> Floats:
        """Compute the logarithms of the classes' probabilities.

        With ``loss="softmax"`` or ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        scores = self.decision_function(X)
        return log_probabilities(scores, temperature_of(self) or 1.0)

    @available_if(_has_probabilities)
    @at_one_moment
    def predict_proba(self, X: MatrixLike) -> Floats:
        """Compute the classes' probabilities; with ``loss="softmax"`` or ``probability=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows add up to 1.
        """
        return np.exp(self.predict_log_proba(X))


class LinearPredictionMixin(ProbabilityMixin, LinearClassifierMixin, SparseCoefMixin):
    """Predictions of an estimator with `coef_` and `intercept_`."""

    @at_one_moment
    def decision_function(self, X: MatrixLike) -> Floats:
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
        if is_stored(X):
            return np.concatenate([self.decision_function(part) for part, *_ in blocks_of(X)])
        check_sparse_structure(X)
        return self._scores(X)

    @at_one_moment
    def predict(self, X: MatrixLike) -> Array:
        """Predict the best label of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; or a data directory or a source of blocks, a part of which is in memory at a time.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        if is_stored(X):
            return np.concatenate([self.predict(part) for part, *_ in blocks_of(X)])
        labels: Array = super().predict(X)
        return labels

    def _scores(self, X: MatrixLike) -> Floats:
        scores: Floats = super().decision_function(X)
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelPredictionMixin(KernelParameters, ProbabilityMixin, ClassifierMixin):
    """Predictions of an estimator with `support_`, `support_vectors_`, `dual_coef_`, `gamma_`."""

    gamma_: float
    _shared_kernel: TrainingKernel | None = None  # of a search, for the refit

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _accepts_sparse(self) -> bool:
        return not self._precomputed

    def _kernel_function(self) -> KernelFunction:
        return KernelFunction(
            self.kernel, gamma=self.gamma_, degree=float(self.degree), coef0=float(self.coef0)
        )

    @at_one_moment
    def decision_function(self, X: MatrixLike) -> Floats:
        """Compute the scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; for a precomputed kernel, kernel values with all training examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Scores, in the type of the training data. For two classes, that of ``classes_[1]``,
            predicted where positive.
        """
        check_is_fitted(self)
        check_sparse_structure(X)
        X = validate_data(
            self,
            X,
            accept_sparse="csr" if self._accepts_sparse else False,
            dtype=precisions(X),
            reset=False,
        )
        if sparse.issparse(X):
            check_sparse_structure(X)
            X = canonical_csr(X)
        X = X.astype(self.dual_coef_.dtype, copy=False)
        if self._precomputed:
            scores = kernel_scores(None, X[:, self.support_], None, self.dual_coef_)
        else:
            function, threads = self._kernel_function(), n_threads(self.n_jobs)
            scores = kernel_scores(function, X, self.support_vectors_, self.dual_coef_, threads)
        return scores.ravel() if len(self.classes_) == 2 else scores

    @at_one_moment
    def predict(self, X: MatrixLike) -> Array:
        """Predict the best label of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags
