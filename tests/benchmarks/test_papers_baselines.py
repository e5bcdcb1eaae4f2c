"""The baselines of the papers on tiny data: they solve what they say, or have known properties."""

from __future__ import annotations

import os
from itertools import combinations

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than tiny data do

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import datasets
from benchmarks.baselines.averaged_perceptron import AveragedPerceptron
from benchmarks.baselines.box_cqp import box_cqp
from benchmarks.baselines.compiled import block_step
from benchmarks.baselines.dual_decomposition import (
    DualDecomposition,
    smo_step,
    sort_threshold,
    violation,
)
from benchmarks.baselines.exponentiated_gradient import ExponentiatedGradient
from benchmarks.baselines.largest_violator import LargestViolator
from benchmarks.baselines.mira import Mira
from benchmarks.baselines.n_slack import NSlack
from benchmarks.baselines.one_slack import OneSlack, solve_planes
from benchmarks.baselines.recall_at_k import RecallAtK
from benchmarks.baselines.top_push import TopPush, project_balanced
from benchmarks.baselines.wsabie import Wsabie
from benchmarks.objective import crammer_singer_primal
from benchmarks.papers.blondel_table2 import few_passes
from benchmarks.passes import make_problem
from polymargin import DualSolver, get_loss
from polymargin.projections import solve_weston_watkins

C = 0.5


@pytest.fixture(scope="module")
def data():
    return datasets.generate_sparse(60, 30, 4, nonzeros=5, dtype=np.float64)


@pytest.fixture(scope="module")
def optimum(data):
    found = DualSolver().solve(make_problem(*data, C=C), tol=1e-9, max_iter=10_000, random_state=0)
    assert found.gap < 1e-8
    return found.dual


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=8).map(np.array),
    st.floats(0.01, 10),
)
@settings(max_examples=60, deadline=None)
def test_block_step_is_the_restricted_problem(b, bound):
    expected = get_loss("crammer_singer").solve_restricted(b[None], np.array([bound]))[0]
    np.testing.assert_allclose(block_step(b, bound), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "epochs", "close"),
    [(ExponentiatedGradient, 400, 1e-2), (OneSlack, 60, 1e-4), (NSlack, 20, 1e-3)],
)
def test_a_solver_reaches_the_optimum_from_below(data, optimum, make, epochs, close):
    if make is OneSlack:
        pytest.importorskip("clarabel", reason="the planes' program needs Clarabel")
    method, last = make(*data, C), -np.inf
    for _ in range(epochs):
        method.epoch()
        dual = method.dual()
        assert last - 1e-6 * abs(optimum) <= dual <= optimum * (1 + 1e-6)
        assert crammer_singer_primal(*data, method.coef, C) >= optimum * (1 - 1e-6)
        last = dual
        if dual >= optimum * (1 - close):
            break
    assert last >= optimum * (1 - close)


def test_exponentiated_gradient_keeps_weights_and_dual_together(data):
    method = ExponentiatedGradient(*data, C)
    for _ in range(3):
        method.epoch()
    alpha = method._alpha()
    np.testing.assert_allclose(method.W, data[0].T @ alpha, atol=1e-10)
    np.testing.assert_allclose(alpha.sum(axis=1), 0, atol=1e-10)
    wrong = np.ones(alpha.shape, bool)
    wrong[np.arange(len(alpha)), data[1]] = False
    assert (alpha[wrong] < 0).all()  # no step reaches a bound


def test_n_slack_ends_when_nothing_is_violated(data, optimum):
    epsilon = 1e-3
    method = NSlack(*data, C, epsilon=epsilon)
    for _ in range(50):
        method.epoch()
        if method.added == 0:
            break
    assert method.added == 0
    primal = crammer_singer_primal(*data, method.coef, C)
    assert primal <= optimum + 5 * C * len(data[1]) * epsilon
    assert 0 < method.working.sum() < method.working.size  # not every class of every example


def test_one_slack_forgets_idle_planes(data, monkeypatch):
    pytest.importorskip("clarabel", reason="the planes' program needs Clarabel")
    monkeypatch.setattr("benchmarks.baselines.one_slack.PATIENCE", 2)
    method = OneSlack(*data, C)
    for _ in range(30):
        method.epoch()
    assert len(method.planes) == len(method.delta) == len(method.gram) < 30
    assert method.weights.sum() <= C * (1 + 1e-12) and (method.weights >= 0).all()
    planes = np.array([plane.ravel() for plane in method.planes], np.float64)
    np.testing.assert_allclose(method.gram, planes @ planes.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [AveragedPerceptron, Mira])
def test_averages_are_those_of_all_weights_so_far(data, make):
    method = make(*data)
    order = method.rows.order()
    method.rows.order = lambda: order
    single, total = make(*data), 0.0
    for i in order:
        single.rows.order = lambda i=i: np.array([i])
        single.epoch()
        total = total + single.W
    method.epoch()
    np.testing.assert_allclose(method.W, single.W, atol=1e-10)
    np.testing.assert_allclose(method.coef, (total / len(order)).T, atol=1e-10)


def test_the_perceptron_separates_what_is_separable():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = np.eye(3)[y] + 0.1 * rng.standard_normal((60, 3))
    method = AveragedPerceptron(X, y)
    for _ in range(50):
        method.epoch()
        if method.mistakes == 0:
            break
    assert method.mistakes == 0
    assert ((X @ method.coef.T).argmax(axis=1) == y).all()


def test_mira_changes_as_little_as_it_must():
    X, y = np.array([[1.0, 2.0]]), np.array([0])
    method = Mira(X, y)
    method.rows.n_classes = 3
    method.W, method.sums = np.zeros((2, 3)), np.zeros((2, 3))
    method.epoch()
    scores = (X @ method.W)[0]
    assert scores[0] - scores[1] == pytest.approx(1.0)  # the margin is met, and no more
    assert scores[1] == pytest.approx(scores[2])
    before = method.W.copy()
    method.epoch()
    np.testing.assert_allclose(method.W, before)


def test_mira_learns_and_needs_its_margin(data):
    usual, original = Mira(*data), Mira(*data, margin=0.0)
    for method in (usual, original):
        method.epoch()
    assert ((data[0] @ usual.coef.T).argmax(axis=1) == data[1]).mean() > 0.7
    assert not original.W.any()  # with weights of zero, no change is the smallest


@pytest.mark.parametrize("n", [1, 4, 30])
def test_box_cqp(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        v = rng.uniform(-1, 1.0 * n) + 2 * rng.standard_normal(n)
        np.testing.assert_allclose(
            box_cqp(np.eye(n) + 1, v, 0.7), solve_weston_watkins(v, 0.7), atol=1e-9
        )


@pytest.mark.parametrize("seed", range(5))
def test_balanced_projection(seed):
    rng = np.random.default_rng(seed)
    V, positive = rng.standard_normal((12, 3)), rng.random((12, 3)) < 0.4
    positive[:2] = [[True], [False]]
    P = project_balanced(V, positive)
    sums = [np.where(which, P, 0).sum(axis=0) for which in (positive, ~positive)]
    np.testing.assert_allclose(*sums, atol=1e-9)
    assert (P >= 0).all()
    for _ in range(50):  # no feasible point is closer: (v - p).(q - p) <= 0
        Q = rng.random(V.shape)
        Q = np.where(positive, Q / np.where(positive, Q, 0).sum(axis=0), Q)
        Q = np.where(positive, Q, Q / np.where(positive, 0, Q).sum(axis=0))
        assert (((V - P) * (Q - P)).sum(axis=0) <= 1e-8).all()


def test_top_push_closes_its_duality_gap(data):
    method = TopPush(*data, regularization=0.1)
    for _ in range(200):
        method.epoch()
        primal, dual = method.objectives()
        assert (dual <= primal + 1e-9).all()
    assert ((primal - dual) / primal).max() < 1e-3
    assert method.coef.shape == (4, data[0].shape[1])


def test_wsabie_steps_along_the_gradient_of_the_pair():
    """One example, two classes: the other class is the violator, whichever is drawn first."""
    X, y = np.array([[0.5, 0.0, -0.3], [0.0, 0.0, 0.0]]), np.array([0, 1])
    machine = Wsabie(X, y, step=1e-4, dimension=5, margin=10.0)
    machine.V *= 0.5  # away from the bounds on lengths
    machine.B[:] = np.array([[0.1, 0.2, -0.3, 0.0, 0.1], [0.0, -0.1, 0.1, 0.2, 0.2]])
    B, V = machine.B.copy(), machine.V.copy()
    machine.epoch()
    z = X[0] @ V
    np.testing.assert_allclose(machine.B - B, 1e-4 / np.sqrt((z @ z) / 5) * np.outer([1, -1], z))
    change = B[0] - B[1]
    size = np.sqrt((change @ change) / 5 * (X[0] @ X[0]))
    np.testing.assert_allclose(machine.V - V, 1e-4 / size * np.outer(X[0], change), atol=1e-16)


def test_wsabie_learns_within_its_bounds():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 6
    X = np.eye(6)[y] + 0.1 * rng.normal(size=(90, 6))
    machine = Wsabie(X, y, step=0.1, dimension=16, margin=0.5)
    for _ in range(10):
        machine.epoch()
    assert ((X @ machine.coef.T).argmax(axis=1) == y).all()
    for vectors in (machine.B, machine.V):
        assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-12
    updates = machine.updates
    machine.margin = -100.0  # no class violates this
    machine.epoch()
    assert machine.updates == updates


def test_wsabie_leaves_recent_violators_alone():
    """Of two classes each has one possible violator: with a memory there is one step for each."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    for memory, most in ((0, 40), (1, 2)):
        machine = Wsabie(X, y, step=1e-3, memory=memory, dimension=4, margin=100.0)
        machine.epoch()
        assert machine.updates == most
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    counts = []
    for memory in (0, 1, 2):
        machine = Wsabie(X, y, step=1e-3, memory=memory, dimension=4, margin=100.0)
        for _ in range(3):
            machine.epoch()
        counts.append(machine.updates)
    assert counts[0] == 180 > counts[1] > counts[2] == 6


@pytest.mark.parametrize(
    ("method", "ours", "settings"),
    [
        ("sort", "sort", {}),
        ("frank_wolfe", "frank_wolfe", {}),
        ("bisection", "sort", {"tol": 1e-14}),
    ],
)
def test_the_printed_algorithm_makes_the_passes_of_the_package(data, method, ours, settings):
    """Written from the paper in its own variables, and from the package's: the same weights."""
    X, y = data
    printed = DualDecomposition(X, y, C, method, shuffle=False, **settings)
    for passes in (1, 2, 5):
        while printed.done < passes:
            printed.epoch()
        found = few_passes(ours).solve(make_problem(X, y, C=C), max_iter=passes)
        np.testing.assert_allclose(printed.coef, found.coef, atol=1e-9)


def test_the_printed_algorithm_ends_when_no_violation_is_left(data, optimum):
    X, y = data
    machine = DualDecomposition(X, y, C, "sort")
    while machine.largest_violation > 1e-6:
        machine.epoch()
    assert machine.dual() == pytest.approx(optimum, rel=1e-6)
    g = X @ machine.W + 1.0
    g[np.arange(len(y)), y] -= 1.0
    upper = C * np.eye(machine.rows.n_classes)[y]
    found = [violation(*parts) for parts in zip(g, machine.alpha, upper, strict=True)]
    assert max(found) <= 1e-5


def test_in_its_first_cycle_smo_makes_one_step_only_if_the_true_class_is_last(data):
    """The package's cycles end with it; the paper's go through the classes as they are numbered."""
    for label, alike in ((data[1].max(), True), (0, False)):
        X, y = data[0][data[1] == label], data[1][data[1] == label]
        machines = [DualDecomposition(X, y, C, m, shuffle=False) for m in ("smo", "frank_wolfe")]
        for machine in machines:
            machine.rows.n_classes = 4
            machine.W, machine.alpha = machine.rows.zeros(), np.zeros((len(y), 4))
            machine.epoch()
        assert np.allclose(*(machine.coef for machine in machines), atol=1e-9) == alike


@pytest.mark.parametrize("method", ["smo", "frank_wolfe"])
def test_printed_partial_steps_reach_the_optimum(data, optimum, method):
    machine = DualDecomposition(*data, C, method)
    for _ in range(400):
        machine.epoch()
        assert machine.dual() <= optimum * (1 + 1e-9)
    assert machine.dual() >= optimum * (1 - 1e-3)
    np.testing.assert_allclose(machine.alpha.sum(axis=1), 0, atol=1e-12)


def test_printed_bisection_is_not_scaled(data, optimum):
    """Its alphas miss their sum by up to tau C, which the package's bisection does not do."""
    X, y = data
    machine = DualDecomposition(X, y, C, "bisection", tol=1e-1)
    for _ in range(100):
        machine.epoch()
    missed = np.abs(machine.alpha.sum(axis=1)).max()
    assert 1e-4 * C < missed <= 1.0001e-1 * C
    assert (machine.alpha <= C * np.eye(machine.rows.n_classes)[y] + 1e-12).all()


def test_more_cycles_of_smo_come_nearer_to_the_exact_step():
    rng = np.random.default_rng(0)
    for _ in range(20):
        g, square = rng.standard_normal(8), 0.5 + rng.random()
        upper = np.eye(8)[3] * 2.0
        exact = smo_step(g.copy(), np.zeros(8), upper, square, 10_000, 1e-12)
        length = np.sqrt(square)
        beta = length * upper + g / length
        theta = sort_threshold(beta, 2.0 * length)
        expected = upper - np.maximum(beta - theta, 0.0) / length
        np.testing.assert_allclose(exact, expected, atol=1e-9)
        gaps = [
            np.abs(smo_step(g.copy(), np.zeros(8), upper, square, n, 0.0) - exact).max()
            for n in (1, 3, 30)
        ]
        assert gaps[2] <= gaps[1] + 1e-12 and gaps[1] <= gaps[0] + 1e-12


@pytest.mark.parametrize("k", [1, 2])
def test_recall_at_k_solves_its_program_over_all_choices(k):
    """Against the program with a plane for every choice of k n pairs, on a tiny problem."""
    pytest.importorskip("clarabel", reason="the planes' program needs Clarabel")
    rng = np.random.default_rng(k)
    y, n_classes = np.array([0, 1, 2]), 3
    X = rng.standard_normal((3, 2))
    planes, losses = [], []
    truth = np.eye(n_classes)[y]
    for pairs in combinations(range(9), 3 * k):
        choice = np.zeros(9)
        choice[list(pairs)] = 1.0
        choice = choice.reshape(3, n_classes)
        planes.append((X.T @ (truth - choice)).ravel())
        losses.append(3.0 - (truth * choice).sum())
    planes, losses = np.array(planes), np.array(losses)
    weights = solve_planes(planes @ planes.T, losses, C)
    best = losses @ weights - 0.5 * ((weights @ planes) ** 2).sum()

    machine = RecallAtK(X, y, C, k)
    W = rng.standard_normal(machine.W.shape)
    machine.W = W
    psi, loss = machine.worst()
    worst = (losses - planes @ W.ravel()).max()
    assert loss - np.vdot(psi, W) == pytest.approx(worst, abs=1e-5)
    machine.W = np.zeros_like(W)
    for _ in range(60):
        machine.epoch()
        assert machine.dual() <= best + 1e-6 <= machine.primal() + 2e-6
    assert machine.dual() == pytest.approx(best, rel=1e-4)


def test_recall_at_k_raises_the_recall(data):
    pytest.importorskip("clarabel", reason="the planes' program needs Clarabel")
    X, y = data
    machine = RecallAtK(X, y, 1.0, 2)
    for _ in range(40):
        machine.epoch()
    scores = np.asarray(X @ machine.coef.T)
    chosen = np.argsort(-scores.ravel())[: 2 * len(y)]
    own = np.arange(len(y)) * scores.shape[1] + y
    assert np.isin(own, chosen).mean() > 0.9


def test_the_largest_violator_comes_next(data, optimum):
    X, y = data
    machine = LargestViolator(X, y, C, share=1 / len(y), epsilon=1e-5)
    upper = C * np.eye(4)[y]
    for turn in range(200):
        g = X @ machine.W + 1.0
        g[np.arange(len(y)), y] -= 1.0
        found = [violation(*parts) for parts in zip(g, machine.alpha, upper, strict=True)]
        np.testing.assert_allclose(machine.v, found, atol=1e-9)
        worst = int(np.argmax(found))
        before = machine.alpha.copy()
        machine.epoch()
        if machine.steps == turn:
            break
        moved = np.flatnonzero((machine.alpha != before).any(axis=1))
        assert moved.tolist() == [worst]
    while machine.largest_violation > 1e-5:
        machine.epoch()
    assert machine.dual() == pytest.approx(optimum, rel=1e-5)
    np.testing.assert_allclose(machine.W, X.T @ machine.alpha, atol=1e-9)
