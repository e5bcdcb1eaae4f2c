"""Where sweeps of a dense dual begin: feasible, the highest of its kind, nearer to the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from polymargin import DualSolver, LinearMulticlassSVC, Problem, get_loss
from polymargin.solvers.spread import best_share, spread_start
from polymargin.solvers.state import State
from tests.reference.objective import Spec, dual, dual_infeasibility

DENSE = [("softmax", None), ("top_k_entropy", 3)]


def make_problem(name="softmax", top_k=None, *, dtype=np.float64, csr=False, bias=0.0, n_classes=5):
    rng = np.random.default_rng(0)
    n, d = 80, 9
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)
    X[5] = 0
    y = rng.integers(n_classes, size=n).astype(np.int32)
    c = rng.uniform(0.01, 0.3, n)
    c[3] = 0
    rows = sparse.csr_array(X) if csr else X
    return Problem(rows, y, c, get_loss(name, top_k), n_classes, bias)


def spec_of(problem, name, top_k):
    X = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
    scaling = problem.intercept_scaling
    return Spec(X.astype(np.float64), problem.y, problem.c, name, top_k, scaling)


@pytest.mark.parametrize(("name", "top_k"), DENSE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_a_feasible_dual_its_weights_and_its_sum(name, top_k, dtype, csr, bias):
    problem = make_problem(name, top_k, dtype=dtype, csr=csr, bias=bias)
    state = State(problem)
    total = spread_start(state)
    close = {"rtol": 1e-12, "atol": 1e-14} if dtype == np.float64 else {"rtol": 2e-5, "atol": 1e-6}
    np.testing.assert_allclose(state.W, state.rebuild(), **close)
    assert total == pytest.approx(state.dual_sum(), rel=close["rtol"])
    p = state.dual_block().toarray().astype(np.float64)
    everyone = np.arange(len(p))
    assert (p[everyone, problem.y] == 0).all()
    share = p[0].max() / problem.c[0]
    expected = np.outer(problem.c, np.full(5, share))
    expected[everyone, problem.y] = 0
    idle = np.setdiff1d(everyone, problem.visited)
    assert 3 in idle
    expected[idle] = 0
    np.testing.assert_allclose(p, expected, rtol=1e-6)
    spec = spec_of(problem, name, top_k)
    a = -p
    a[everyone, problem.y] = p.sum(axis=1)
    assert dual_infeasibility(spec, a) <= 1e-9
    assert dual(spec, a) > problem.constant_loss + 1e-3


@pytest.mark.parametrize("n_classes", [2, 5, 300])
@pytest.mark.parametrize("v", [1e-9, 1e-2, 1.0, 1e3, 1e12])
def test_no_other_share_has_a_higher_dual_value(v, n_classes):
    total, others = 3.7, n_classes - 1

    def minus_dual(a):
        rest = (1 - others * a) * np.log1p(-others * a)
        return total * (others * a * np.log(a) + rest) + a * a / 2 * v

    found = best_share(total, v, n_classes)
    assert 0 < found <= 1 / n_classes
    bounds = (1e-300, 1 / n_classes)
    oracle = minimize_scalar(minus_dual, bounds=bounds, method="bounded", options={"xatol": 1e-14})
    assert minus_dual(found) <= oracle.fun + 1e-12 * abs(oracle.fun)
    slope = others * total * (np.log1p(-others * found) - np.log(found)) - found * v
    assert abs(slope) <= 1e-9 * max(found * v, others * total)


def test_weights_that_overflow_are_left_at_zero():
    problem = make_problem(dtype=np.float32)
    huge = replace(problem, X=problem.X * np.float32(1e37), c=problem.c * 1e3)
    state = State(huge)
    with np.errstate(over="ignore"):
        assert spread_start(state) == 0.0
    assert not state.W.any() and state.dual_block().nnz == 0


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0])
def test_a_first_pass_from_there_gets_further(C):
    """One pass from the start leaves a smaller gap than one from zero."""
    problem = make_problem()
    problem = replace(problem, c=problem.c * C)
    solver = DualSolver(acceleration=False)
    gaps = []
    for start in (None, zero_dual(problem)):
        solution = solver.solve(problem, max_iter=1, tol=1e-12, random_state=0, start=start)
        gaps.append(solution.gap)
    assert gaps[0] < 0.95 * gaps[1]


def zero_dual(problem):
    solution = DualSolver().solve(problem, max_iter=1, tol=1.0, random_state=0)
    return replace(solution, block=sparse.csr_array(solution.block.shape))


def test_balanced_examples_of_one_point_need_no_pass_to_be_at_their_optimum():
    """V_1 is zero: equal dual variables are the solution."""
    X, y = np.ones((6, 2)), np.arange(6) % 3
    model = LinearMulticlassSVC(loss="softmax", fit_intercept=False, tol=1e-12).fit(X, y)
    assert model.n_iter_ == 1 and abs(model.coef_).max() < 1e-12
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3)
