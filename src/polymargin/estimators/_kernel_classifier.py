"""What fitted kernel machines have in common: their kernel and their predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from polymargin.arrays import MatrixLike
from polymargin.data import canonical_csr, check_sparse_structure
from polymargin.estimators._base import n_threads
from polymargin.estimators._top_k import TopLabelsMixin
from polymargin.kernel_functions import Kernel, KernelFunction
from polymargin.solvers.kernel_scores import kernel_scores


class KernelClassifierMixin(TopLabelsMixin, ClassifierMixin):
    """Predictions of an estimator with `support_vectors_` and `dual_coef_`.

    The estimator has the parameters `kernel`, `degree`, `coef0` and `n_jobs`, and the fitted
    attributes `classes_`, `support_`, `support_vectors_`, `dual_coef_` (one row for two classes)
    and `gamma_`.
    """

    kernel: Kernel
    degree: float
    coef0: float
    gamma_: float
    n_jobs: int | None
    classes_: NDArray

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel_function(self) -> KernelFunction:
        return KernelFunction(
            self.kernel, gamma=self.gamma_, degree=float(self.degree), coef0=float(self.coef0)
        )

    def decision_function(self, X: MatrixLike) -> NDArray:
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
            accept_sparse=False if self._precomputed else "csr",
            dtype=[np.float64, np.float32],
            reset=False,
        )
        X = canonical(X).astype(self.dual_coef_.dtype, copy=False)
        if self._precomputed:
            scores = kernel_scores(None, X[:, self.support_], None, self.dual_coef_)
        else:
            scores = kernel_scores(
                self._kernel_function(),
                X,
                self.support_vectors_,
                self.dual_coef_,
                n_threads(self.n_jobs),
            )
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: MatrixLike) -> NDArray:
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


def canonical(X: Any) -> Any:
    """Sparse rows with sorted, distinct indices; anything else as it is."""
    if not sparse.issparse(X):
        return X
    check_sparse_structure(X)
    return canonical_csr(X)
