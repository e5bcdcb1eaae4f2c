"""The restricted problem of softmax agrees with 50 digits, on inputs of every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given

from polymargin import get_loss
from tests.core.strategies import examples, large_problems, restricted_problems
from tests.reference.block_sets import solve_with_clarabel
from tests.reference.entropic import solve_softmax

ACCURACY = {np.float64: 1e-13, np.float32: 1e-6}
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def solve(b, c, dtype=np.float64, **settings):
    return get_loss("softmax").solve_restricted(np.asarray(b, dtype), c, **settings)


def allowed(b, c, dtype):
    """What rounding of ``b - t`` does: every p moves with it by p / (1 + p) at most."""
    return ACCURACY[dtype] * min(c, 1.0) * (30 + c + float(np.max(np.abs(b))))


def assert_exact(b, c, dtype=np.float64):
    b = np.asarray(b, dtype=dtype)
    p = solve(b, c, dtype)
    assert p.shape == b.shape and p.dtype == dtype
    assert (p >= 0).all() and p.sum(dtype=np.float64) <= c * (1 + 4 * np.finfo(dtype).eps)
    error = np.max(np.abs(p.astype(np.float64) - solve_softmax(b, c)))
    assert error <= allowed(b, c, dtype)


@examples(250)
@example(problem=([0.0], 1.0, 1))
@example(problem=([-1.0, -2.0, -0.5], 1.0, 2))
@example(problem=([0.5] * 7, 0.3, 3))
@example(problem=([1e12, 1e12, -1e-12], 1e-12, 2))
@example(problem=([1e3, -1e3], 1e-3, 1))
@example(problem=([0.0], 7e12, 1))
@given(problem=restricted_problems())
def test_small_problems(problem):
    b, c, _ = problem
    assert_exact(b, c)


@examples(150)
@given(problem=restricted_problems())
def test_small_problems_in_single_precision(problem):
    b, c, _ = problem
    assert_exact(b, float(np.float32(c)), np.float32)


@examples(6)
@given(problem=large_problems())
def test_up_to_2000_classes(problem):
    b, c, _ = problem
    assert_exact(b, c)


@every_dtype
@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.7, 1e4, 1e12])
@pytest.mark.parametrize("value", [-1e3, -1.0, 0.0, 1e-300, 0.25, 50.0, 1e12])
@pytest.mark.parametrize("m", [1, 3, 8, 17])
def test_equal_entries_of_any_size(m, value, c, dtype):
    assert_exact(np.full(m, value), float(dtype(c)), dtype)


@pytest.mark.parametrize("guess", [-1e6, -1.0, 0.3, 5.0, 1e6])
def test_a_guess_of_the_threshold_changes_nothing(guess):
    b = np.random.default_rng(0).normal(size=(50, 9)) * 3
    close = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(solve(b, 0.7, guess=guess), solve(b, 0.7), **close)


@pytest.mark.parametrize("m", [1, 4, 20])
def test_agrees_with_clarabel(m):
    rng = np.random.default_rng(m)
    for c in (0.1, 1.0, 5.0):
        b = 2 * rng.normal(size=m)
        found = solve_with_clarabel("softmax", b, c)
        np.testing.assert_allclose(solve(b, c), found, rtol=0, atol=1e-4)


def test_the_last_step_is_taken_to_second_order():
    """From a guess that is off by what ends the iteration, in single precision: no digit is lost.

    A step along the first derivative alone would leave errors of 3e-7.
    """
    rng = np.random.default_rng(0)
    for _ in range(200):
        b = 2 * rng.normal(size=8).astype(np.float32)
        c = float(np.float32(rng.uniform(1, 6)))
        exact = solve_softmax(b, c)
        root = float(b[0]) - exact[0] - np.log(exact[0])
        for off in (-1.9e-3, 1.9e-3):
            p = solve(b, c, np.float32, guess=np.float32(root + off))
            assert np.max(np.abs(p - exact)) <= 2e-7 * c
