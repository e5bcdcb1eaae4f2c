"""Misclassified examples for the report: of every frequent confusion some, then the clearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.evaluation import Evaluation
from polymargin.report._features import class_weights, reasons

PAIRS, PER_PAIR, REASONS = 40, 5, 4
LONGEST_TEXT = 600


@dataclass(frozen=True)
class Mistake:
    """One misclassified example."""

    number: int
    """Its place in the test data, from 1."""
    true: int
    predicted: int
    rank: int
    margin: float
    text: str | None
    reasons: list[tuple[str, float]]


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
    classifier: Any, found: Evaluation, features: Any, text: Any, names: NDArray | None, n: int
) -> list[Mistake]:
    """Describe at most `n` misclassified examples, with the features that led to the error."""
    where = choose(found, n)
    explained = _explanations(classifier, found, features, names, where)
    return [
        Mistake(
            number=int(i) + 1,
            true=int(found.true[i]),
            predicted=int(found.predicted[i]),
            rank=int(found.rank[i]) + 1,
            margin=float(found.margin[i]),
            text=None if text is None else _shorten(str(text[i])),
            reasons=why,
        )
        for i, why in zip(where, explained, strict=True)
    ]


def _explanations(
    classifier: Any,
    found: Evaluation,
    features: Any,
    names: NDArray | None,
    where: NDArray[np.intp],
) -> list[list[tuple[str, float]]]:
    weights = class_weights(classifier)
    if names is None or weights is None or features is None:
        return [[] for _ in where]
    explained = []
    for i in where:
        true, predicted = found.true[i], found.predicted[i]
        against = weights[true] if true < found.n_classes else np.zeros_like(weights[0])
        row = features[[i]] if sparse.issparse(features) else features[i]
        explained.append(reasons(row, weights[predicted] - against, names, REASONS))
    return explained


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
