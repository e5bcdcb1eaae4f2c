"""Which features speak for a class: the weights of a linear model, with names."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from polymargin.fitted import Classifier, Features, per_class, split_pipeline

Weighted = list[tuple[str, float]]


def feature_names(model: Classifier, given: ArrayLike | None = None) -> NDArray | None:
    """Names of the classifier's features: those given, those of the vectoriser or of the fit."""
    before, classifier = split_pipeline(model)
    found = given
    if found is None and before is not None:
        found = _names_after(before)
    if found is None:
        found = getattr(classifier, "feature_names_in_", None)
    if found is None:
        return None
    names = np.asarray(found, dtype=object)
    return names if getattr(classifier, "n_features_in_", len(names)) == len(names) else None


def _names_after(steps: Pipeline) -> NDArray | None:
    try:
        names: NDArray = steps.get_feature_names_out(getattr(steps, "feature_names_in_", None))
    except (AttributeError, ValueError):  # hashing has no names
        return None
    # scikit-learn's stand-ins for names that it does not know
    invented = len(names) > 0 and names[0] == "x0" and names[-1] == f"x{len(names) - 1}"
    return None if invented else names


def class_weights(classifier: Classifier) -> NDArray | None:
    """A row of weights per class; None unless the model is linear."""
    coef = getattr(classifier, "coef_", None)
    return None if coef is None else per_class(coef)


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


def reasons(x: Features, difference: NDArray, names: NDArray, n: int) -> Weighted:
    """The features of example `x` that did most for the first class over the second.

    `difference` is the first class's weights minus the second's.
    """
    if isinstance(x, np.ndarray):
        where = np.flatnonzero(x)
        values = x[where]
    else:
        row = x.tocsr()
        where, values = row.indices, row.data
    shares = values * difference[where]
    order = np.argsort(-shares, kind="stable")[:n]
    return [(str(names[where[i]]), float(shares[i])) for i in order if shares[i] > 0]
