"""Costs between classes: whole problems against a QP solver, certificates from scratch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin import DualSolver, Problem, get_loss
from polymargin.kernel_functions import TrainingKernel
from polymargin.losses import Margins
from polymargin.problem import KernelProblem
from polymargin.solvers import Checkpoint, CheckpointError, KernelSolver
from tests.reference.objective import Spec, loss_values
from tests.reference.whole_problem import assert_optimal, optimum, random_spec

LOSSES = [
    ("crammer_singer", None, 4),
    ("weston_watkins", None, 4),
    ("top_k_alpha", 2, 5),
    ("top_k_beta", 2, 5),
    ("crammer_singer", None, 2),
]
every_loss = pytest.mark.parametrize(("loss", "top_k", "K"), LOSSES)


def random_costs(K: int, seed: int = 0) -> np.ndarray:
    costs = np.random.default_rng(seed).uniform(0.1, 3.0, (K, K))
    costs[0, 1] = 0.0  # a confusion that does not matter
    np.fill_diagonal(costs, 0.0)
    return costs


def spec_with_costs(loss, top_k, K, seed=0, **options) -> Spec:
    return replace(random_spec(loss, top_k, K, **options), margins=random_costs(K, seed))


def loss_of(spec: Spec):
    return get_loss(spec.loss, spec.top_k, spec.smoothing, Margins.of(spec.margins))


def as_problem(spec: Spec, layout: str = "dense", dtype=np.float64) -> Problem:
    X = np.ascontiguousarray(spec.X, dtype)
    X = sparse.csr_array(X) if layout == "csr" else X
    return Problem(X, spec.y, spec.c, loss_of(spec), spec.K, spec.intercept_scaling)


TIGHT = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}


@every_loss
@pytest.mark.parametrize("intercept", [False, True], ids=["linear", "intercept"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_solver_finds_the_optimum(loss, top_k, K, intercept, smoothing):
    options = {"weights": True, "zero_rows": True, "intercept": intercept, "smoothing": smoothing}
    spec = spec_with_costs(loss, top_k, K, **options)
    best = optimum(spec)
    for layout in ("dense", "csr"):
        for solver in (DualSolver(), DualSolver(acceleration=False, newton=False)):
            assert_optimal(spec, best, solver.solve(as_problem(spec, layout), **TIGHT))


@every_loss
def test_every_kind_of_sweep(loss, top_k, K):
    spec = spec_with_costs(loss, top_k, K, weights=True, zero_rows=True)
    best = optimum(spec)
    for blocked in (False, True):
        solver = DualSolver(blocked=blocked, newton=False)
        assert_optimal(spec, best, solver.solve(as_problem(spec), **TIGHT))


@every_loss
def test_newton_steps_know_the_margins(loss, top_k, K):
    spec = spec_with_costs(loss, top_k, K, intercept=True)
    spec = replace(spec, c=50 * spec.c)
    solution = DualSolver(newton=True).solve(as_problem(spec), **TIGHT)
    assert_optimal(spec, optimum(spec), solution)


@every_loss
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_kernel_machines(loss, top_k, K, smoothing):
    spec = spec_with_costs(loss, top_k, K, weights=True, smoothing=smoothing)
    kernel = TrainingKernel(spec.X @ spec.X.T, None)
    problem = KernelProblem(kernel, spec.y, spec.c, loss_of(spec), spec.K)
    found = KernelSolver().solve(
        problem, tol=1e-8, max_iter=10_000, cache_bytes=2**20, random_state=0
    )
    best = optimum(spec)
    assert found.dual == pytest.approx(best, rel=1e-6)
    assert found.primal == pytest.approx(best, rel=1e-6)


@every_loss
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_values(loss, top_k, K, smoothing):
    spec = spec_with_costs(loss, top_k, K, smoothing=smoothing)
    scores = np.random.default_rng(1).normal(size=(len(spec.y), K))
    expected = loss_values(scores, spec.y, loss, top_k, smoothing, spec.delta)
    np.testing.assert_allclose(loss_of(spec).value(scores, spec.y), expected, rtol=1e-9, atol=1e-12)


@every_loss
def test_float32_agrees(loss, top_k, K):
    spec = spec_with_costs(loss, top_k, K)
    double = DualSolver().solve(as_problem(spec), **(TIGHT | {"tol": 1e-5}))
    single = DualSolver().solve(as_problem(spec, dtype=np.float32), **(TIGHT | {"tol": 1e-5}))
    assert single.primal == pytest.approx(double.primal, rel=1e-4)


@every_loss
def test_scaled_costs_scale_the_solution(loss, top_k, K):
    spec = spec_with_costs(loss, top_k, K, weights=True)
    scaled = replace(spec, margins=3 * spec.margins, c=3 * spec.c)
    one = DualSolver().solve(as_problem(spec), **TIGHT)
    other = DualSolver().solve(as_problem(scaled), **TIGHT)
    assert other.primal == pytest.approx(9 * one.primal, rel=1e-8)
    np.testing.assert_allclose(other.coef, 3 * one.coef, atol=1e-4)


def test_a_path_is_certified_at_every_C():
    spec = spec_with_costs("crammer_singer", None, 4)
    Cs = [0.1, 1.0, 10.0]
    for C, found in zip(Cs, DualSolver().solve_path(as_problem(spec), Cs, tol=1e-9), strict=True):
        assert_optimal(replace(spec, c=C * spec.c), found.primal, found)


def test_a_checkpoint_with_other_costs_is_not_resumed(tmp_path):
    spec = spec_with_costs("weston_watkins", None, 4)
    save = {"checkpoint": Checkpoint(tmp_path / "run", passes=1), "random_state": 0}
    DualSolver().solve(as_problem(spec), tol=1e-12, max_iter=2, **save)
    other = replace(spec, margins=random_costs(4, seed=1))
    with pytest.raises(CheckpointError, match="cost_matrix"):
        DualSolver().solve(as_problem(other), tol=1e-12, max_iter=2, **save)


def test_margins_that_mean_nothing():
    with pytest.raises(ValueError, match="square"):
        Margins(np.ones((2, 3)))
    with pytest.raises(ValueError, match="diagonal"):
        Margins(np.ones((2, 2)))
    with pytest.raises(ValueError, match="3 classes"):
        get_loss("crammer_singer", margins=Margins(random_costs(3))).check_n_classes(4)
    for loss in ("one_vs_rest", "one_vs_rest_squared", "softmax"):
        with pytest.raises(ValueError, match="cannot take costs"):
            get_loss(loss, margins=Margins(random_costs(3)))
