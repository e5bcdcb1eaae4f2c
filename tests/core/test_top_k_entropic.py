"""The restricted problem of top-k entropy agrees with 50 digits, on inputs of every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from polymargin import get_loss
from tests.core.strategies import examples, large_problems, restricted_problems
from tests.reference.block_sets import solve_with_clarabel
from tests.reference.entropic import solve_softmax, solve_top_k_entropy, top_k_entropy_value
from tests.reference.objective import top_k_entropy_values

ACCURACY = {np.float64: 1e-13, np.float32: 1e-6}
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def solve(b, c, top_k, dtype=np.float64, **settings):
    return get_loss("top_k_entropy", top_k).solve_restricted(np.asarray(b, dtype), c, **settings)


def allowed(b, c, dtype):
    """What rounding of ``b - t`` does: every p moves with it by p / (1 + p) at most."""
    return ACCURACY[dtype] * min(c, 1.0) * (30 + c + float(np.max(np.abs(b))))


def assert_exact(b, c, top_k, dtype=np.float64):
    b = np.asarray(b, dtype=dtype)
    p = solve(b, c, top_k, dtype)
    assert p.shape == b.shape and p.dtype == dtype
    total, eps = p.sum(dtype=np.float64), np.finfo(dtype).eps
    assert (p >= 0).all() and total <= c * (1 + 4 * eps)
    assert float(p.max()) <= total / top_k * (1 + 8 * eps)
    error = np.max(np.abs(p.astype(np.float64) - solve_top_k_entropy(b, c, top_k)))
    assert error <= allowed(b, c, dtype)


@examples(250)
@example(problem=([0.0], 1.0, 1))
@example(problem=([-1.0, -2.0, -0.5], 1.0, 2))
@example(problem=([0.5] * 7, 0.3, 3))
@example(problem=([1e12, 1e12, -1e-12], 1e-12, 2))
@example(problem=([1e12, -1e6, -1e6], 1e3, 2))
@example(problem=([1e3, -1e3], 1e-3, 2))
@example(problem=([0.0, 0.0], 7e12, 2))
@given(problem=restricted_problems())
def test_small_problems(problem):
    assert_exact(*problem)


@examples(150)
@given(problem=restricted_problems())
def test_small_problems_in_single_precision(problem):
    b, c, top_k = problem
    assert_exact(b, float(np.float32(c)), top_k, np.float32)


@examples(6)
@given(problem=large_problems())
def test_up_to_2000_classes(problem):
    b, c, top_k = problem
    assert_exact(b, c, min(top_k, 10))


@every_dtype
@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.7, 1e4, 1e12])
@pytest.mark.parametrize("value", [-1e3, 0.0, 0.25, 50.0, 1e12])
@pytest.mark.parametrize(("m", "top_k"), [(1, 1), (3, 2), (3, 3), (17, 5)])
def test_equal_entries_of_any_size(m, top_k, value, c, dtype):
    assert_exact(np.full(m, value), float(dtype(c)), top_k, dtype)


@pytest.mark.parametrize("guess", [-1e6, -1.0, 0.3, 5.0, 1e6])
def test_a_guess_of_the_threshold_changes_nothing(guess):
    b = np.random.default_rng(0).normal(size=(50, 9)) * 3
    close = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(solve(b, 0.7, 3, guess=guess), solve(b, 0.7, 3), **close)


@examples(60)
@given(problem=restricted_problems())
def test_with_a_k_of_1_it_is_softmax(problem):
    b, c, _ = problem
    assert np.max(np.abs(solve(b, c, 1) - solve_softmax(b, c))) <= allowed(b, c, np.float64)


@pytest.mark.parametrize(("m", "top_k"), [(1, 1), (4, 2), (4, 4), (20, 5)])
def test_agrees_with_clarabel(m, top_k):
    rng = np.random.default_rng(m)
    for c in (0.1, 1.0, 5.0):
        b = 2 * rng.normal(size=m)
        found = solve_with_clarabel("top_k_entropy", b, c, top_k)
        np.testing.assert_allclose(solve(b, c, top_k), found, rtol=0, atol=1e-4)


@examples(150)
@example(problem=([800.0, -800.0, 0.0], 1.0, 2))
@given(problem=restricted_problems())
def test_values(problem):
    h, _, top_k = problem
    value = get_loss("top_k_entropy", top_k).of_margins(np.array([h]))[0]
    expected = top_k_entropy_value(h, top_k)
    assert value == pytest.approx(expected, rel=1e-13 * (30 + max(map(abs, h))), abs=1e-300)
    assert top_k_entropy_values(np.array([h]), top_k)[0] == pytest.approx(
        expected, rel=1e-11 * (30 + max(map(abs, h))), abs=1e-300
    )
