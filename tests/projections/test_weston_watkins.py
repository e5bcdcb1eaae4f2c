"""The subproblem of Weston and Watkins: all methods agree with exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from polymargin.projections import solve_weston_watkins
from tests.projections.inputs import (
    ACCURACY,
    DTYPES,
    SIZES,
    assert_close,
    examples,
    large_vectors,
    small_vectors,
)
from tests.reference.restricted import solve_to_floats

EXACT_METHODS = ("newton", "walrus")
METHODS = (*EXACT_METHODS, "greedy")

every_method = pytest.mark.parametrize("method", METHODS)
every_exact_method = pytest.mark.parametrize("method", EXACT_METHODS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def assert_exact(v, C, method, dtype=np.float64, factor=1.0):
    v, C = np.asarray(v, dtype=dtype), float(dtype(C))
    p = solve_weston_watkins(v, C, method=method)
    scale = factor * float(np.max(np.abs(v)))
    assert_close(p, solve_to_floats("weston_watkins", v, C), scale, dtype)
    assert np.all((p >= 0) & (p <= dtype(C)))


@every_method
@examples(200)
@example(v=[0.0], C=1.0)
@example(v=[-1.0, -2.0, -0.5], C=1.0)
@example(v=[0.5] * 7, C=0.3)
@example(v=[1.0, 1.0, 2.0, 2.0], C=1.0)  # breakpoints v and v - C coincide
@example(v=[3.0, 2.0, 1.0], C=1.0)
@example(v=[1e12, 1e12, 1e-12], C=1e-12)
@example(v=[1e12, 1e12, 1e-12], C=1e12)
@example(v=[2.225073858507e-312] * 5, C=1e-12)  # subnormal
@given(v=small_vectors(), C=SIZES)
def test_small_problems(method, v, C):
    # greedy: its tolerance of 1e-12 bounds the error by twice that
    assert_exact(v, C, method, factor=3.0 if method == "greedy" else 1.0)


@every_method
@examples(100)
@example(v=[1.7632415262334343e-40], C=1e-12)  # subnormal
@given(v=small_vectors(), C=SIZES)
def test_small_problems_in_single_precision(method, v, C):
    assert_exact(v, C, method, np.float32)


@every_exact_method
@examples(25)
@given(v=large_vectors(), C=SIZES, relative=st.booleans())
def test_up_to_2000_entries(method, v, C, relative):
    assert_exact(v, C * float(np.max(np.abs(v))) if relative else C, method)


@every_exact_method
@every_dtype
@pytest.mark.parametrize("C", [1e-4, 0.02, 10.0])
def test_100000_entries_satisfy_the_optimality_conditions(method, dtype, C):
    rng = np.random.default_rng(1)
    v = (100 + rng.normal(size=100_000) + 5 * rng.integers(0, 3, 100_000)).astype(dtype)
    p = solve_weston_watkins(v, C, method=method)
    C = float(dtype(C))
    exact = v.astype(np.float64)
    t = math.fsum(p.astype(np.float64))
    expected = np.clip(exact - t, 0, C)
    # in single precision the sum of p is off by the rounding of its terms
    close = ACCURACY[dtype] * 115 + (np.finfo(dtype).eps * t if dtype == np.float32 else 0)
    np.testing.assert_allclose(p, expected, rtol=0, atol=close)
    assert np.any(expected > 0)


@every_exact_method
def test_ties_of_entering_and_leaving_breakpoints(method):
    # integers and C = 1: every breakpoint is many times both
    rng = np.random.default_rng(2)
    for n in (2, 5, 30):
        for _ in range(30):
            assert_exact(rng.integers(-2, 6, size=n), 1.0, method)


@every_method
@every_dtype
def test_rows_are_solved_one_by_one(method, dtype):
    rng = np.random.default_rng(3)
    for n in (1, 3, 8, 17):
        V, C = rng.normal(size=(6, n)).astype(dtype), rng.uniform(0.1, 2, size=6)
        P = solve_weston_watkins(V, C, method=method)
        for v, bound, p in zip(V, C, P, strict=True):
            np.testing.assert_array_equal(solve_weston_watkins(v, bound, method=method), p)


@examples(100)
@given(v=small_vectors(), C=SIZES, tol=st.sampled_from([1e-2, 1e-5, 1e-8]))
def test_greedy_is_as_close_as_promised(v, C, tol):
    p = solve_weston_watkins(v, C, method="greedy", tol=tol)
    error = np.max(np.abs(p - solve_to_floats("weston_watkins", v, C)))
    assert error <= (2 * tol + 1e-12) * np.max(np.abs(v))
    assert np.all((p >= 0) & (p <= C))


def test_greedy_does_stop_early():
    v = np.random.default_rng(4).normal(size=40) + 1
    loose = solve_weston_watkins(v, 10.0, method="greedy", tol=1e-2)
    assert np.max(np.abs(loose - solve_weston_watkins(v, 10.0))) > 1e-5


def test_greedy_says_when_it_misses_its_tolerance():
    v = np.linspace(1.0, 1.001, 300)
    with pytest.warns(ConvergenceWarning, match="row 0"):
        solve_weston_watkins(v, 1.0, method="greedy", tol=0.0)
