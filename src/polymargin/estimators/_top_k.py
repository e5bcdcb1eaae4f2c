"""The best few labels of each example."""

from __future__ import annotations

from numbers import Integral

import numpy as np


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
