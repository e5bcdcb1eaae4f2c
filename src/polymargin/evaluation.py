"""How good a classifier is on labelled examples, class by class and pair by pair.

The displays, the report and ``polymargin evaluate`` all show what is computed here, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from polymargin.arrays import Doubles, Floats, Indices
from polymargin.costs import Costs, costs_for
from polymargin.estimators.probabilities import log_probabilities, temperature_of
from polymargin.fitted import Classifier, Examples, split_pipeline
from polymargin.storage import Array

__all__ = ["ConfusedPair", "Evaluation", "ReliabilityBin", "compare", "evaluate"]

BLOCK = 2**23  # scores held at a time
BINS = 15  # of the calibration error
UNSEEN = -1  # rank of an example whose label the model does not know


@dataclass(frozen=True)
class ConfusedPair:
    """Examples of one class that were taken for another.

    Examples
    --------
    >>> from polymargin.evaluation import compare
    >>> (pair,) = compare(["a", "a", "b"], ["a", "b", "b"]).confused_pairs(1)
    >>> print(pair.true, pair.predicted, pair.count, pair.share)
    a b 1 0.5
    """

    true: object  # label
    predicted: object
    count: int  # of examples
    share: float  # their part of the true class's examples
    cost: float | None = None  # of each of them, where costs are known

    @property
    def total(self) -> float:
        """What they cost together; without costs, their number."""
        return self.count * (1.0 if self.cost is None else self.cost)


@dataclass(frozen=True)
class ReliabilityBin:
    """Examples whose predicted label has a probability between two bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.evaluation import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> found = evaluate(LinearMulticlassSVC(loss="softmax", random_state=0).fit(X, y), X, y)
    >>> sum(part.count for part in found.reliability())
    150
    """

    low: float
    high: float
    count: int
    confidence: float  # the mean of these probabilities
    accuracy: float  # the part of the predictions that is right


@dataclass(frozen=True)
class Evaluation:
    """Predictions for labelled examples.

    Attributes
    ----------
    labels : ndarray of shape (n_labels,)
        The model's classes, followed by labels that only the examples have.
    n_classes : int
        How many of `labels` the model knows.
    true, predicted : int ndarray of shape (n,)
        Positions in `labels`.
    rank : int ndarray of shape (n,)
        Position of the true class in the order of the scores, 0 the best; -1 where the model does
        not know the label.
    margin : float ndarray of shape (n,)
        Score of the predicted class minus that of the true class; NaN where that is unknown.
    costs : float ndarray of shape (n_classes, n_classes) or None
        What predictions cost, true classes down and predicted ones across.
    confidence : float ndarray of shape (n,) or None
        Probability of the predicted class, of a model that has probabilities.

    Examples
    --------
    >>> from polymargin.evaluation import compare
    >>> found = compare(["a", "a", "b"], ["a", "b", "b"])
    >>> found.n_examples, found.n_correct
    (3, 2)
    """

    labels: Array
    n_classes: int
    true: NDArray[np.intp]
    predicted: NDArray[np.intp]
    rank: NDArray[np.intp]
    margin: Doubles
    costs: Doubles | None = None
    confidence: Doubles | None = None

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.true)

    @property
    def unseen(self) -> Array:
        """Labels of the examples that the model does not know, sorted."""
        return self.labels[self.n_classes :]

    @property
    def n_unseen(self) -> int:
        """Number of examples with such a label; each counts as an error."""
        return int(np.count_nonzero(self.rank == UNSEEN))

    @property
    def n_correct(self) -> int:
        """Number of examples whose predicted label is the true one."""
        return int(np.count_nonzero(self.true == self.predicted))

    @property
    def accuracy(self) -> float:
        """Fraction of examples whose predicted label is the true one."""
        return self.n_correct / self.n_examples

    @property
    def mean_cost(self) -> float | None:
        """What a prediction costs on average; None without costs.

        Examples whose label the model does not know are left out: nobody said what they cost.
        """
        if self.costs is None:
            return None
        known = self.rank != UNSEEN
        if not known.any():
            return float("nan")
        return float(self.costs[self.true[known], self.predicted[known]].mean())

    def reliability(self, n_bins: int = BINS) -> list[ReliabilityBin]:
        """How often predictions of some confidence are right; bins without examples are left out.

        Of a calibrated model, seven in ten predictions with a probability of 70 % are right.
        """
        if self.confidence is None:
            return []
        bins = np.minimum((self.confidence * n_bins).astype(np.intp), n_bins - 1)
        right = self.true == self.predicted
        return [
            ReliabilityBin(
                one / n_bins,
                (one + 1) / n_bins,
                int(np.count_nonzero(inside := bins == one)),
                float(self.confidence[inside].mean()),
                float(right[inside].mean()),
            )
            for one in np.unique(bins).tolist()
        ]

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error, ``sum_b n_b / n |accuracy_b - confidence_b|`` over 15 bins.

        None for a model without probabilities.
        """
        if self.confidence is None:
            return None
        gaps = [one.count * abs(one.accuracy - one.confidence) for one in self.reliability()]
        return sum(gaps) / self.n_examples

    def top_k_accuracy(self, k: int) -> float:
        """Fraction of examples whose true label is among the k best."""
        return float(np.mean((self.rank >= 0) & (self.rank < k)))

    def top_k_curve(self, largest: int | None = None) -> Doubles:
        """Top-k accuracy for k = 1, 2, ... up to `largest` or the number of classes."""
        counts = np.bincount(self.rank[self.rank >= 0], minlength=self.n_classes)
        return np.cumsum(counts)[:largest] / self.n_examples

    @cached_property
    def confusion(self) -> sparse.csr_array:
        """Counts of examples, true labels down and predicted ones across."""
        k = len(self.labels)
        ones = np.ones(self.n_examples, np.int64)
        return sparse.coo_array((ones, (self.true, self.predicted)), shape=(k, k)).tocsr()

    @cached_property
    def support(self) -> Indices:
        """Number of examples of each label."""
        return np.bincount(self.true, minlength=len(self.labels))

    @cached_property
    def n_predicted(self) -> Indices:
        """How often each label was predicted."""
        return np.bincount(self.predicted, minlength=len(self.labels))

    @cached_property
    def _hits(self) -> Indices:
        hits: Indices = self.confusion.diagonal()
        return hits

    @property
    def precision(self) -> Doubles:
        """Correct part of the predictions of each label; 0 where there are none."""
        return _ratio(self._hits, self.n_predicted)

    @property
    def recall(self) -> Doubles:
        """Correctly predicted part of the examples of each label; 0 where there are none."""
        return _ratio(self._hits, self.support)

    @property
    def f1(self) -> Doubles:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self._hits, self.support + self.n_predicted)

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that were predicted or should have been."""
        occur = (self.support + self.n_predicted) > 0
        return float(self.f1[occur].mean())

    def confused_pairs(self, largest: int | None = None) -> list[ConfusedPair]:
        """Pairs of a true and a wrongly predicted label, most frequent first.

        With costs, those that cost most in all come first, and those of unknown cost last.
        """
        counts = self.confusion.tocoo()
        wrong = counts.row != counts.col
        true, predicted, n = counts.row[wrong], counts.col[wrong], counts.data[wrong]
        share, cost = n / self.support[true], self._costs_of(true, predicted)
        order = np.lexsort((predicted, true, -share, -n, -(n * cost)))[:largest]
        names = self.labels
        return [
            ConfusedPair(
                names[true[i]],
                names[predicted[i]],
                int(n[i]),
                float(share[i]),
                None if np.isnan(cost[i]) or self.costs is None else float(cost[i]),
            )
            for i in order
        ]

    def _costs_of(self, true: NDArray[np.intp], predicted: NDArray[np.intp]) -> Doubles:
        """What each of these pairs costs: 1 without costs, NaN where it is not known."""
        if self.costs is None:
            return np.ones(len(true))
        cost = np.full(len(true), np.nan)
        known = (true < self.n_classes) & (predicted < self.n_classes)
        cost[known] = self.costs[true[known], predicted[known]]
        return cost


def evaluate(
    model: Classifier, X: Examples, y: ArrayLike, costs: Costs | None = None
) -> Evaluation:
    """Predict the examples, in blocks, and compare with their labels.

    Parameters
    ----------
    model : classifier
        Fitted, with ``decision_function`` and ``classes_``; a pipeline that ends in one as well.
    X : array, sparse matrix or list
        What the model predicts from; rows are taken by slices.
    y : array-like of shape (n,)
        Labels, among them perhaps some that the model does not know.
    costs : array-like, mapping or DataFrame, default=None
        Costs between classes, as for :func:`polymargin.costs.costs_for`; by default those that the
        model was trained with, if any.

    Returns
    -------
    Evaluation
        Predictions, ranks and margins.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.evaluation import evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> found = evaluate(LinearMulticlassSVC(random_state=0).fit(X, y), X, y)
    >>> found.accuracy > 0.9, found.n_examples
    (True, 150)
    """
    truth = _some(np.asarray(y))
    n, n_classes = len(truth), len(model.classes_)
    labels, true = encode_labels(truth, model.classes_)
    predicted = np.empty(n, np.intp)
    rank = np.full(n, UNSEEN, np.intp)
    margin = np.full(n, np.nan)
    temperature = temperature_of(split_pipeline(model)[1])
    confidence = None if temperature is None else np.empty(n)
    for first, scores in score_blocks(model, X, n):
        part = slice(first, first + len(scores))
        best = np.argmax(scores, axis=1)
        predicted[part] = best
        known = np.flatnonzero(true[part] < n_classes)
        own_label = true[part][known]
        ours = scores[known, own_label][:, None]
        ahead = scores[known] > ours
        tied_before = (scores[known] == ours) & (np.arange(n_classes) < own_label[:, None])
        rank[first + known] = np.count_nonzero(ahead | tied_before, axis=1)
        margin[first + known] = scores[known, best[known]] - ours[:, 0]
        if temperature is not None and confidence is not None:
            confidence[part] = np.exp(score_log_probabilities(scores, temperature)).max(axis=1)
    table = _cost_table(model, costs)
    return Evaluation(labels, n_classes, true, predicted, rank, margin, table, confidence)


def _cost_table(model: Classifier, costs: Costs | None) -> Doubles | None:
    """Costs between the model's classes; its own where none are given."""
    given = getattr(split_pipeline(model)[1], "cost_matrix", None) if costs is None else costs
    return None if given is None else costs_for(given, model.classes_)


def compare(
    y_true: ArrayLike, y_pred: ArrayLike, classes: Array | None = None, costs: Costs | None = None
) -> Evaluation:
    """Compare labels with predictions from elsewhere; there are no scores, so no margins.

    `classes` are the labels that the model knows; by default, all that occur. `costs` are those
    between them. The rank is 0 where a prediction is right, beyond all classes where it is wrong.

    Examples
    --------
    >>> from polymargin.evaluation import compare
    >>> f"{compare(['a', 'a', 'b'], ['a', 'b', 'b']).accuracy:.2f}"
    '0.67'
    """
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    if y_true.shape != y_pred.shape or y_true.ndim != 1:
        raise ValueError(
            f"y_true and y_pred must be 1-D and of one length, got shapes {y_true.shape} and "
            f"{y_pred.shape}."
        )
    if classes is None:
        both = np.concatenate([_some(y_true), y_pred])  # of one type
        classes, (y_true, y_pred) = np.unique(both), np.split(both, 2)
    labels, true = encode_labels(_some(y_true), classes)
    predicted = encode_labels(y_pred, classes)[1]
    rank = np.where(true == predicted, 0, len(classes))
    rank[true >= len(classes)] = UNSEEN
    table = None if costs is None else costs_for(costs, classes)
    margin = np.full(len(true), np.nan)
    return Evaluation(labels, len(classes), true, predicted, rank, margin, table)


def _some(y: Array) -> Array:
    if len(y) == 0:
        raise ValueError("There are no examples to evaluate.")
    return y


def score_blocks(model: Classifier, X: Examples, n: int) -> Iterator[tuple[int, Floats]]:
    """Scores of a block of the n examples after the other, each with the place of its first."""
    rows = max(1, BLOCK // len(model.classes_))
    for first in range(0, n, rows):
        yield first, score_matrix(model, X[first : min(n, first + rows)])


def score_matrix(model: Classifier, X: Examples) -> Floats:
    """Scores with a column per class, also for two classes."""
    scores = np.asarray(model.decision_function(X))
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def score_log_probabilities(scores: Floats, temperature: float) -> Floats:
    """Logarithms of probabilities from :func:`score_matrix`, where two classes have opposites."""
    return log_probabilities(scores[:, 1] if scores.shape[1] == 2 else scores, temperature)


def cost_text(cost: float) -> str:
    """A cost as those write it who show an evaluation."""
    return f"{cost:.4g}"


def percent(fraction: float) -> str:
    """A fraction as those write it who show an evaluation."""
    return f"{100 * fraction:.2f} %"


def encode_labels(y: Array, classes: Array) -> tuple[Array, NDArray[np.intp]]:
    """Positions of `y` in the classes followed by its other labels; and those labels."""
    codes = {label: code for code, label in enumerate(classes.tolist())}
    values = y.tolist()
    extra = sorted(set(values) - codes.keys(), key=lambda label: (str(type(label)), label))
    codes |= {label: code for code, label in enumerate(extra, start=len(codes))}
    labels = np.array([*classes.tolist(), *extra], dtype=object) if extra else classes
    return labels, np.fromiter((codes[label] for label in values), np.intp, len(values))


def _ratio(part: Indices, whole: Indices) -> Doubles:
    ratio = np.zeros(len(part))
    return np.divide(part, whole, out=ratio, where=whole > 0)
