"""Which features speak for a class: the weights of a linear model, with names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

Weighted = list[tuple[str, float]]


def split_pipeline(model: Any) -> tuple[Pipeline | None, Any]:
    """The steps before the classifier, if any, and the classifier."""
    if not isinstance(model, Pipeline):
        return None, model
    before = model[:-1] if len(model.steps) > 1 else None
    return before, model.steps[-1][1]


def feature_names(model: Any, given: Any = None) -> NDArray | None:
    """Names of the classifier's features: those given, those of the vectoriser or of the fit."""
    before, classifier = split_pipeline(model)
    n_features = getattr(classifier, "n_features_in_", None)
    names = given
    if names is None and before is not None:
        try:
            names = before.get_feature_names_out(getattr(before, "feature_names_in_", None))
        except (AttributeError, ValueError):  # hashing has no names
            names = None
        if names is not None and _invented(names):
            names = None
    if names is None:
        names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        return None
    names = np.asarray(names, dtype=object)
    return names if n_features in (None, len(names)) else None


def _invented(names: Any) -> bool:
    """Whether these are scikit-learn's stand-ins x0, x1, ... for names that it does not know."""
    return len(names) > 0 and names[0] == "x0" and names[-1] == f"x{len(names) - 1}"


def class_weights(classifier: Any) -> NDArray | None:
    """A row of weights per class, of the type of the model; None unless it is linear."""
    coef = getattr(classifier, "coef_", None)
    if coef is None:
        return None
    if sparse.issparse(coef):
        coef = coef.toarray()
    return np.vstack([-coef, coef]) if len(coef) == 1 else coef


def strongest(weights: NDArray, names: NDArray, n: int) -> tuple[Weighted, Weighted]:
    """The n features that speak most for a class, and the n that speak most against it."""
    n = min(n, len(weights))
    ends = np.argpartition(weights, [n - 1, len(weights) - n]) if n else np.empty(0, int)
    highest = ends[len(ends) - n :][np.argsort(-weights[ends[len(ends) - n :]], kind="stable")]
    lowest = ends[:n][np.argsort(weights[ends[:n]], kind="stable")]
    return (
        [(str(names[i]), float(weights[i])) for i in highest if weights[i] > 0],
        [(str(names[i]), float(weights[i])) for i in lowest if weights[i] < 0],
    )


def reasons(x: Any, difference: NDArray, names: NDArray, n: int) -> Weighted:
    """The features of example `x` that did most for the first class over the second.

    `difference` is the first class's weights minus the second's.
    """
    if sparse.issparse(x):
        x = x.tocsr()
        where, values = x.indices, x.data
    else:
        where = np.flatnonzero(x)
        values = np.asarray(x)[where]
    shares = values * difference[where]
    order = np.argsort(-shares, kind="stable")[:n]
    return [(str(names[where[i]]), float(shares[i])) for i in order if shares[i] > 0]
