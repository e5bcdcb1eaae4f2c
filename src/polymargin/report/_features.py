"""Why a model decides so: the strongest features of a class, and errors with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from polymargin.arrays import Floats
from polymargin.evaluation import Evaluation
from polymargin.fitted import Classifier, Features, per_class, split_pipeline
from polymargin.report._content import shorten
from polymargin.storage import Array
from polymargin.tables import TableColumns

Weighted = list[tuple[str, float]]

MOST_FEATURES = 40_000  # entries of the table of features
PAIRS, PER_PAIR, REASONS = 40, 5, 4  # confusions to show first, errors of each, features of each
LONGEST_TEXT = 600


@dataclass(frozen=True)
class Mistake:
    """One misclassified example."""

    number: int  # its place in the test data, from 1
    true: int
    predicted: int
    margin: float
    text: str | None
    reasons: Weighted


def feature_names(model: Classifier, given: ArrayLike | None = None) -> Array | None:
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


def _names_after(steps: Pipeline) -> Array | None:
    try:
        names: Array = steps.get_feature_names_out(getattr(steps, "feature_names_in_", None))
    except (AttributeError, ValueError):  # hashing has no names
        return None
    # scikit-learn's stand-ins for names that it does not know
    invented = len(names) > 0 and names[0] == "x0" and names[-1] == f"x{len(names) - 1}"
    if invented:
        return None
    return _of_columns(names) if isinstance(steps.steps[0][1], TableColumns) else names


def _of_columns(names: Array) -> Array:
    """Names of features of a table without the names of the parts that made them."""
    said = []
    for name in names.tolist():
        part, _, rest = name.partition("__")
        if part.startswith("words of "):
            rest = f"{part.removeprefix('words of ')}: {rest}"
        elif rest.startswith("missingindicator_"):
            rest = f"{rest.removeprefix('missingindicator_')} is missing"
        elif part == "categories":
            rest = rest.replace("_infrequent_sklearn", " is rare or new")
            rest = f"{rest[:-1]} is missing" if rest.endswith("_") else rest
        said.append(rest)
    return np.array(said, dtype=object)


def feature_lists(
    classifier: Classifier, names: Array | None, n: int
) -> list[dict[str, Weighted]] | None:
    """The strongest features of every class; None where names or weights are unknown."""
    weights = _class_weights(classifier)
    if names is None or weights is None:
        return None
    n = min(max(1, min(n, MOST_FEATURES // (2 * len(weights)))), len(names))
    return [
        {side: _strongest(row, sign, names, n) for side, sign in (("for", 1), ("against", -1))}
        for row in weights
    ]


def _class_weights(classifier: Classifier) -> Floats | None:
    """A row of weights per class; None unless the model is linear."""
    coef = getattr(classifier, "coef_", None)
    return None if coef is None else per_class(coef)


def _strongest(weights: Floats, sign: int, names: Array, n: int) -> Weighted:
    """The n features with the largest weights of this sign, to four digits."""
    largest = np.argpartition(-sign * weights, n - 1)[:n]
    ordered = largest[np.argsort(-sign * weights[largest], kind="stable")]
    return [(str(names[i]), float(f"{weights[i]:.4g}")) for i in ordered if sign * weights[i] > 0]


def choose(found: Evaluation, n: int) -> NDArray[np.intp]:
    """Positions of at most `n` errors, the most decided ones first.

    The first few of each of the most frequent confusions come in before any other, so that a
    large class does not take all places.
    """
    wrong = np.flatnonzero(found.true != found.predicted)
    if len(wrong) <= n:
        return _most_decided_first(found, wrong)
    pair = found.true[wrong] * len(found.labels) + found.predicted[wrong]
    pairs, counts = np.unique(pair, return_counts=True)
    taken: list[int] = []
    for frequent in pairs[np.argsort(-counts, kind="stable")[:PAIRS]]:
        alike = _most_decided_first(found, wrong[pair == frequent])
        taken += alike[:PER_PAIR].tolist()
    taken = taken[:n]
    rest = _most_decided_first(found, np.setdiff1d(wrong, taken))
    return _most_decided_first(found, np.array([*taken, *rest[: n - len(taken)]], np.intp))


def _most_decided_first(found: Evaluation, where: NDArray[np.intp]) -> NDArray[np.intp]:
    margin = np.nan_to_num(found.margin[where], nan=-1.0)  # unknown labels last
    return where[np.argsort(-margin, kind="stable")]


def mistakes(
    classifier: Classifier,
    found: Evaluation,
    features: Features | None,
    text: Sequence[str] | None,
    names: Array | None,
    n: int,
) -> list[Mistake]:
    """Describe at most `n` misclassified examples, with the features that led to the error."""
    weights = _class_weights(classifier)

    def why(i: int) -> Weighted:
        if names is None or weights is None or features is None:
            return []
        true, predicted = found.true[i], found.predicted[i]
        against = weights[true] if true < found.n_classes else np.zeros_like(weights[0])
        row = sparse.csr_array(features[[i]])
        shares = row.data * (weights[predicted] - against)[row.indices]
        order = np.argsort(-shares, kind="stable")[:REASONS]
        return [(str(names[row.indices[j]]), float(shares[j])) for j in order if shares[j] > 0]

    return [
        Mistake(
            number=i + 1,
            true=int(found.true[i]),
            predicted=int(found.predicted[i]),
            margin=float(found.margin[i]),
            text=None if text is None else shorten(str(text[i]), LONGEST_TEXT),
            reasons=why(i),
        )
        for i in choose(found, n).tolist()
    ]
