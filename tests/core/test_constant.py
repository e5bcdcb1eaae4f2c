"""Sweeps that hold the constant feature back: rho of its square in curvature and updates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from polymargin import LOSSES, DualSolver, Problem
from polymargin.solvers import state as states
from polymargin.solvers.state import State
from tests.core.test_sweeps import make_problem, tolerance

every_loss = pytest.mark.parametrize("name", LOSSES)
LAYOUTS = {
    "dense": [["rows", "listed", "rows"], ["blocked", "listed"], ["by_class", "listed"]],
    np.int32: [["rows", "listed", "rows"]],
}


def held_back(problem, rho, kappa):
    """A state in the midst of the outer loop, whose sweeps see `rho` of the constant's square."""
    state = State(problem)
    state._rho, state.kappa, state.Y = rho, kappa, state.new_weights()
    centre = np.random.default_rng(3).standard_normal((len(state.W), problem.n_classes))
    state.Y[:, : problem.n_classes] = 0.1 * centre
    state.set_from_dual(state.new_weights())
    return state


@every_loss
@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_a_smaller_constant(name, layout, dtype):
    """Sweeps see a constant of sqrt(rho) times the value, with weights 1 / sqrt(rho) as large."""
    rho, kappa, bias, k = 0.2, 1.5, 2.0, 26
    problem = make_problem(name, dtype, layout=layout, n_classes=k, bias=bias, n=200, d=40)
    small = Problem(problem.X, problem.y, problem.c, problem.loss, k, bias * math.sqrt(rho))
    for modes in LAYOUTS[layout]:
        state, other = held_back(problem, rho, kappa), held_back(small, 1.0, kappa)
        other.W[:] = state.W
        other.W[-1] /= math.sqrt(rho)
        rng = np.random.default_rng(1)
        for mode in modes:
            order = rng.permutation(problem.visited)
            state.sweep(order, mode)
            other.sweep(order, mode)
        other.W[-1] *= math.sqrt(rho)
        near = 100 * tolerance(dtype) * np.abs(state.W).max()
        np.testing.assert_allclose(state.W, other.W, rtol=0, atol=near)


@every_loss
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_the_weights_follow_from_the_dual(name, layout):
    """``W = (kappa Y + V) / (1 + kappa)``, with ``kappa_0`` for the constant."""
    problem = make_problem(name, layout=layout, n_classes=26, bias=2.0, n=300)
    state = held_back(problem, 0.1, 1.5)
    kappa_0 = 2.5 / 0.1 - 1.0
    for mode in ("rows", "listed", "rows"):
        state.sweep(problem.visited, mode, n_jobs=2)
        V = state.rebuild()
        expected = (1.5 * state.Y + V) / 2.5
        expected[-1] = (kappa_0 * state.Y[-1] + V[-1]) / (1.0 + kappa_0)
        near = {"rtol": 0, "atol": 1e-11 * np.abs(V).max()}
        np.testing.assert_allclose(state.W, expected, **near)
        np.testing.assert_allclose(state.dual_weights(), V, rtol=0, atol=30 * near["atol"])
    W = state.W.copy()
    state.set_from_dual(V)
    np.testing.assert_allclose(state.W, W, **near)


@every_loss
def test_no_sweep_lowers_the_dual_of_the_proximal_problem(name):
    problem = make_problem(name, n_classes=7, bias=2.0)
    state = held_back(problem, 0.1, 1.5)
    rng = np.random.default_rng(2)
    last = -np.inf  # of its value, up to a constant
    for mode in ["rows", "listed", "blocked", "by_class"] * 4:
        state.sweep(rng.permutation(problem.visited), mode)
        norm = sum((1 + kappa) * (state.W[rows] ** 2).sum() for rows, kappa in state.strengths)
        value = state.dual_sum() - 0.5 * float(norm)
        assert value >= last - 1e-9
        last = value


def test_how_much_is_held_back():
    """A part of the rows' mean square, whatever the constant's value; nothing where it is less."""
    for bias in (1.0, 10.0, 1e3):
        problem = make_problem("crammer_singer", bias=bias)
        mean = float(np.mean((problem.X[problem.visited] ** 2).sum(axis=1)))
        share = states.constant_share(problem)
        assert share * bias**2 == pytest.approx(states.CONSTANT_SHARE * mean, rel=1e-6)
    assert states.constant_share(make_problem("crammer_singer", bias=1e-3)) == 1.0
    assert states.constant_share(make_problem("crammer_singer", bias=1e9)) == 1.0
    assert states.constant_share(make_problem("crammer_singer")) == 1.0  # no constant
    assert states.constant_share(make_problem("softmax", bias=10.0)) == 1.0
    plain = State(make_problem("crammer_singer", bias=10.0))
    assert plain.rho == 1.0  # without the outer loop there is nothing to make up for it
    plain.kappa = 1.5  # as partitions set it, whose weights somebody else extrapolates
    assert plain.rho == 1.0
    plain.Y = plain.new_weights()
    assert plain.rho < 1.0


@pytest.mark.parametrize("name", ["crammer_singer", "weston_watkins", "one_vs_rest", "top_k_beta"])
@pytest.mark.parametrize("bias", [1.0, 30.0])
def test_the_same_optimum_in_fewer_passes(name, bias, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 300)) * (rng.random((600, 300)) < 0.05)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    y = rng.integers(12, size=600).astype(np.int32)
    problem = Problem(X, y, np.full(600, 3.0), make_problem(name).loss, 12, bias)
    call = {"tol": 1e-5, "random_state": 0, "max_iter": 2_000}
    ours = DualSolver(newton=False).solve(problem, **call)
    monkeypatch.setattr(states, "CONSTANT_SHARE", 1e18)
    other = DualSolver(newton=False).solve(problem, **call)
    assert ours.certificate.gap <= 1e-5
    assert ours.certificate.primal <= other.certificate.primal * (1 + 1e-5)
    assert ours.certificate.dual <= other.certificate.primal
    assert ours.n_iter < other.n_iter


@pytest.mark.parametrize("start_over", [1e-3, 1e-4])
def test_a_warm_start_keeps_the_intercept(start_over):
    """Without it the constant's weights would begin with what the dual says of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 300)) * (rng.random((600, 300)) < 0.05)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    y = rng.integers(12, size=600).astype(np.int32)
    problem = Problem(X, y, np.full(600, 3.0), make_problem("crammer_singer").loss, 12, 1.0)
    solver = DualSolver(newton=False)
    found = solver.solve(problem, tol=start_over, random_state=0, max_iter=5_000)
    again = solver.solve(problem, tol=start_over, random_state=0, start=found)
    forgot = replace(found, intercept=np.zeros_like(found.intercept))
    slower = solver.solve(problem, tol=start_over, random_state=0, start=forgot)
    assert again.certificate.gap <= start_over and slower.certificate.gap <= start_over
    assert again.n_iter <= slower.n_iter
    assert again.n_iter < found.n_iter / 3
