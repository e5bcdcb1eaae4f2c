"""The compiled restricted solvers agree with exact arithmetic and with a general QP solver.

Hypothesis draws the inputs. No answer is larger than the largest |b|, so errors are measured
against it: in float64 this is never looser than 1e-9 * max(1, |b|, bounds).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polymargin import get_loss
from tests.core.strategies import examples, large_problems, restricted_problems
from tests.reference.block_sets import solve_with_clarabel
from tests.reference.restricted import (
    infeasibility,
    optimality_gap,
    solve_exactly,
    solve_to_floats,
)

LOSSES = (
    "crammer_singer",
    "weston_watkins",
    "top_k_alpha",
    "top_k_beta",
    "one_vs_rest",
    "one_vs_rest_squared",
)
TOP_K_LOSSES = ("top_k_alpha", "top_k_beta")
ACCURACY = {np.float64: 1e-12, np.float32: 2e-6}
FEASIBILITY = {np.float64: 1e-12, np.float32: 1e-6}

every_loss = pytest.mark.parametrize("name", LOSSES)
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def solve(name, b, c, top_k, dtype=np.float64, smoothing=0.0, **settings):
    """Solve one problem with the compiled code."""
    loss = get_loss(name, top_k if name in TOP_K_LOSSES else None, smoothing)
    return loss.solve_restricted(np.asarray(b, dtype=dtype), c, **settings)


def assert_exact(name, b, c, top_k, dtype=np.float64, smoothing=0.0):
    """The compiled answer is feasible and within rounding of the exact one."""
    b = np.asarray(b, dtype=dtype)
    p = solve(name, b, c, top_k, dtype, smoothing)
    assert p.shape == b.shape and p.dtype == dtype
    expected = solve_to_floats(name, b, c, top_k, smoothing)
    error = np.max(np.abs(p.astype(np.float64) - expected))
    scale = float(np.max(np.abs(b)))
    allowed = ACCURACY[dtype] * scale + float(np.finfo(dtype).smallest_subnormal)
    assert error <= allowed, f"error {error:.2e} at scale {scale:.2e}"
    excess = float(infeasibility(name, p, c, top_k))
    assert excess <= FEASIBILITY[dtype], f"outside the block set by {excess:.2e} (relative to c)"


# --- agreement with exact arithmetic -------------------------------------------------------------


@every_loss
@examples(800)
@example(problem=([0.0], 1.0, 1))
@example(problem=([-1.0, -2.0, -0.5], 1.0, 2))
@example(problem=([0.5] * 7, 0.3, 3))
@example(problem=([0.0, 0.0, 0.0], 1.0, 3))
@example(problem=([1e12, 1e12, -1e-12], 1e-12, 2))
@example(problem=([1.0, -5.0, -5.0], 10.0, 2))
@given(problem=restricted_problems())
def test_small_problems_are_solved_exactly(name, problem):
    assert_exact(name, *problem)


@every_loss
@examples(250)
@example(problem=([1e-45], 1.0, 1))  # half of it is not a number of this type
@given(problem=restricted_problems())
def test_small_problems_are_solved_in_single_precision(name, problem):
    b, c, top_k = problem
    assert_exact(name, b, float(np.float32(c)), top_k, dtype=np.float32)


@every_loss
@examples(60)
@given(problem=large_problems())
def test_up_to_2000_classes_are_solved_exactly(name, problem):
    assert_exact(name, *problem)


@every_loss
@examples(15)
@given(problem=large_problems())
def test_up_to_2000_classes_are_solved_in_single_precision(name, problem):
    b, c, top_k = problem
    assert_exact(name, b, float(np.float32(c)), top_k, dtype=np.float32)


@every_loss
@pytest.mark.parametrize("c", [1e-12, 1e-3, 0.7, 1e12])
@pytest.mark.parametrize("value", [-1.0, -1e-300, 0.0, 1e-300, 1e-12, 0.25, 1e12])
@pytest.mark.parametrize("m", [1, 2, 3, 8, 17])
def test_equal_entries_of_any_size(name, m, value, c):
    for top_k in {1, (m + 1) // 2, m}:
        assert_exact(name, np.full(m, value), c, top_k)


@every_dtype
@pytest.mark.parametrize("name", ["crammer_singer", "weston_watkins", "top_k_beta"])
@pytest.mark.parametrize("m", [1, 5, 40])
def test_bounds_far_below_the_rounding_of_b_are_reached(name, m, dtype):
    """b_max - c is b_max: the class that leads takes all it may, and nothing is lost."""
    b, c = np.r_[1.0, np.full(m - 1, 0.5)], 1e-25
    p = solve(name, b, c, 1, dtype)
    expected = np.full(m, c) if name == "weston_watkins" else np.r_[c, np.zeros(m - 1)]
    np.testing.assert_allclose(p, expected, rtol=1e-6, atol=0)


@every_loss
@every_dtype
def test_nothing_violated_gives_exactly_zero(name, dtype):
    rng = np.random.default_rng(0)
    b = -rng.uniform(0, 2, size=(50, 9)).astype(dtype)
    b[:, 3] = 0.0
    np.testing.assert_array_equal(solve(name, b, 1.0, 4, dtype), np.zeros_like(b))


# --- smoothing -----------------------------------------------------------------------------------

every_hinge = pytest.mark.parametrize("name", LOSSES[:5])
SMOOTHINGS = st.sampled_from([1e-9, 1e-3, 0.1, 0.5, 1.0, 30.0, 1e6])


@every_hinge
@examples(300)
@example(problem=([1e12, 1e12, -1e-12], 1e-12, 2), smoothing=1.0)
@example(problem=([0.5] * 7, 0.3, 3), smoothing=0.1)
@given(problem=restricted_problems(), smoothing=SMOOTHINGS)
def test_smoothed_problems_are_solved_exactly(name, problem, smoothing):
    assert_exact(name, *problem, smoothing=smoothing)


@every_hinge
@examples(150)
@given(problem=restricted_problems(), smoothing=SMOOTHINGS)
def test_smoothed_problems_are_solved_in_single_precision(name, problem, smoothing):
    b, c, top_k = problem
    assert_exact(name, b, float(np.float32(c)), top_k, np.float32, smoothing)


@every_hinge
@examples(20)
@given(problem=large_problems(), smoothing=SMOOTHINGS)
def test_smoothed_problems_of_up_to_2000_classes(name, problem, smoothing):
    assert_exact(name, *problem, smoothing=smoothing)


@every_hinge
def test_the_smoothed_oracle_is_optimal_and_agrees_with_clarabel(name):
    rng = np.random.default_rng(7)
    for m, top_k in [(1, 1), (4, 2), (4, 4), (11, 3)]:
        for smoothing in (0.1, 2.0):
            b, c = 2 * rng.normal(size=m), rng.uniform(0.1, 3)
            p = solve_exactly(name, b, c, top_k, smoothing)
            assert optimality_gap(name, b, c, p, top_k, smoothing) == 0
            found = solve_with_clarabel(name, b, c, top_k, smoothing)
            np.testing.assert_allclose(np.array(p, float), found, rtol=0, atol=1e-5)


def test_other_methods_than_their_own_are_not_offered_for_smoothed_losses():
    assert get_loss("crammer_singer", smoothing=0.1).restricted_methods == ["newton"]
    with pytest.raises(ValueError, match="restricted"):
        solve("crammer_singer", [1.0, 2.0], 1.0, None, smoothing=0.1, method="sort")


# --- agreement with a general QP solver ----------------------------------------------------------


@every_loss
@pytest.mark.parametrize("m", [1, 2, 3, 5, 9, 20])
def test_agrees_with_clarabel(name, m):
    rng = np.random.default_rng(m)
    for top_k in sorted({1, 2, (m + 1) // 2, m} & set(range(1, m + 1))):
        for _ in range(4):
            b, c = 2 * rng.normal(size=m), rng.uniform(0.1, 3)
            expected = solve_with_clarabel(name, b, c, top_k)
            np.testing.assert_allclose(solve(name, b, c, top_k), expected, rtol=0, atol=1e-7)


# --- relations between problems ------------------------------------------------------------------


@examples(300)
@given(problem=restricted_problems())
def test_top_1_is_crammer_singer(problem):
    b, c, _ = problem
    reference = solve("crammer_singer", b, c, None)
    tolerance = 1e-12 * np.max(np.abs(b))
    for name in TOP_K_LOSSES:
        np.testing.assert_allclose(solve(name, b, c, 1), reference, rtol=0, atol=tolerance)


@every_loss
@every_dtype
@pytest.mark.parametrize("m", [1, 2, 7, 19, 150])
def test_a_batch_is_its_rows(name, m, dtype):
    rng = np.random.default_rng(m)
    b = (rng.normal(size=(40, m)) * 10.0 ** rng.integers(-3, 4, size=(40, 1))).astype(dtype)
    c = 10.0 ** rng.uniform(-2, 2, size=40)
    top_k = (m + 1) // 2
    batch = solve(name, b, c, top_k, dtype)
    single = [solve(name, row, bound, top_k, dtype) for row, bound in zip(b, c, strict=True)]
    np.testing.assert_array_equal(batch, np.array(single))
    np.testing.assert_array_equal(
        solve(name, b, 0.5, top_k), solve(name, b, np.full(40, 0.5), top_k)
    )


@every_loss
@examples(100)
@given(problem=restricted_problems(), seed=st.integers(0, 1000))
def test_the_order_of_the_classes_does_not_matter(name, problem, seed):
    b, c, top_k = problem
    order = np.random.default_rng(seed).permutation(len(b))
    b = np.asarray(b)
    tolerance = 1e-12 * np.max(np.abs(b))
    np.testing.assert_allclose(
        solve(name, b[order], c, top_k), solve(name, b, c, top_k)[order], rtol=0, atol=tolerance
    )


@every_loss
@examples(200)
@given(problem=restricted_problems(), where=st.floats(-1.5, 1.5))
def test_a_guess_of_the_threshold_changes_nothing(name, problem, where):
    b, c, top_k = problem
    size = float(np.max(np.abs(b)))
    guessed = solve(name, b, c, top_k, guess=where * size)
    np.testing.assert_allclose(guessed, solve(name, b, c, top_k), rtol=0, atol=1e-12 * size)


@every_loss
def test_the_input_is_left_alone_and_may_be_read_only_or_strided(name):
    wide = np.random.default_rng(3).normal(size=(6, 20))
    wide.setflags(write=False)
    b = wide[::2, ::3]
    kept = b.copy()
    np.testing.assert_array_equal(solve(name, b, 1.0, 3), solve(name, kept, 1.0, 3))
    np.testing.assert_array_equal(b, kept)


# --- the oracle itself ---------------------------------------------------------------------------


@every_loss
@examples(200)
@given(problem=restricted_problems())
def test_the_exact_oracle_is_feasible_and_optimal(name, problem):
    b, c, top_k = problem
    p = solve_exactly(name, b, c, top_k)
    assert infeasibility(name, p, c, top_k) == 0
    assert optimality_gap(name, b, c, p, top_k) == 0


@every_loss
def test_the_exact_oracle_agrees_with_clarabel(name):
    rng = np.random.default_rng(7)
    for m, top_k in [(1, 1), (4, 2), (4, 4), (11, 3)]:
        check = partial(np.testing.assert_allclose, rtol=0, atol=1e-7)
        for _ in range(5):
            b, c = 2 * rng.normal(size=m), rng.uniform(0.1, 3)
            check(solve_to_floats(name, b, c, top_k), solve_with_clarabel(name, b, c, top_k))


def knapsack_threshold(b, bound, total):
    """The t of ``sum clip(b - t, 0, bound) = total``, by bisection."""
    low, high = b.min() - bound, b.max()
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if np.clip(b - t, 0, bound).sum() > total else (low, t)
    return (low + high) / 2


@pytest.mark.parametrize("seed", range(200))
def test_top_k_alpha_agrees_with_lemma_5_of_lapin(seed):
    """They tell whether the bound on the sum is tight by a multiplier, the code by a walk."""
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(3, 12)), int(rng.integers(1, 3))
    b, c = rng.normal(1.0, 2.0, m), float(rng.choice([0.1, 0.5, 1.0, 2.0, 5.0]))
    (p,) = get_loss("top_k_alpha", k).solve_restricted(b[None], np.array([c]))
    positive = p[p > 0]
    if positive.size == 0 or (positive.size == k and np.ptp(positive) < 1e-12):
        return  # zero or constant: told before
    u = c / k
    t = knapsack_threshold(b, u, c)
    full = b[b >= t + u - 1e-12]
    multiplier = t + (full.sum() - full.size * (t + u)) / k - c
    if multiplier >= 1e-9:
        np.testing.assert_allclose(p, np.clip(b - t, 0, u), atol=1e-9)
    elif multiplier <= -1e-9:
        assert p.sum() < c
