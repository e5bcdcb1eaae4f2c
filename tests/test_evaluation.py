"""Accuracies, ranks and confused pairs agree with scikit-learn's metrics and with counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from polymargin import evaluation
from polymargin.evaluation import compare, evaluate


class Scores:
    """A classifier whose scores are the data."""

    def __init__(self, classes):
        self.classes_ = np.asarray(classes)

    def decision_function(self, X):
        X = np.asarray(X)
        return X[:, 0] if len(self.classes_) == 2 else X


@st.composite
def scored_examples(draw):
    k = draw(st.integers(2, 6))
    n = draw(st.integers(1, 25))
    width = 1 if k == 2 else k
    # few distinct values, so that ties are common
    values = draw(st.lists(st.integers(-2, 2), min_size=n * width, max_size=n * width))
    labels = draw(st.lists(st.integers(0, k + 1), min_size=n, max_size=n))
    names = np.array([f"class {i}" for i in range(k + 2)])
    X = np.array(values, float).reshape(n, width)
    return X, names[:k], names[np.array(labels)]


@settings(max_examples=60, deadline=None)
@given(scored_examples())
def test_counts_are_those_of_scikit_learn_and_of_plain_counting(drawn):
    X, classes, y = drawn
    found = evaluate(Scores(classes), X, y)
    predicted = found.labels[found.predicted]
    scores = evaluation.score_matrix(Scores(classes), X)
    by_hand = [classes[sorted(range(len(classes)), key=lambda j: (-row[j], j))] for row in scores]

    assert list(predicted) == [order[0] for order in by_hand]
    assert found.accuracy == pytest.approx(np.mean(predicted == y))
    for k in range(1, len(classes) + 1):
        hits = np.mean([label in order[:k] for label, order in zip(y, by_hand, strict=True)])
        assert found.top_k_accuracy(k) == pytest.approx(hits)
        assert found.top_k_curve()[k - 1] == pytest.approx(hits)
    assert found.macro_f1 == pytest.approx(
        metrics.f1_score(y, predicted.astype(str), average="macro", zero_division=0)
    )
    matrix = metrics.confusion_matrix(y, predicted.astype(str), labels=list(found.labels))
    np.testing.assert_array_equal(found.confusion.toarray(), matrix)
    table = metrics.precision_recall_fscore_support(
        y, predicted.astype(str), labels=list(found.labels), zero_division=0
    )
    for ours, theirs in zip(
        (found.precision, found.recall, found.f1, found.support), table, strict=True
    ):
        np.testing.assert_allclose(ours, theirs)
    assert found.n_unseen == sum(label not in classes for label in y)
    assert set(found.unseen) == {label for label in y if label not in classes}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_confused_pairs_are_counted_and_sorted(pairs):
    y, predicted = map(np.array, zip(*pairs, strict=True))
    found = compare(y, predicted).confused_pairs()
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    assert {(pair.true, pair.predicted): pair.count for pair in found} == dict(counts)
    assert [pair.count for pair in found] == sorted(counts.values(), reverse=True)
    for pair in found:
        assert pair.share == pytest.approx(pair.count / np.sum(y == pair.true))


def test_blocks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(97, 5)), rng.integers(0, 6, 97)
    whole = evaluate(Scores(np.arange(5)), X, y)
    monkeypatch.setattr(evaluation, "BLOCK", 35)
    parts = evaluate(Scores(np.arange(5)), X, y)
    for name in ("true", "predicted", "rank", "margin"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_the_margin_is_zero_exactly_for_what_is_right():
    X = np.array([[3.0, 1.0, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1.0]])
    found = evaluate(Scores(["a", "b", "c"]), X, np.array(["a", "a", "z"]))
    np.testing.assert_allclose(found.margin[:2], [0.0, 1.5])
    assert np.isnan(found.margin[2])


def test_nothing_to_evaluate_is_an_error():
    with pytest.raises(ValueError, match="no examples"):
        evaluate(Scores(["a", "b", "c"]), np.empty((0, 3)), [])
    with pytest.raises(ValueError, match="no examples"):
        compare([], [])
    with pytest.raises(ValueError, match="one length"):
        compare([1, 2], [1])


def test_costs_are_those_of_the_model_or_given():
    costs = np.array([[0.0, 9.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    y, predicted = np.array(list("aaaabbz")), np.array(list("bccaccc"))
    found = compare(y, predicted, np.array(list("abc")), costs)
    assert found.mean_cost == pytest.approx((9 + 1 + 1 + 0 + 1 + 1) / 6)  # not of z
    assert compare(y, predicted).mean_cost is None
    pairs = [(p.true, p.predicted, p.count, p.cost) for p in found.confused_pairs()]
    first = [("a", "b", 1, 9.0), ("b", "c", 2, 1.0), ("a", "c", 2, 1.0), ("z", "c", 1, None)]
    assert pairs == first
    assert [p.total for p in compare(y, predicted).confused_pairs()] == [2, 2, 1, 1]

    model = Scores(list("abc"))
    X = np.eye(3)[[1, 2, 2, 0, 2, 2, 2]]
    assert evaluate(model, X, y).mean_cost is None
    model.cost_matrix = costs
    assert evaluate(model, X, y).mean_cost == pytest.approx(found.mean_cost)
    assert evaluate(model, X, y, 2 * costs).mean_cost == pytest.approx(2 * found.mean_cost)
    assert np.isnan(compare(["z"], ["a"], np.array(list("abc")), costs).mean_cost)


def test_calibration_is_that_of_plain_counting():
    rng = np.random.default_rng(0)
    model = Scores(["a", "b", "c"])
    X, y = 3 * rng.normal(size=(300, 3)), np.array(list("abc"))[rng.integers(0, 3, 300)]
    assert evaluate(model, X, y).calibration_error is None
    assert evaluate(model, X, y).reliability() == []
    model.probability, model.temperature_ = True, 2.0
    found = evaluate(model, X, y)
    P = np.exp(X / 2.0) / np.exp(X / 2.0).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.confidence, P.max(axis=1))
    right = np.array(list("abc"))[P.argmax(axis=1)] == y
    expected, n = 0.0, 0
    for low in np.arange(15) / 15:
        inside = (P.max(axis=1) >= low) & (P.max(axis=1) < low + 1 / 15)
        if inside.any():
            expected += abs(right[inside].sum() - P.max(axis=1)[inside].sum()) / 300
            n += inside.sum()
    assert n == 300
    assert found.calibration_error == pytest.approx(expected)
    assert sum(one.count for one in found.reliability()) == 300
    two = Scores(["a", "b"])
    two.loss = "softmax"
    s = rng.normal(size=(50, 1))
    confident = evaluate(two, s, np.array(list("ab"))[(s[:, 0] > 0).astype(int)])
    np.testing.assert_allclose(confident.confidence, 1 / (1 + np.exp(-np.abs(s[:, 0]))))
    certain = evaluate(two, np.full((3, 1), 1e4), np.array(["b"] * 3))
    assert certain.calibration_error == 0.0
