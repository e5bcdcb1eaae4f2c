"""Misclassified examples for the report: of every frequent confusion some, then the clearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.evaluation import Evaluation
from polymargin.fitted import Classifier, Features
from polymargin.report._content import shorten
from polymargin.report._features import Weighted, class_weights, reasons

PAIRS, PER_PAIR, REASONS = 40, 5, 4
LONGEST_TEXT = 600


@dataclass(frozen=True)
class Mistake:
    """One misclassified example."""

    number: int
    """Its place in the test data, from 1."""
    true: int
    predicted: int
    margin: float
    text: str | None
    reasons: Weighted


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
    names: NDArray | None,
    n: int,
) -> list[Mistake]:
    """Describe at most `n` misclassified examples, with the features that led to the error."""
    weights = class_weights(classifier)

    def why(i: int) -> Weighted:
        if names is None or weights is None or features is None:
            return []
        true, predicted = found.true[i], found.predicted[i]
        against = weights[true] if true < found.n_classes else np.zeros_like(weights[0])
        row = features[i] if isinstance(features, np.ndarray) else features[[i]]
        return reasons(row, weights[predicted] - against, names, REASONS)

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
