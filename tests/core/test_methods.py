"""Every selectable method of the restricted problem, against exact arithmetic.

Exact methods must agree with the rational oracle, iterative ones to their tolerance; those that
solve for a subset of the variables are checked on that subset. None may leave the block set or make
the objective worse.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymargin import LOSSES, get_loss
from tests.core.strategies import examples, large_problems, restricted_problems
from tests.reference.restricted import infeasibility, solve_to_floats

EXACT = {
    "crammer_singer": ["newton", "sort", "pivot", "condat"],
    "weston_watkins": ["newton", "walrus"],
    "top_k_alpha": ["sort"],
    "top_k_beta": ["newton", "variable_fixing"],
    "one_vs_rest": ["clip"],
    "one_vs_rest_squared": ["scale"],
    "softmax": ["newton"],
    "top_k_entropy": ["newton"],
}
TO_A_TOLERANCE = {
    "crammer_singer": ["bisection", "fixed_point", "smo", "frank_wolfe"],
    "weston_watkins": ["greedy"],
}
ON_A_SUBSET = {
    "crammer_singer": ["active_set", "two_variables"],
    "weston_watkins": ["active_set"],
}


def pairs(table):
    """Parametrise over the (loss, method) pairs of a table."""
    every = [(name, method) for name, methods in table.items() for method in methods]
    return pytest.mark.parametrize(("name", "method"), every, ids=lambda value: value)


every_exact = pairs(EXACT)
every_iterative = pairs(TO_A_TOLERANCE)
every_subset = pairs(ON_A_SUBSET)
every_approximate = pairs({n: TO_A_TOLERANCE[n] + ON_A_SUBSET[n] for n in ON_A_SUBSET})


def solve(name, b, c, top_k, method, dtype=np.float64, **settings):
    loss = get_loss(name, top_k)
    return loss.solve_restricted(np.asarray(b, dtype), c, method=method, **settings)


def objective(p, b):
    return 0.5 * (p @ p + p.sum() ** 2) - b @ p


def feasible_start(name, m, c, seed):
    """A random block of the set, with zeros, interior entries and entries at the bound."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.0, 0.0, 1.0, rng.random()], size=m) * rng.random(m)
    if name == "crammer_singer":
        p *= c * rng.choice([0.0, 0.5, 1.0]) / (p.sum() or 1.0)
        while p.sum() > c:
            p *= 1 - 1e-15
        return p
    return np.where(rng.random(m) < 0.3, c, np.minimum(p * c, c))


def test_these_are_all_the_methods():
    for name in LOSSES:
        listed = {m for t in (EXACT, TO_A_TOLERANCE, ON_A_SUBSET) for m in t.get(name, [])}
        assert set(get_loss(name, 2).restricted_methods) == listed


@every_exact
@examples(120)
@given(problem=restricted_problems(), seed=st.integers(0, 99))
def test_exact_methods_are_exact_from_any_start(name, method, problem, seed):
    b, c, top_k = problem
    start = feasible_start(name, len(b), c, seed)
    expected = solve_to_floats(name, b, c, top_k)
    p = solve(name, b, c, top_k, method, start=start)
    assert np.abs(p - expected).max() <= 1e-9 * max(1.0, np.abs(b).max(), c)
    assert np.abs(p - expected).max() <= 1e-11 * max(np.abs(b).max(), c)
    assert infeasibility(name, p, c, top_k) <= 1e-12


@every_exact
@examples(12)
@given(problem=large_problems())
def test_exact_methods_are_exact_for_up_to_2000_classes(name, method, problem):
    b, c, top_k = problem
    p = solve(name, b, c, top_k, method)
    assert np.abs(p - solve_to_floats(name, b, c, top_k)).max() <= 1e-11 * max(np.abs(b).max(), c)


@every_exact
@examples(80)
@given(problem=restricted_problems())
def test_exact_methods_in_single_precision(name, method, problem):
    b, c, top_k = problem
    b, c = np.asarray(b, np.float32), float(np.float32(c))
    p = solve(name, b, c, top_k, method, np.float32)
    scale = max(float(np.abs(b).max()), c)
    assert np.abs(p - solve_to_floats(name, b, c, top_k)).max() <= 5e-6 * scale
    assert infeasibility(name, p, c, top_k) <= 1e-6


@every_iterative
@examples(150)
@given(
    problem=restricted_problems(kinds=("random", "tied"), max_size=8),
    tol=st.sampled_from([1e-2, 1e-4, 1e-7]),
    seed=st.integers(0, 99),
)
def test_iterative_methods_reach_their_tolerance(name, method, problem, tol, seed):
    b, _, _ = problem
    c = 0.01 + (seed % 7)
    b = np.asarray(b)
    tol = max(tol, 1e-3) if method == "frank_wolfe" else tol  # it converges sublinearly
    p = solve(name, b, c, None, method, tol=tol, start=feasible_start(name, len(b), c, seed))
    expected = solve_to_floats(name, b, c, None)
    # a gap of tol c^2 means a distance of sqrt(2 tol) c; the others stop by violation
    allowed = np.sqrt(2 * tol) * c if method == "frank_wolfe" else 3 * len(b) * tol * c
    assert np.abs(p - expected).max() <= allowed + 1e-12
    assert infeasibility(name, p, c, None) <= 1e-12


@every_approximate
@examples(150)
@given(problem=restricted_problems(), seed=st.integers(0, 99))
def test_approximate_methods_stay_feasible_and_never_do_harm(name, method, problem, seed):
    b, c, _ = problem
    b = np.asarray(b)
    start = feasible_start(name, len(b), c, seed)
    p = solve(name, b, c, None, method, start=start)
    assert infeasibility(name, p, c, None) <= 1e-12
    if method in ("bisection", "fixed_point"):  # these do not look at the start
        return
    size = max(np.abs(b).max(), c * len(b)) * c * len(b)
    assert objective(p, b) <= objective(start, b) + 1e-12 * size


def chosen_variables(name, method, b, c, start):
    """The subset the paper names, with the slack of the true class as the last variable."""
    if name == "weston_watkins":
        d = b - start - start.sum()
        return np.flatnonzero(((d > 0) & (start < c)) | ((d < 0) & (start > 0)))
    q, v = np.append(start, max(0.0, c - start.sum())), np.append(b, c)
    d = v - q
    most, inactive = int(np.argmax(d)), np.flatnonzero(q > 0)
    if method == "two_variables":
        return np.unique([most, inactive[np.argmin(d[inactive])]])
    return np.union1d(inactive, most)


@every_subset
@examples(200)
@given(problem=restricted_problems(kinds=("random", "tied"), max_size=9), seed=st.integers(0, 999))
def test_subset_methods_are_exact_on_their_subset(name, method, problem, seed):
    b, _, _ = problem
    b, m = np.asarray(b), len(problem[0])
    c = 0.125 * (1 + seed % 11)
    start = feasible_start(name, m, c, seed)
    start = np.floor(start / c * 64) / 64 * c  # sums without rounding: the slack is zero or not
    if name == "crammer_singer" and seed % 2 and start.any():
        start[np.argmax(start)] += c - start.sum()
    chosen = chosen_variables(name, method, b, c, start)
    p = solve(name, b, c, None, method, start=start)
    rest = np.setdiff1d(np.arange(m), chosen)
    np.testing.assert_allclose(p[rest], start[rest], rtol=1e-14, atol=0)
    inside = chosen[chosen < m]
    if len(inside) == 0:
        return
    if name == "weston_watkins":
        expected = solve_to_floats(name, b[inside] - start[rest].sum(), c, None)
    else:
        q = np.append(start, c - start.sum())
        expected = project(np.append(b, c)[chosen], q[chosen].sum())
    np.testing.assert_allclose(p[inside], expected[: len(inside)], rtol=0, atol=1e-11)


def project(v, z):
    """Projection of v onto the simplex of size z, slowly: every support is tried."""
    order = np.argsort(-v, kind="stable")
    for size in range(len(v), 0, -1):
        top = order[:size]
        tau = (v[top].sum() - z) / size
        if (v[top] >= tau).all() and (np.delete(v, top) <= tau + 1e-12).all():
            return np.maximum(v - tau, 0)
    raise AssertionError("no support fits")


@pairs(
    {name: EXACT[name] + TO_A_TOLERANCE.get(name, []) + ON_A_SUBSET.get(name, []) for name in EXACT}
)
def test_the_optimum_is_left_alone(name, method):
    rng = np.random.default_rng(0)
    for m in (1, 2, 6, 40):
        b = rng.normal(size=(20, m)) * 2
        best = solve(name, b, 0.8, min(m, 3), get_loss(name, 3).restricted_methods[0])
        p = solve(name, b, 0.8, min(m, 3), method, start=best, tol=1e-12)
        np.testing.assert_allclose(p, best, rtol=0, atol=1e-7 if method == "frank_wolfe" else 1e-10)


def test_without_a_tolerance_the_papers_steps_are_taken():
    b, c = np.array([0.9, 0.8, 0.2]), 1.0
    one_step = solve("crammer_singer", b, c, None, "frank_wolfe")
    assert np.count_nonzero(one_step) <= 1  # towards one vertex
    pair = solve("crammer_singer", np.array([2.0, 1.9]), c, None, "two_variables")
    assert np.count_nonzero(pair) == 1
    loose = solve("crammer_singer", b, c, None, "bisection")
    tight = solve("crammer_singer", b, c, None, "bisection", tol=0.0)
    exact = solve("crammer_singer", b, c, None, "sort")
    assert 1e-12 < np.abs(loose - exact).max() < 2e-3
    np.testing.assert_allclose(tight, exact, rtol=0, atol=1e-14)


def test_a_pair_that_makes_no_sense_is_refused_with_those_that_do():
    with pytest.raises(
        ValueError, match=r"walrus.*does not solve.*crammer_singer.*'newton', 'sort'"
    ):
        solve("crammer_singer", [1.0], 1.0, None, "walrus")
    with pytest.raises(ValueError, match="restricted_tol must be a non-negative number"):
        solve("crammer_singer", [1.0], 1.0, None, "bisection", tol=-1)
