"""The k best labels of each example, by any classifier that has scores."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.arrays import Floats


def predict_top_k(model: Any, X: Any, k: int = 5) -> NDArray:
    """Predict the k best labels of each example.

    Parameters
    ----------
    model : classifier
        Fitted; also a pipeline that ends in one, a search such as ``GridSearchCV``, or any other of
        scikit-learn's classifiers with `decision_function` or `predict_proba`.
    X : array-like, sparse matrix, DataFrame or list of str
        Data, as the model takes them.
    k : int, default=5
        Number of labels, 1 to n_classes.

    Returns
    -------
    ndarray of shape (n_samples, k)
        Labels, best first; those of equal score in the order of ``model.classes_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polymargin import LinearMulticlassSVC, predict_top_k
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LinearMulticlassSVC(random_state=0)).fit(X, y)
    >>> predict_top_k(model, X[:2], k=2)
    array([[0, 1],
           [0, 1]])
    """
    score = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
    if score is None:
        raise TypeError(
            f"{type(model).__name__} has neither decision_function nor predict_proba, and so no "
            "second best label."
        )
    scores = score(X)  # says what is missing where the model is not fitted
    return best_labels(np.asarray(scores), np.asarray(model.classes_), k)


def best_labels(scores: Floats, classes: NDArray, k: int) -> NDArray:
    """The k labels of the largest scores; a vector of scores is positive for the second of two."""
    n_classes = len(classes)
    if not isinstance(k, Integral) or not 1 <= k <= n_classes:
        raise ValueError(f"k must be an integer from 1 to n_classes = {n_classes}, got {k!r}.")
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    best_first = np.argsort(-scores, axis=1, kind="stable")
    found: NDArray = classes[best_first[:, :k]]
    return found
