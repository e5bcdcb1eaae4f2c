"""Small whole problems: the solver's objective is the optimum a general QP solver finds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from polymargin import DualSolver, Problem, get_loss
from tests.reference.objective import Spec, primal
from tests.reference.whole_problem import assert_optimal, optimum, random_spec

LOSSES = [
    ("crammer_singer", None, 4),
    ("weston_watkins", None, 4),
    ("top_k_alpha", 2, 5),
    ("top_k_beta", 2, 5),
    ("one_vs_rest", None, 3),
    ("one_vs_rest_squared", None, 3),
    ("softmax", None, 4),
    ("top_k_entropy", 2, 5),
]
SHAPES = [
    ("crammer_singer", None, 2),
    ("crammer_singer", None, 5),
    ("weston_watkins", None, 2),
    ("weston_watkins", None, 3),
    ("top_k_alpha", 1, 2),
    ("top_k_alpha", 1, 4),
    ("top_k_alpha", 3, 4),
    ("top_k_alpha", 4, 5),
    ("top_k_beta", 1, 2),
    ("top_k_beta", 1, 4),
    ("top_k_beta", 3, 4),
    ("top_k_beta", 4, 5),
    ("one_vs_rest", None, 2),
    ("one_vs_rest", None, 5),
    ("one_vs_rest_squared", None, 2),
    ("one_vs_rest_squared", None, 5),
    ("softmax", None, 2),
    ("softmax", None, 5),
    ("top_k_entropy", 1, 2),
    ("top_k_entropy", 2, 4),
    ("top_k_entropy", 4, 5),
]
every_loss = pytest.mark.parametrize(("loss", "top_k", "K"), LOSSES)


@cache
def spec_and_optimum(loss, top_k, K, weights, zero_rows, intercept):
    spec = random_spec(loss, top_k, K, weights=weights, zero_rows=zero_rows, intercept=intercept)
    return spec, optimum(spec)


def as_problem(spec: Spec, layout: str) -> Problem:
    X = sparse.csr_array(spec.X) if layout == "csr" else np.ascontiguousarray(spec.X)
    return Problem(
        X=X,
        y=spec.y,
        c=spec.c,
        loss=get_loss(spec.loss, spec.top_k, spec.smoothing),
        n_classes=spec.K,
        intercept_scaling=spec.intercept_scaling,
    )


def solve(spec, layout="dense", acceleration="auto", **options):
    options = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0} | options
    return DualSolver(acceleration=acceleration).solve(as_problem(spec, layout), **options)


@every_loss
@pytest.mark.parametrize("weights", [False, True], ids=["equal", "weights"])
@pytest.mark.parametrize("zero_rows", [False, True], ids=["full", "zero rows"])
@pytest.mark.parametrize("intercept", [False, True], ids=["linear", "intercept"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("acceleration", [False, "auto", 5.0])
def test_the_solver_finds_the_optimum(
    loss, top_k, K, weights, zero_rows, intercept, layout, acceleration
):
    spec, best = spec_and_optimum(loss, top_k, K, weights, zero_rows, intercept)
    assert_optimal(spec, best, solve(spec, layout, acceleration))


@pytest.mark.parametrize(("loss", "top_k", "K"), LOSSES[:5])
@pytest.mark.parametrize("smoothing", [0.05, 1.0])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_smoothed_losses(loss, top_k, K, smoothing, layout):
    options = {"weights": True, "zero_rows": True, "intercept": True, "smoothing": smoothing}
    spec = random_spec(loss, top_k, K, **options)
    assert_optimal(spec, optimum(spec), solve(spec, layout))


@pytest.mark.parametrize(("loss", "top_k", "K"), SHAPES)
def test_every_number_of_classes_and_k(loss, top_k, K):
    spec, best = spec_and_optimum(loss, top_k, K, True, True, True)
    assert_optimal(spec, best, solve(spec))


@every_loss
@pytest.mark.parametrize("shrinking", [False, True])
def test_shrinking_changes_the_way_and_not_the_end(loss, top_k, K, shrinking):
    spec, best = spec_and_optimum(loss, top_k, K, True, True, False)
    solver = DualSolver(shrinking=shrinking)
    problem = as_problem(spec, "csr")
    assert_optimal(spec, best, solver.solve(problem, tol=1e-9, max_iter=100_000, random_state=1))


@every_loss
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_start_from_another_c_reaches_the_same_optimum(loss, top_k, K, factor):
    spec, best = spec_and_optimum(loss, top_k, K, True, True, True)
    other = Spec(spec.X, spec.y, spec.c * factor, loss, top_k, spec.intercept_scaling, K)
    assert_optimal(spec, best, solve(spec, start=solve(other, tol=1e-6)))


@pytest.mark.parametrize("loss", ["top_k_alpha", "top_k_beta"])
def test_a_start_from_another_k_is_refused(loss):
    """Its blocks lie outside the new block sets: used as they are, D would exceed the optimum."""
    start = solve(random_spec(loss, 1, 5), tol=1e-6)
    with pytest.raises(ValueError, match="top_k"):
        solve(random_spec(loss, 3, 5), start=start)


@pytest.mark.parametrize(("loss", "top_k", "K"), LOSSES[:4])
def test_a_start_from_other_labels_is_refused(loss, top_k, K):
    spec = random_spec(loss, top_k, K)
    other = Spec(spec.X, spec.y[::-1].copy(), spec.c, loss, top_k, 0.0, K)
    with pytest.raises(ValueError, match="label"):
        solve(spec, start=solve(other, tol=1e-6))


@every_loss
def test_only_zero_rows_close_the_gap_at_once(loss, top_k, K):
    spec = random_spec(loss, top_k, K)
    spec = Spec(np.zeros_like(spec.X), spec.y, spec.c, loss, top_k, 0.0, K)
    solution = solve(spec)
    assert solution.gap == pytest.approx(0, abs=1e-12)
    assert not solution.coef.any()
    assert solution.primal == pytest.approx(primal(spec, solution.coef, solution.intercept))


@every_loss
def test_single_precision_reaches_the_optimum_to_single_precision(loss, top_k, K):
    spec, best = spec_and_optimum(loss, top_k, K, True, True, True)
    single = Spec(spec.X.astype(np.float32), spec.y, spec.c, loss, top_k, 1.5, K)
    solution = solve(single, tol=1e-5)
    assert solution.coef.dtype == np.float32
    assert primal(single, solution.coef, solution.intercept) == pytest.approx(best, rel=2e-5)
