"""Primal values of the losses, against plain loops and the block set's support function."""

from __future__ import annotations

import numpy as np
import pytest

from polymargin import get_loss
from polymargin.losses import LOSSES
from tests.reference.block_sets import largest_inner_product
from tests.reference.entropic import ENTROPIC, top_k_entropy_value
from tests.reference.objective import loss_values, wrong_margins

CASES = [
    ("crammer_singer", None),
    ("weston_watkins", None),
    ("top_k_alpha", 1),
    ("top_k_alpha", 2),
    ("top_k_alpha", 4),
    ("top_k_beta", 1),
    ("top_k_beta", 3),
    ("top_k_beta", 4),
    ("one_vs_rest", None),
    ("one_vs_rest_squared", None),
    ("softmax", None),
    ("top_k_entropy", 1),
    ("top_k_entropy", 2),
    ("top_k_entropy", 4),
]
every_case = pytest.mark.parametrize(("name", "top_k"), CASES)
K = 5


def loss_by_loop(scores, true_class, name, top_k):
    """One example's loss, spelled out class by class."""
    if name.startswith("one_vs_rest"):
        total = 0.0
        for j, score in enumerate(scores):
            violation = max(0.0, 1.0 - score if j == true_class else 1.0 + score)
            total += violation * violation if name == "one_vs_rest_squared" else violation
        return total
    margins = [1.0 + s - scores[true_class] for j, s in enumerate(scores) if j != true_class]
    margins.sort(reverse=True)
    if name == "softmax":
        return float(np.log1p(sum(np.exp(h - 1.0) for h in margins)))
    if name == "top_k_entropy":
        return top_k_entropy_value([h - 1.0 for h in margins], top_k)
    if name == "crammer_singer":
        return max(0.0, margins[0])
    if name == "weston_watkins":
        return sum(max(0.0, h) for h in margins)
    if name == "top_k_beta":
        return sum(max(0.0, h) for h in margins[:top_k]) / top_k
    return max(0.0, sum(margins[:top_k]) / top_k)


def random_scores(n=200, seed=0):
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=(n, K))
    scores[::7] = np.round(scores[::7])  # ties, and margins that are exactly met
    return scores, rng.integers(0, K, size=n).astype(np.int32)


def test_the_losses_are_there():
    assert set(LOSSES) == {name for name, _ in CASES}


@every_case
def test_values_agree_with_plain_loops(name, top_k):
    scores, y = random_scores()
    expected = [loss_by_loop(s, true, name, top_k) for s, true in zip(scores, y, strict=True)]
    values = get_loss(name, top_k=top_k).value(scores, y)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(
        loss_values(scores, y, name, top_k), expected, rtol=1e-14, atol=1e-14
    )


@every_case
def test_single_precision_scores_give_double_precision_values(name, top_k):
    scores, y = random_scores(seed=1)
    scores = scores.astype(np.float32)
    loss = get_loss(name, top_k=top_k)
    values = loss.value(scores, y)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, loss.value(scores.astype(np.float64), y), rtol=1e-6)


@every_case
def test_the_loss_is_the_support_function_of_its_block_set(name, top_k):
    scores, y = random_scores(n=6, seed=2)
    c = 0.7
    values = get_loss(name, top_k=top_k).value(scores, y)
    if name.startswith("one_vs_rest"):
        margins = 1.0 - np.where(np.arange(K) == y[:, None], 1.0, -1.0) * scores
    else:
        margins = wrong_margins(scores, y)
    margins = margins - (name in ENTROPIC)
    for h, value in zip(margins, values, strict=True):
        assert largest_inner_product(name, h, c, top_k) == pytest.approx(c * value, abs=1e-8)


@every_case
@pytest.mark.parametrize("smoothing", [1e-3, 0.5, 20.0])
def test_smoothed_values_are_exact(name, top_k, smoothing):
    """And so is their maximum over the block set, to what a general solver gives."""
    if name in ("one_vs_rest_squared", *ENTROPIC):
        with pytest.raises(ValueError, match="smooth by itself"):
            get_loss(name, top_k, smoothing)
        return
    scores, y = random_scores(n=60, seed=3)
    loss = get_loss(name, top_k, smoothing)
    values = loss.value(scores, y)
    expected = loss_values(scores, y, name, top_k, smoothing)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-14)
    h = 1.0 - np.where(np.arange(K) == y[0], 1.0, -1.0) * scores[0]
    h = h if name == "one_vs_rest" else wrong_margins(scores[:1], y[:1])[0]
    assert largest_inner_product(name, h, 0.7, top_k, smoothing) == pytest.approx(
        0.7 * values[0], abs=1e-7
    )
    plain = get_loss(name, top_k).value(scores, y)
    assert (values <= plain + 1e-12).all()
    assert loss.value_at_zero(K) == pytest.approx(loss.value(np.zeros((1, K)), [1])[0], rel=1e-14)


@pytest.mark.parametrize("smoothing", [-0.1, float("nan"), float("inf")])
def test_a_smoothing_below_zero_is_refused(smoothing):
    with pytest.raises(ValueError, match="smoothing must be"):
        get_loss("crammer_singer", smoothing=smoothing)


@pytest.mark.parametrize("name", LOSSES)
def test_zero_scores_cost_what_zero_rows_add(name):
    top_k = 2 if name.startswith("top_k") else None
    expected = {"weston_watkins": K - 1, "one_vs_rest": K, "one_vs_rest_squared": K}
    expected = expected.get(name, np.log(K) if name in ENTROPIC else 1)
    values = get_loss(name, top_k=top_k).value(
        np.zeros((3, K)), np.array([0, 2, 4], dtype=np.int32)
    )
    np.testing.assert_allclose(values, np.full(3, expected), rtol=1e-15)


@pytest.mark.parametrize("name", ["hinge", "", "Crammer_Singer"])
def test_an_unknown_loss_is_an_error_that_lists_the_known(name):
    with pytest.raises(ValueError, match="crammer_singer"):
        get_loss(name)


@pytest.mark.parametrize("name", ["top_k_alpha", "top_k_beta", "top_k_entropy"])
@pytest.mark.parametrize("top_k", [None, 0, -1])
def test_top_k_losses_need_a_positive_k(name, top_k):
    with pytest.raises(ValueError, match="top_k"):
        get_loss(name, top_k=top_k)


def test_the_scores_of_top_k_entropy_are_no_logarithms_of_probabilities():
    """Hence no ``predict_proba``: ``exp(-loss)`` of the classes adds up to more than 1."""
    scores = np.tile([1.0, 0.5, 0.0], (3, 1))
    every = np.arange(3)
    assert np.exp(-get_loss("softmax").value(scores, every)).sum() == pytest.approx(1.0)
    assert np.exp(-get_loss("top_k_entropy", 2).value(scores, every)).sum() > 1.01
    assert not get_loss("top_k_entropy", 2).gives_probabilities
