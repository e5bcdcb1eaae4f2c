"""The capped simplex agrees with exact arithmetic and with a general QP solver."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polymargin.projections import project_capped_simplex, project_simplex
from tests.projections.inputs import (
    DTYPES,
    SIZES,
    SMALL_VECTORS,
    WELL_SCALED,
    assert_close,
    assert_sum,
    examples,
    large_vectors,
    powers_of_ten,
)
from tests.reference import projections as reference

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
both_ways = pytest.mark.parametrize("equality", [True, False])


def assert_exact(v, upper, z, equality, dtype=np.float64):
    v, upper = np.asarray(v, dtype=dtype), np.asarray(upper, dtype=dtype)
    p = project_capped_simplex(v, upper, z, equality)
    expected = reference.project_capped_simplex(v, upper, z, equality)
    slack = sum(expected) < z * (1 - 1e-3)
    assert_close(p, expected, max(np.max(np.abs(v)), z) if slack else z, dtype)
    assert np.all(p <= upper)
    assert_sum(p, z, dtype, at_most=not equality)


@st.composite
def capped_problems(draw, vectors=SMALL_VECTORS, dtype=np.float64):
    """Draw (v, upper, z) with z a fraction of the sum of the bounds."""
    v = np.asarray(draw(vectors))
    n = len(v)
    if draw(st.booleans()):
        upper = np.full(n, draw(SIZES))
    elif n <= 20:
        bounds = st.one_of(st.just(0.0), st.floats(0.01, 3), powers_of_ten(st.floats(1, 9)))
        upper = np.array(draw(st.lists(bounds, min_size=n, max_size=n)))
        upper[draw(st.integers(0, n - 1))] = draw(SIZES)
    else:
        upper = np.random.default_rng(n).exponential(size=n) * draw(SIZES)
    upper = upper.astype(dtype)
    share = draw(st.sampled_from([1e-9, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0]))
    return v.astype(dtype), upper, share * math.fsum(upper)


@both_ways
@examples(200)
@example(problem=(np.array([1e12, 1e12, -1.0]), np.array([1.0, 1.0, 1.0]), 1e-12))
@example(problem=(np.array([1e12, 3.0, 2.9]), np.array([1.0, 1.0, 1.0]), 2.5))
@example(problem=(np.array([1e12, 1e12 + 2.0**-13, 5.0]), np.array([1e-3, 1e-5, 1.0]), 1.001))
@example(problem=(np.array([-1.0, -2.0]), np.array([0.1, 0.1]), 0.2))
@given(problem=capped_problems())
def test_small_vectors(equality, problem):
    assert_exact(*problem, equality)


@both_ways
@examples(100)
@given(problem=capped_problems(dtype=np.float32))
def test_small_vectors_in_single_precision(equality, problem):
    assert_exact(*problem, equality, dtype=np.float32)


@both_ways
@examples(15)
@given(problem=capped_problems(vectors=large_vectors()))
def test_up_to_2000_entries(equality, problem):
    assert_exact(*problem, equality)


@every_dtype
def test_100000_entries_satisfy_the_optimality_conditions(dtype):
    rng = np.random.default_rng(0)
    v = rng.normal(size=100_000).astype(dtype)
    upper = rng.exponential(size=100_000).astype(dtype)
    p = project_capped_simplex(v, upper, 3e4).astype(np.float64)
    free = (p > 0) & (p < upper)
    assert math.fsum(p) == pytest.approx(3e4, rel=1e-6 if dtype == np.float32 else 1e-13)
    t = np.median((v - p)[free])  # the same for all that are free
    close = 1e-6 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(p, np.clip(v - t, 0, upper), rtol=0, atol=close)
    assert 1000 < free.sum() < 90_000


@both_ways
def test_clarabel_agrees(equality):
    rng = np.random.default_rng(1)
    kind = "capped" if equality else "capped at most"
    for n in (1, 2, 5, 9):
        for _ in range(6):
            v, upper = rng.normal(size=n), rng.uniform(0.05, 1, size=n)
            z = rng.uniform(0.05, 1) * upper.sum()
            theirs = reference.project_with_clarabel(kind, v, size=z, upper=upper)
            ours = project_capped_simplex(v, upper, z, equality)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)


@examples(100)
@given(v=st.lists(WELL_SCALED, min_size=1, max_size=9), z=SIZES)
def test_without_bounds_it_is_the_simplex(v, z):
    expected = project_simplex(v, z)
    for upper in (np.inf, z):
        p = project_capped_simplex(v, upper, z)
        np.testing.assert_allclose(p, expected, rtol=0, atol=1e-13 * max(z, 4.0))


@every_dtype
def test_bounds_of_every_shape_and_rows_one_by_one(dtype):
    rng = np.random.default_rng(2)
    V = rng.normal(size=(6, 11)).astype(dtype)
    z = rng.uniform(0.5, 2, size=6)
    for upper in (0.4, rng.uniform(0.3, 1, 11), rng.uniform(0.3, 1, (6, 11)), z[:, None] / 3):
        P = project_capped_simplex(V, upper, z)
        caps = np.broadcast_to(upper, V.shape)
        for v, cap, size, p in zip(V, caps, z, P, strict=True):
            np.testing.assert_array_equal(project_capped_simplex(v, cap, size), p)
        assert np.all(caps.astype(dtype) >= P)


def test_a_feasible_point_stays():
    rng = np.random.default_rng(3)
    p = project_capped_simplex(rng.normal(size=(20, 50)), 0.3, 4.0)
    np.testing.assert_allclose(project_capped_simplex(p, 0.3, 4.0), p, rtol=0, atol=1e-14)
    inside = rng.uniform(0, 0.01, size=(5, 50))
    np.testing.assert_array_equal(project_capped_simplex(inside, 0.3, 4.0, False), inside)


def test_bounds_that_just_suffice_are_the_answer():
    p = project_capped_simplex(np.arange(10.0), 0.1, 1.0)  # ten times 0.1 is 0.9999999999999999
    np.testing.assert_array_equal(p, 0.1)
