"""The best few labels of each example."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from polymargin.arrays import MatrixLike


def best_labels(scores: np.ndarray, classes: np.ndarray, k: int) -> np.ndarray:
    """Labels of the k largest scores of each row, best first; ties in the order of `classes`.

    `scores` is 1-D for two classes, as a decision function gives it.
    """
    n_classes = len(classes)
    if not isinstance(k, Integral) or not 1 <= k <= n_classes:
        raise ValueError(f"k must be an integer from 1 to n_classes = {n_classes}, got {k!r}.")
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    best_first = np.argsort(-scores, axis=1, kind="stable")
    labels: np.ndarray = classes[best_first[:, :k]]
    return labels


class TopLabelsMixin:
    """The k best labels, for an estimator with `decision_function` and `classes_`."""

    classes_: np.ndarray
    decision_function: Callable[[Any], np.ndarray]

    def predict_top_k(self, X: MatrixLike, k: int = 5) -> np.ndarray:
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
