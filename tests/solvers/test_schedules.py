"""The choices of DualSolver: methods of the restricted problem, schedules, few passes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from polymargin import LOSSES, DualSolver, LinearMulticlassSVC, Problem, get_loss
from polymargin.solvers.sequential import SequentialSchedule
from polymargin.solvers.shrinking import AdaptiveSchedule
from polymargin.solvers.state import State

METHODS = [(n, m) for n in LOSSES for m in get_loss(n, 2).restricted_methods]
SEQUENTIAL = ("crammer_singer", "weston_watkins", "one_vs_rest")
SLOW = ("frank_wolfe", "two_variables")
LOOSE = {"bisection": 1e-9, "fixed_point": 1e-9}  # their own tolerance leaves a gap
BY_ARGMAX = ("smo", "frank_wolfe", "two_variables", "active_set", "greedy")


def make_problem(name, n=120, seed=0, C=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(5, size=n).astype(np.int32)
    X = rng.standard_normal((n, 12)) * 0.4 + np.eye(5, 12)[y]
    return Problem(X, y, np.full(n, C), get_loss(name, 2), 5, 1.0)


def solve(problem, tol=1e-5, max_iter=20_000, **settings):
    return DualSolver(**settings).solve(problem, tol=tol, max_iter=max_iter, random_state=0)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_every_method_reaches_the_optimum(name, method):
    problem = make_problem(name, C=0.2)
    tol = 1e-3 if method in SLOW else 1e-5
    reference = solve(problem, 1e-8)
    found = solve(problem, tol, restricted=method, restricted_tol=LOOSE.get(method))
    assert found.status == "converged"
    assert found.gap <= tol
    assert reference.dual <= found.primal * (1 + 1e-12)
    assert found.primal <= reference.primal * (1 + 2 * tol)


@pytest.mark.parametrize(("name", "method"), [x for x in METHODS if x[1] not in BY_ARGMAX])
def test_sparse_and_dense_data_take_the_same_path(name, method):
    dense = make_problem(name)
    csr = Problem(
        sparse.csr_array(dense.X), dense.y, dense.c, dense.loss, 5, dense.intercept_scaling
    )
    settings = {"restricted": method, "certify": False, "acceleration": False}
    first = solve(dense, max_iter=4, **settings)
    second = solve(csr, max_iter=4, **settings)
    np.testing.assert_allclose(first.coef, second.coef, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("cooling", [10.0, None])
@pytest.mark.parametrize("shuffle", [True, False])
def test_the_sequential_dual_method_reaches_the_optimum(name, shrinking, cooling, shuffle):
    problem = make_problem(name)
    reference = solve(problem, 1e-8)
    found = solve(problem, schedule="sdm", shrinking=shrinking, cooling=cooling, shuffle=shuffle)
    assert found.status == "converged"
    assert found.primal <= reference.primal * (1 + 2e-5)


def run_schedule(passes, **settings):
    """The kinds and lengths of the first loops, and epsilon after each."""
    problem = make_problem("crammer_singer")
    state = State(problem)
    plan = SequentialSchedule(state, np.random.default_rng(0), DualSolver(**settings))
    loops = []
    for _ in range(passes):
        visits = plan.next_pass()
        free = set(state.free_examples().tolist())
        seen = state.sweep(visits.order, "rows" if visits.full else "listed")
        plan.after(visits, seen)
        loops.append((visits, free, plan.epsilon))
    return loops


def test_full_loops_visit_everything_and_shrunk_ones_the_free_examples():
    loops = run_schedule(60)
    kinds = [visits.full for visits, _, _ in loops]
    assert kinds[0] and kinds.count(False) > kinds.count(True) > 1
    for before, (visits, free, _) in zip([True, *kinds], loops, strict=False):
        if visits.full:
            assert sorted(visits.order) == list(range(120))
        elif before:  # the first shrunk loop after a full one
            assert set(visits.order.tolist()) == free


def test_cooling_divides_epsilon_when_it_is_reached():
    cooled = [epsilon for _, _, epsilon in run_schedule(400)]
    assert cooled[0] == 1.0 and cooled[-1] < 0.5
    assert set(np.round(np.log10(np.unique(cooled)), 9)) <= set(-np.arange(20.0))
    constant = [epsilon for _, _, epsilon in run_schedule(50, cooling=None)]
    assert set(constant) == {1e-3}


def test_an_effort_of_zero_allows_one_shrunk_loop():
    kinds = [visits.full for visits, _, _ in run_schedule(20, effort=0.0, cooling=None)]
    assert kinds == [True, False] * 10


def test_nobody_sleeps_while_all_are_kept_awake():
    problem = make_problem("crammer_singer", n=300)
    state = State(problem)
    plan = AdaptiveSchedule(state, np.random.default_rng(0), DualSolver())

    def visited():
        visits = plan.next_pass()
        plan.after(visits, state.sweep(visits.order, "rows" if visits.full else "listed"))
        return len(visits.order)

    asleep = [visited() for _ in range(30)]
    assert min(asleep[10:]) < 300
    plan.keep_awake()
    assert [visited() for _ in range(10)][-5:] == [300] * 5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_momentum_and_sleep_do_not_circle(load_data, dtype):
    X, y, _, _ = load_data("clinc150", dtype)  # at this C the gap stood still for thousands
    costs = np.full(len(y), 10.0)
    problem = Problem(
        X, y.astype(np.int32), costs, get_loss("crammer_singer"), len(np.unique(y)), 0.0
    )
    assert solve(problem, tol=1e-3, max_iter=600).status == "converged"


def test_without_shuffling_the_seed_does_not_matter():
    problem = make_problem("weston_watkins")
    settings = {"shuffle": False, "shrinking": False, "acceleration": False}
    runs = [
        DualSolver(**settings).solve(problem, tol=1e-4, random_state=seed).coef for seed in (0, 1)
    ]
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_violation_is_what_the_paper_says(name):
    problem = make_problem(name)
    state = State(problem)
    violation = state.track_violation()
    rng = np.random.default_rng(0)
    for _ in range(3):
        state.sweep(rng.permutation(problem.visited))
    W, p = state.W[:, :5].copy(), state.dual_block().toarray()
    order = np.array([7], np.int64)
    state.sweep(order)
    x = np.append(problem.X[7], 1.0)
    y, c, block = problem.y[7], problem.c[7], p[7]
    scores = x @ W
    if name == "crammer_singer":  # equation 6
        g = scores + (np.arange(5) != y)
        alpha = -block
        alpha[y] = block.sum()
        below = alpha < np.where(np.arange(5) == y, c, 0.0) - 1e-12
        expected = g.max() - g[below].min()
    else:  # equation 18, with h = -g
        h = (
            np.delete(1 + scores - scores[y], y)
            if name == "weston_watkins"
            else 1 - np.where(np.arange(5) == y, 1, -1) * scores
        )
        a = np.delete(block, y) if name == "weston_watkins" else block
        rules = np.where(a <= 0, np.maximum(0, h), np.abs(h))
        expected = np.where(a >= c, np.maximum(0, -h), rules).max()
    assert violation[7] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("passes", [1, 3, 5])
@pytest.mark.parametrize("name", LOSSES)
def test_few_passes_are_made_exactly_without_a_word(name, passes):
    problem = make_problem(name)
    clf = LinearMulticlassSVC(
        loss=name,
        top_k=2,
        max_iter=passes,
        random_state=0,
        solver=DualSolver(certify=False),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.fit(problem.X, problem.y)
    assert clf.n_iter_ == passes
    assert np.isnan(clf.dual_gap_)
    assert clf.score(problem.X, problem.y) > 0.6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"restricted": "simplex"}, "'newton', 'sort', 'pivot'"),
        ({"restricted": "walrus"}, "'newton', 'sort', 'pivot'"),
        ({"restricted_tol": -1e-3}, "restricted_tol must be a non-negative number"),
        ({"restricted_tol": float("nan")}, "restricted_tol must be a non-negative number"),
        ({"schedule": "cyclic"}, 'schedule must be "auto" or "sdm"'),
        ({"cooling": 1.0}, "cooling must be a number above 1"),
        ({"effort": -1.0}, "effort must be a non-negative number"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        solve(make_problem("crammer_singer"), **settings)


def test_the_top_k_losses_have_no_sequential_schedule():
    with pytest.raises(ValueError, match='use schedule="auto" with top_k_beta'):
        solve(make_problem("top_k_beta"), schedule="sdm")
