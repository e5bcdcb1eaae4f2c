"""Simplex and ball of the 1-norm: every method agrees with exact arithmetic and with the others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polymargin.core import core
from polymargin.projections import project_l1_ball, project_simplex
from tests.projections.inputs import (
    DTYPES,
    SIZES,
    assert_close,
    assert_sum,
    examples,
    large_vectors,
    small_vectors,
)
from tests.reference import projections as reference

METHODS = ("newton", "condat", "sort", "pivot", "bisection")

every_method = pytest.mark.parametrize("method", METHODS)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def assert_exact(v, z, method, dtype=np.float64):
    v = np.asarray(v, dtype=dtype)
    p = project_simplex(v, z, method=method, random_state=0)
    # only entries within z of the largest are positive: the error is one of z, not of v
    assert_close(p, reference.project_simplex(v, z), z, dtype)
    assert_sum(p, z, dtype)


@every_method
@examples(150)
@example(v=[0.0], z=1.0)
@example(v=[-3.0], z=1e-12)
@example(v=[0.5] * 7, z=0.3)
@example(v=[1e12, 1e12, -1e-12], z=1e-12)
@example(v=[1e12, 1e12 + 2.0**-13, 1e12 - 1], z=1e-3)
@example(v=[-1e12, -1e12], z=1.0)
@given(v=small_vectors(), z=SIZES)
def test_small_vectors(method, v, z):
    assert_exact(v, z, method)


@every_method
@examples(60)
@given(v=small_vectors(), z=SIZES)
def test_small_vectors_in_single_precision(method, v, z):
    assert_exact(v, float(np.float32(z)), method, np.float32)


@examples(30)
@given(v=large_vectors(), z=SIZES, relative=st.booleans())
def test_up_to_2000_entries(v, z, relative):
    z = z * float(np.max(np.abs(v))) if relative else z
    for dtype in DTYPES:
        v = v.astype(dtype)
        expected = reference.project_simplex(v, z)
        for method in METHODS:
            p = project_simplex(v, z, method=method, random_state=1)
            assert_close(p, expected, z, dtype)
            assert_sum(p, z, dtype)


@every_method
@every_dtype
@pytest.mark.parametrize("z", [0.5, 3e4])
def test_100000_entries_against_a_sort_in_extended_precision(method, dtype, z):
    rng = np.random.default_rng(5)
    v = (rng.normal(size=100_000) * 10.0 ** rng.integers(-3, 2, size=100_000)).astype(dtype)
    descending = np.sort(v)[::-1].astype(np.longdouble)
    candidates = (np.cumsum(descending) - z) / np.arange(1, len(v) + 1)
    expected = np.maximum(v - candidates[np.argmax(candidates)], 0).astype(np.float64)
    p = project_simplex(v, z, method=method, random_state=0)
    assert_close(p, expected, z, dtype)
    assert_sum(p, z, dtype)


@every_method
@every_dtype
@pytest.mark.parametrize("n", [1, 2, 3, 8, 17])
def test_equal_entries_share_the_sum(method, dtype, n):
    for value in (-1.0, -1e-30, 0.0, 1e-12, 0.25, 1e12):
        for z in (1e-12, 0.7, 1e12):
            p = project_simplex(np.full(n, value, dtype=dtype), z, method=method)
            np.testing.assert_allclose(p, z / n, rtol=8 * np.finfo(dtype).eps)


@every_method
@every_dtype
def test_rows_are_projected_one_by_one(method, dtype):
    rng = np.random.default_rng(1)
    for n in (1, 3, 8, 33, 100):
        V, z = rng.normal(size=(7, n)).astype(dtype), rng.uniform(0.1, 5, size=7)
        P = project_simplex(V, z, method=method, random_state=0)
        for v, size, p in zip(V, z, P, strict=True):
            alone = project_simplex(v, size, method=method, random_state=3)
            np.testing.assert_allclose(p, alone, rtol=0, atol=4 * np.finfo(dtype).eps * size)


@every_method
def test_a_point_of_the_simplex_stays(method):
    rng = np.random.default_rng(2)
    for n in (1, 2, 10, 500):
        p = project_simplex(rng.normal(size=n), 2.0, method=method, random_state=0)
        again = project_simplex(p, 2.0, method=method, random_state=0)
        np.testing.assert_allclose(again, p, rtol=0, atol=1e-14)


@examples(150)
@given(v=small_vectors(), z=SIZES, tol=st.sampled_from([0.3, 1e-2, 1e-6]))
def test_bisection_with_a_loose_tolerance_is_feasible_and_as_close_as_promised(v, z, tol):
    loose = project_simplex(v, z, method="bisection", tol=tol)
    assert_sum(loose, z)
    # the threshold is off by tol * z at most, and the scaling by as much again
    assert np.max(np.abs(loose - reference.project_simplex(v, z))) <= 4 * tol * z


def test_bisection_does_stop_early():
    v = np.random.default_rng(3).normal(size=50)
    loose = project_simplex(v, 20.0, method="bisection", tol=0.3)
    assert np.max(np.abs(loose - project_simplex(v, 20.0))) > 1e-6


def warm_start(v, z, guess):
    V, P = np.atleast_2d(v), np.empty((1, len(v)))
    tau = np.array([guess])
    assert core.project_simplex("newton", V, np.array([z]), 0.0, 1, tau, P) == -1
    return P[0], tau[0]


@examples(150)
@given(v=small_vectors(), z=SIZES, offset=st.floats(-2, 2))
def test_newton_does_not_depend_on_its_guess(v, z, offset):
    cold, tau = warm_start(np.asarray(v), z, np.nan)
    for guess in (tau, tau + offset * z, tau * (1 + offset), np.inf, -np.inf):
        warm, found = warm_start(np.asarray(v), z, guess)
        np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-13 * z)
        assert found == pytest.approx(tau, abs=1e-12 * max(z, np.max(np.abs(v))))


@pytest.mark.parametrize("n", [40, 1000])
def test_newton_starts_from_guesses_on_either_side(n):
    # from above the root the first step goes down, to more entries than exceed the guess
    v = np.random.default_rng(9).normal(size=n)
    for z in (0.5, n / 10, 3.0 * n):
        cold, tau = warm_start(v, z, np.nan)
        for guess in np.linspace(max(tau - z, v.min()), v.max(), 25):
            np.testing.assert_allclose(warm_start(v, z, guess)[0], cold, rtol=0, atol=1e-14 * z)


@every_method
@examples(50)
@given(v=small_vectors(), z=SIZES)
def test_thresholds_are_exact(method, v, z):
    V, P, tau = np.array([v]), np.empty((1, len(v))), np.array([np.nan])
    core.project_simplex(method, V, np.array([z]), 0.0, 1, tau, P)
    expected = float(reference.simplex_threshold(reference.exact(v), Fraction(z)))
    assert tau[0] == pytest.approx(expected, rel=0, abs=1e-12 * max(z, np.max(np.abs(v))))


# --- the ball of the 1-norm ----------------------------------------------------------------------


@every_dtype
@examples(150)
@example(v=[0.25, -0.5], z=1.0)
@example(v=[-1e12, 1e12, 0.0], z=1e-12)
@example(v=[0.0, 0.0], z=1.0)
@given(v=small_vectors(), z=SIZES)
def test_l1_ball(dtype, v, z):
    v, z = np.asarray(v, dtype=dtype), float(np.float32(z))
    p = project_l1_ball(v, z)
    assert_close(p, reference.project_l1_ball(v, z), z, dtype)
    assert_sum(np.abs(p), z, dtype, at_most=True)
    assert np.all(p * v >= 0)


def test_l1_ball_leaves_what_is_inside_alone():
    V = np.random.default_rng(6).normal(size=(20, 9))
    z = np.abs(V).sum(axis=1) * np.linspace(0.5, 1.5, 20)
    P = project_l1_ball(V, z)
    inside = np.abs(V).sum(axis=1) <= z
    assert 5 < inside.sum() < 15
    np.testing.assert_array_equal(P[inside], V[inside])
    np.testing.assert_allclose(np.abs(P[~inside]).sum(axis=1), z[~inside], rtol=1e-14)
    np.testing.assert_allclose(project_l1_ball(P, z), P, rtol=0, atol=1e-14)
