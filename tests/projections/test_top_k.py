"""Top-k cone and simplex, plain and biased, against exact arithmetic and a general QP solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polymargin import get_loss
from polymargin.projections import project_simplex, project_top_k_cone, project_top_k_simplex
from tests.projections.inputs import (
    ACCURACY,
    DTYPES,
    SIZES,
    SMALL_VECTORS,
    assert_close,
    examples,
    large_vectors,
    small_vectors,
)
from tests.reference import projections as reference

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
BIASES = st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.5, 1e3])


def project(v, k, r, bias):
    """Project onto the simplex, or onto the cone where r is infinite."""
    if np.isinf(r):
        return project_top_k_cone(v, k, bias)
    return project_top_k_simplex(v, k, r, bias)


def assert_exact(v, k, r, bias, dtype=np.float64):
    v = np.asarray(v, dtype=dtype)
    p = project(v, k, r, bias)
    assert_close(p, reference.project_top_k(v, k, r, bias), float(np.max(np.abs(v))), dtype)
    total = float(np.sum(p, dtype=np.longdouble))
    assert np.all(p >= 0)
    assert total <= r * (1 + ACCURACY[dtype])
    assert np.max(p) <= total / k * (1 + ACCURACY[dtype])


@st.composite
def top_k_problems(draw, vectors=SMALL_VECTORS):
    """Draw (v, k, r, bias); r is infinite for the cone."""
    v = draw(vectors)
    n = len(v)
    k = draw(st.one_of(st.sampled_from([1, max(1, n // 2), n]), st.integers(1, n)))
    r = draw(st.one_of(st.just(np.inf), SIZES))
    if np.isfinite(r) and draw(st.booleans()):
        r *= max(float(np.max(np.abs(v))), 1e-12)
    return v, k, r, draw(BIASES)


@examples(350)
@example(problem=([0.0], 1, np.inf, 0.0))
@example(problem=([-1.0, -2.0, -0.5], 2, 1.0, 0.0))
@example(problem=([3.0, 1.0, 0.0], 2, np.inf, 0.0))
@example(problem=([0.5] * 7, 3, 0.3, 0.0))
@example(problem=([1.0, -5.0, -5.0], 2, 10.0, 0.0))
@example(problem=([1e12, 1e12, -1e-12], 2, 1e-12, 0.0))
@example(problem=([2.0, 1.0], 2, np.inf, 0.0))
@given(problem=top_k_problems())
def test_small_vectors(problem):
    assert_exact(*problem)


@examples(120)
@given(problem=top_k_problems())
def test_small_vectors_in_single_precision(problem):
    v, k, r, bias = problem
    assert_exact(v, k, float(np.float32(r)), bias, dtype=np.float32)


@examples(40)
@given(problem=top_k_problems(vectors=large_vectors()))
def test_up_to_2000_entries(problem):
    assert_exact(*problem)


@pytest.mark.parametrize("k", [1, 30, 2000])
def test_large_vectors_with_few_and_with_many_positive_entries(k):
    # the kernel sorts only as many entries as it needs: both ends, and growing on the way
    v = np.random.default_rng(0).normal(size=2000)
    for shift in (-2.0, 5.0):
        for r in (1.0, 1e3, np.inf):
            assert_exact(v + shift, k, r, 0.0)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_huge_entries_that_cancel_leave_a_feasible_point(bias):
    # the largest three add up to a few units: u and t lose the digits that the cap needs
    rng = np.random.default_rng(8)
    for _ in range(200):
        big = 10.0 ** rng.integers(6, 13)
        v = big * np.array([2.0, -1, -1, -1, -1]) + rng.normal(size=5) + 1
        assert_exact(v, 3, np.inf, bias)


@pytest.mark.parametrize("bias", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("kind", ["top-k cone", "top-k simplex"])
def test_clarabel_agrees(kind, bias):
    rng = np.random.default_rng(3)
    for n, k in [(1, 1), (4, 2), (4, 4), (7, 1), (9, 3)]:
        for _ in range(4):
            v, r = 2 * rng.normal(size=n) + 0.5, rng.uniform(0.2, 4)
            theirs = reference.project_with_clarabel(kind, v, k, bias, size=r)
            ours = project(v, k, np.inf if kind == "top-k cone" else r, bias)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-7)


@examples(150)
@given(v=small_vectors(), r=SIZES, k=st.integers(1, 12))
def test_bias_one_is_the_restricted_problem_of_the_top_k_loss(v, r, k):
    v, k = np.asarray(v), min(k, len(v))
    expected = get_loss("top_k_alpha", top_k=k).solve_restricted(v, r)
    p = project_top_k_simplex(v, k, r, bias=1.0)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12 * np.max(np.abs(v)))


def test_k_of_one_and_of_all_entries():
    rng = np.random.default_rng(4)
    for n in (1, 2, 7, 40):
        v = rng.normal(size=n) + 0.2
        np.testing.assert_allclose(project_top_k_cone(v, 1), np.maximum(v, 0), atol=1e-14)
        mean = max(v.mean(), 0.0)
        np.testing.assert_allclose(project_top_k_cone(v, n), mean, atol=1e-14)
        np.testing.assert_allclose(project_top_k_simplex(v, n, 0.1), min(mean, 0.1 / n), atol=1e-15)
        if np.maximum(v, 0).sum() > 0.5:
            expected = project_simplex(v, 0.5)
            np.testing.assert_allclose(project_top_k_simplex(v, 1, 0.5), expected, atol=1e-14)


@every_dtype
def test_rows_are_projected_one_by_one(dtype):
    rng = np.random.default_rng(5)
    V, r = rng.normal(size=(9, 200)).astype(dtype), rng.uniform(0.1, 20, size=9)
    simplex, cone = project_top_k_simplex(V, 3, r, 0.5), project_top_k_cone(V, 3)
    for i, v in enumerate(V):
        np.testing.assert_array_equal(project_top_k_simplex(v, 3, r[i], 0.5), simplex[i])
        np.testing.assert_array_equal(project_top_k_cone(v, 3), cone[i])


def test_a_point_of_the_set_stays():
    V = np.random.default_rng(6).normal(size=(30, 25))
    for k in (1, 4, 25):
        cone, simplex = project_top_k_cone(V, k), project_top_k_simplex(V, k, 0.7)
        np.testing.assert_allclose(project_top_k_cone(cone, k), cone, atol=1e-13)
        np.testing.assert_allclose(project_top_k_simplex(simplex, k, 0.7), simplex, atol=1e-13)
