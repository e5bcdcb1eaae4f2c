"""The regularisation path: every C is certified, and is the optimum a fit of its own would find."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polymargin import (
    DualSolver,
    LinearMulticlassSVC,
    Problem,
    RegularizationPathDisplay,
    get_loss,
    regularization_path,
)
from polymargin.losses import LOSSES
from polymargin.solvers.engines.linear import LinearEngine
from tests.estimators import LOSS_PARAMS, loss_id, make_problem, make_sparse_problem
from tests.reference.objective import Spec, dual, dual_infeasibility, primal

GRID = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)


def problem_of(X, y, loss="crammer_singer", c=None, scaling=0.0, top_k=None):
    K = int(y.max()) + 1
    c = np.ones(len(y)) if c is None else c
    codes = y.astype(np.int32)
    top_k = 2 if loss.startswith("top_k") and top_k is None else top_k
    return Problem(
        X=X, y=codes, c=c, loss=get_loss(loss, top_k), n_classes=K, intercept_scaling=scaling
    )


# --- the optimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_certificate_is_true(loss, dtype, container):
    """Gap, objective and feasibility of every C stand up to recomputation."""
    X, y = make_sparse_problem()
    X = container(X.toarray().astype(dtype))
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weights[::7] = 0.0
    tol, digits = (1e-6, 1e-9) if dtype == np.float64 else (1e-4, 1e-6)
    problem = problem_of(X, y, loss, weights, 0.7)
    solutions = DualSolver().solve_path(problem, GRID, tol=tol, max_iter=50_000, random_state=0)
    for C, found in zip(GRID, solutions, strict=True):
        spec = Spec(X, y, C * weights, loss, problem.loss.top_k, 0.7)
        P, D = primal(spec, found.coef, found.intercept), dual(spec, found.dual_coef())
        assert found.status == "converged"
        assert found.gap <= tol
        assert pytest.approx(found.gap, abs=digits) == (P - D) / P
        assert pytest.approx(P, rel=digits) == found.primal
        assert dual_infeasibility(spec, found.dual_coef()) <= 1e-6
        assert found.coef.dtype == dtype


@by_loss
def test_the_models_are_those_of_cold_fits(params):
    X, y = make_problem()
    tight = {**params, "tol": 1e-7, "max_iter": 100_000, "random_state": 0}
    path = regularization_path(X, y, [0.01, 0.1, 1.0], **tight)
    for i, C in enumerate(path.Cs):
        cold = LinearMulticlassSVC(C=C, **tight).fit(X, y)
        assert path.objectives[i] == pytest.approx(cold.objective_, rel=2e-7)
        np.testing.assert_allclose(path.coefs[i], cold.coef_, atol=1e-2 * abs(cold.coef_).max())


def test_the_order_of_the_grid_does_not_matter():
    X, y = make_problem()
    up = regularization_path(X, y, GRID, random_state=0)
    mixed = regularization_path(X, y, [GRID[i] for i in (3, 0, 6, 1, 5, 2, 4)], random_state=0)
    for i, C in enumerate(mixed.Cs):
        same = GRID.index(C)
        np.testing.assert_array_equal(mixed.coefs[i], up.coefs[same])
        assert mixed.gaps[i] == up.gaps[same]
        assert mixed.n_iters[i] == up.n_iters[same]


def test_descending_costs_are_solved_too():
    """The solver takes the costs as they come; down is slower, but as exact."""
    X, y = make_problem()
    problem = problem_of(X, y)
    down = GRID[4::-1]
    for C, found in zip(
        down, DualSolver().solve_path(problem, down, tol=1e-6, max_iter=50_000), strict=True
    ):
        spec = Spec(X, y, np.full(len(y), C), "crammer_singer")
        P, D = primal(spec, found.coef, found.intercept), dual(spec, found.dual_coef())
        assert (P - D) / P <= 1e-6 * (1 + 1e-6)
        assert dual_infeasibility(spec, found.dual_coef()) <= 1e-12


@given(
    seed=st.integers(0, 2**16),
    loss=st.sampled_from(LOSSES),
    n_classes=st.integers(3, 5),
    Cs=st.lists(st.floats(-3.0, 2.0), min_size=1, max_size=4, unique_by=lambda v: round(v, 3)),
    dense=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_odd_problems_have_true_certificates(seed, loss, n_classes, Cs, dense):
    """Empty rows, absent examples, features that never occur: whatever the grid."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 6)) * (rng.random((20, 6)) < 0.3)
    X[:, 2] = 0.0
    y = np.arange(20) % n_classes
    c = np.where(rng.random(20) < 0.2, 0.0, rng.uniform(0.1, 3.0, 20))
    c[:2] = 1.0
    problem = problem_of(X if dense else sparse.csr_array(X), y, loss, c)
    grid = [10.0**v for v in Cs]
    solutions = DualSolver().solve_path(problem, grid, tol=1e-5, max_iter=20_000, random_state=seed)
    for C, found in zip(grid, solutions, strict=True):
        spec = Spec(X, y, C * c, loss, problem.loss.top_k)
        P, D = primal(spec, found.coef, found.intercept), dual(spec, found.dual_coef())
        assert P - D <= 1e-5 * P * (1 + 1e-6) + 1e-12
        assert D <= P * (1 + 1e-9) + 1e-12
        assert dual_infeasibility(spec, found.dual_coef()) <= 1e-10


@pytest.mark.parametrize(
    "solver",
    [
        DualSolver(acceleration=False),
        DualSolver(schedule="sdm"),
        DualSolver(acceleration=5.0),
        DualSolver(shrinking=False),
    ],
    ids=["plain", "sdm", "kappa", "no shrinking"],
)
def test_other_settings_of_the_solver(solver):
    X, y = make_problem()
    path = regularization_path(X, y, GRID[:5], solver=solver, tol=1e-4, max_iter=100_000)
    best = regularization_path(X, y, GRID[:5], tol=1e-7, max_iter=100_000)
    np.testing.assert_allclose(path.objectives, best.objectives, rtol=2e-4)
    assert (path.gaps <= 1e-4).all()


@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_start_is_feasible_and_the_best_on_its_ray(loss, ratio):
    X, y = make_problem()
    problem = problem_of(X, y, loss)
    rng = np.random.default_rng(0)
    engine = LinearEngine(problem, DualSolver(), rng, n_jobs=1, max_iter=100)
    engine.start(None)
    while not engine.advance(0.0, lambda: False).gap <= 1e-3:
        pass
    p = engine.state.dual_block().toarray()
    engine.move_to(problem.with_cost(ratio * problem.c))
    spec = Spec(X, y, np.full(len(y), ratio), loss, problem.loss.top_k)

    def dual_of(block):
        a = np.where(np.eye(4, dtype=bool)[y], 1, -1) * block
        if problem.loss.coupled:
            a[np.arange(len(y)), y] = block.sum(axis=1)
        return dual(spec, a), dual_infeasibility(spec, a)

    value, infeasibility = dual_of(engine.state.dual_block().toarray())
    assert infeasibility <= 1e-12
    factors = np.linspace(0.0, ratio, 50) if problem.loss.flat else [0.0, ratio]
    others = [dual_of(factor * p)[0] for factor in factors]
    assert value >= max(others) - 1e-9 * abs(value)
    V = engine.state.rebuild()
    np.testing.assert_allclose(engine.state.dual_weights(), V, atol=1e-9 * abs(V).max())


# --- sharing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_solutions_stay_as_they_were(container):
    """A solution must not change when the path goes on: one feature is the case of views."""
    X = container(np.linspace(-1, 1, 30)[:, None])
    y = np.repeat([0, 1, 2], 10)
    problem = problem_of(X, y)
    solutions, copies = [], []
    for found in DualSolver().solve_path(problem, [0.1, 1.0, 10.0], random_state=0):
        solutions.append(found)
        copies.append((found.coef.copy(), found.intercept.copy(), found.block.copy()))
    for found, (coef, intercept, block) in zip(solutions, copies, strict=True):
        np.testing.assert_array_equal(found.coef, coef)
        np.testing.assert_array_equal(found.intercept, intercept)
        np.testing.assert_array_equal(found.block.toarray(), block.toarray())


def test_problems_that_differ_in_costs_share_what_was_computed_from_x():
    X, y = make_sparse_problem()
    problem = problem_of(sparse.csr_array(X), y)
    norms = problem.squared_norms
    next(iter(DualSolver().solve_path(problem, [1.0])))
    other = problem.with_cost(2 * problem.c)
    assert other.X is problem.X
    assert other.squared_norms is norms
    assert other.rows is problem.rows
    np.testing.assert_array_equal(problem.c, 1.0)
    layout = problem.rows.layout(10**6)
    DualSolver().solve(other, max_iter=5, tol=1.0)
    assert other.rows.layout(10**6)[0] is layout[0]


def test_costs_of_the_caller_are_not_touched():
    X, y = make_problem()
    c = np.ones(len(y))
    list(DualSolver().solve_path(problem_of(X, y, c=c), GRID))
    np.testing.assert_array_equal(c, 1.0)


# --- the result ----------------------------------------------------------------------------------


def test_estimators_of_a_path():
    X, y = make_problem()
    names = np.array(["a", "b", "c", "d"])[y]
    path = regularization_path(X, names, GRID, random_state=0)
    assert len(path) == len(GRID)
    for i, C in enumerate(GRID):
        clf = path.estimator(C)
        assert clf.C == C
        assert clf.coef_.base is path.coefs or clf.coef_.base is path.coefs.base
        np.testing.assert_array_equal(
            clf.predict(X), path.classes[(X @ path.coefs[i].T + path.intercepts[i]).argmax(axis=1)]
        )
        assert clf.dual_gap_ == path.gaps[i] <= 1e-3
        assert clf.history_["gap"][-1] == path.gaps[i]
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.coefs, path.coefs)
    with pytest.raises(ValueError, match=r"not on the path.*0.01, 0.03"):
        path.estimator(0.02)


def test_two_classes_have_one_row():
    X, y = make_problem(n_classes=2)
    path = regularization_path(X, y, [0.1, 1.0], random_state=0)
    assert path.coefs.shape == (2, 1, X.shape[1])
    assert path.intercepts.shape == (2, 1)
    assert path.estimator(1.0).decision_function(X).shape == (len(y),)


def test_a_number_of_values_scales_with_the_data():
    """Ten times longer rows, a hundredth of C: the same models without an intercept."""
    X, y = make_problem()
    path = regularization_path(X, y, 5, fit_intercept=False, tol=1e-3, random_state=0)
    scaled = regularization_path(10 * X, y, 5, fit_intercept=False, tol=1e-3, random_state=0)
    np.testing.assert_allclose(scaled.Cs, path.Cs / 100)
    np.testing.assert_allclose(path.Cs[-1] / path.Cs[0], 1e4)
    np.testing.assert_allclose(scaled.objectives * 100, path.objectives, rtol=2e-3)


def test_weights_and_class_weights_count():
    X, y = make_problem()
    rng = np.random.default_rng(0)
    weight = rng.uniform(0, 3, len(y))
    options = {"tol": 1e-7, "max_iter": 50_000, "random_state": 0}
    path = regularization_path(
        X, y, [0.1, 1.0], sample_weight=weight, class_weight="balanced", **options
    )
    for i, C in enumerate(path.Cs):
        clf = LinearMulticlassSVC(C=C, class_weight="balanced", **options).fit(X, y, weight)
        assert path.objectives[i] == pytest.approx(clf.objective_, rel=1e-6)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        ([], "empty"),
        (0, "at least 1"),
        (-3, "at least 1"),
        ([1.0, -1.0], r"positive and finite.*-1"),
        ([0.0, 1.0], "positive and finite"),
        ([1.0, np.nan], "positive and finite"),
        ([1.0, np.inf], "positive and finite"),
        ([0.1, 1.0, 0.1], r"duplicates: \[0.1\]"),
        ([[0.1, 1.0]], "2 dimension"),
        (1.5, "0 dimension"),
        (["a"], "positive numbers"),
        (None, "positive numbers|dimension"),
        (True, "dimension|positive numbers"),
    ],
    ids=str,
)
def test_bad_grids_are_refused(Cs, message):
    X, y = make_problem()
    with pytest.raises(ValueError, match=message):
        regularization_path(X, y, Cs)


def test_bad_arguments_are_refused():
    X, y = make_problem()
    with pytest.raises(ValueError, match="tol"):
        regularization_path(X, y, [1.0], tol=-1.0)
    with pytest.raises(ValueError, match="loss"):
        regularization_path(X, y, [1.0], loss="hinge")
    with pytest.raises(ValueError, match="at most 3"):
        regularization_path(X, y, [1.0], loss="top_k_beta", top_k=4)
    with pytest.raises(ValueError, match="overflow"):
        regularization_path(X, y, [1e300], sample_weight=np.full(len(y), 1e300))
    with pytest.raises(ValueError, match="2 classes"):
        regularization_path(X, np.zeros(len(y)), [1.0])


def test_a_path_that_does_not_converge_says_where():
    X, y = make_problem()
    with pytest.warns(ConvergenceWarning, match=r"C = 3 \(gap .*10 \(gap"):
        regularization_path(X, y, [1e-6, 3.0, 10.0], max_iter=4, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regularization_path(X, y, [1e-6, 1.0], max_iter=1000)


@pytest.mark.parametrize("after", [1, 20])
def test_an_interrupt_ends_the_path(after):
    X, y = make_problem()
    passes = []

    def interrupt(record):
        passes.append(record["pass"])
        if len(passes) == after:
            raise KeyboardInterrupt

    found = list(DualSolver().solve_path(problem_of(X, y), GRID, tol=1e-8, progress=interrupt))
    assert found[-1].status == "interrupted"
    assert all(solution.status == "converged" for solution in found[:-1])
    assert np.isfinite(found[-1].coef).all()


# --- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ["norm", "objective", "n_support", "accuracy"])
def test_displays_draw_the_quantity(quantity):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = make_problem()
    path = regularization_path(X, y, GRID[::-1], random_state=0)
    display = RegularizationPathDisplay.from_path(path, X, y, quantity=quantity, name="train")
    Cs, values = display.line_.get_data()
    np.testing.assert_array_equal(Cs, GRID)
    expected = {
        "norm": lambda i: np.linalg.norm(path.coefs[i]),
        "objective": lambda i: path.objectives[i] / path.Cs[i],
        "n_support": lambda i: path.n_support[i],
        "accuracy": lambda i: np.mean(path.estimator(path.Cs[i]).predict(X) == y),
    }[quantity]
    np.testing.assert_allclose(values, [expected(i) for i in range(len(GRID))][::-1])
    assert display.ax_.get_xscale() == "log"
    assert display.figure_ is display.ax_.figure


def test_displays_say_what_is_wrong():
    X, y = make_problem()
    path = regularization_path(X, y, [0.1, 1.0], random_state=0)
    with pytest.raises(ValueError, match="needs X and y"):
        RegularizationPathDisplay.from_path(path, quantity="accuracy")
    with pytest.raises(ValueError, match="quantity must be"):
        RegularizationPathDisplay.from_path(path, quantity="speed")
