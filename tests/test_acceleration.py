"""The accelerated outer loop: how its strength kappa begins, and when it is taken back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polymargin import DualSolver, Problem, get_loss
from polymargin.solvers import acceleration
from polymargin.solvers.acceleration import OuterLoop, initial_kappa
from polymargin.solvers.state import State


def make_problem(n, d, C):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(3, size=n).astype(np.int32)
    return Problem(X, y, np.full(n, C), get_loss("crammer_singer"), 3, 0.0)


@pytest.mark.parametrize(("n", "d"), [(200, 10), (50, 10)])
def test_kappa_begins_smaller_where_examples_are_few_for_the_features(n, d):
    most = acceleration.LARGEST_START if n >= 10 * d else acceleration.LARGEST_FEW
    for C in (1.0, 3.0, 25.0, 1e4):
        assert initial_kappa(make_problem(n, d, C), "auto") == pytest.approx(
            min(math.sqrt(C), most)
        )
    assert initial_kappa(make_problem(n, d, 1e-3), "auto") == 0.0
    assert initial_kappa(make_problem(n, d, 25.0), 7.0) == 7.0  # as told


def grown(kappa=4.0):
    """An outer loop whose kappa has grown, and stopped growing as the gap rose."""
    state = State(make_problem(200, 10, 1.0))
    loop = OuterLoop(state, kappa, may_grow=True)
    dual, gap = 0.0, 1.0
    for _ in range(40):
        dual, gap = dual + 1.0, 0.95 * gap
        loop.control(dual, gap)
    largest = state.kappa
    assert largest > 10 * kappa
    loop.control(dual, 5.0 * gap)
    return loop, state, dual, 5.0 * gap, largest


def passes_until(loop, state, dual, gap, fall, kappa, most=500):
    """How many passes, each with the gap times `fall`, until kappa is no larger than this."""
    for number in range(most):
        if state.kappa <= kappa:
            return number
        dual, gap = dual + 1e-3, fall * gap
        loop.control(dual, gap)
    return most


def test_a_grown_kappa_is_taken_back_while_the_gap_hardly_falls():
    loop, state, dual, gap, largest = grown()
    start = state.kappa
    lowest = acceleration.TAKEN_BACK * largest
    window = acceleration.WINDOW * math.sqrt(1.0 + start)
    assert passes_until(loop, state, dual, gap, 0.999, 0.9 * start) <= window + 1
    assert passes_until(loop, state, dual + 1.0, 0.9 * gap, 0.999, lowest) < 100
    assert state.kappa == pytest.approx(lowest)  # not below


def test_it_stays_while_the_gap_falls():
    loop, state, dual, gap, _ = grown()
    assert passes_until(loop, state, dual, gap, 0.95, 0.9 * state.kappa, most=200) == 200


def test_wide_data_with_a_large_C_need_few_passes(load_data):
    """With a kappa from C alone this took three times as many."""
    X, y, _, _ = load_data("rcv1_multiclass_sub", np.float64)
    costs = np.full(len(y), 10.0)
    problem = Problem(X, y.astype(np.int32), costs, get_loss("one_vs_rest"), len(np.unique(y)), 0.0)
    found = DualSolver().solve(problem, tol=1e-3, max_iter=150, random_state=0)
    assert found.status == "converged"
