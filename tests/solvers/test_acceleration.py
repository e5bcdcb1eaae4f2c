"""The accelerated outer loop: how its strength kappa begins, and what makes it change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from polymargin import DualSolver, Problem, get_loss
from polymargin.solvers.acceleration import (
    CONSTANTS,
    Control,
    OuterLoop,
    Phase,
    initial_kappa,
    is_redundant,
)
from polymargin.solvers.state import State


def make_problem(n, d, C):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(3, size=n).astype(np.int32)
    return Problem(X, y, np.full(n, C), get_loss("crammer_singer"), 3, 0.0)


@pytest.mark.parametrize(("n", "d"), [(200, 10), (50, 10)])
def test_kappa_begins_smaller_where_examples_are_few_for_the_features(n, d):
    most = CONSTANTS.largest_start if n >= 10 * d else CONSTANTS.safe
    for C in (1.0, 3.0, 25.0, 1e4):
        assert initial_kappa(State(make_problem(n, d, C)), "auto") == pytest.approx(
            min(math.sqrt(C), most)
        )
    assert initial_kappa(State(make_problem(n, d, 1e-3)), "auto") == 0.0
    assert initial_kappa(State(make_problem(n, d, 25.0)), 7.0) == 7.0  # as told


def test_kappa_begins_smaller_for_losses_that_are_less_steep():
    hinge = make_problem(200, 10, 25.0)
    softmax = replace(hinge, loss=get_loss("softmax"))
    assert initial_kappa(State(softmax), "auto") == pytest.approx(5 * math.sqrt(0.05))


def test_features_that_never_occur_do_not_make_examples_few():
    narrow = make_problem(200, 10, 25.0)
    wide = np.zeros((200, 5000))
    wide[:, ::500] = narrow.X
    problem = Problem(sparse.csr_array(wide), narrow.y, narrow.c, narrow.loss, 3, 0.0)
    assert initial_kappa(State(problem), "auto") == initial_kappa(State(narrow), "auto") == 5.0


def follow(control, kappa, passes, fall=1.0, dual=1e-3):
    """Kappa after each of some passes, in which the gap is multiplied and the dual changes."""
    level, gap, kappas = control.last_dual, control.lower_gap, []
    level, gap = (0.0, 1.0) if math.isinf(gap) else (level, gap)
    for _ in range(passes):
        level, gap = level + dual * gap, fall * gap
        kappa = control.after_pass(kappa, level, gap).kappa
        kappas.append(kappa)
    return kappas


def grown(start=4.0):
    """A control whose kappa has grown until the dual fell, and that kappa."""
    control = Control(start, True, Phase.GROWING)
    largest = follow(control, start, 40, fall=0.95)[-1]
    assert largest > 10 * start
    (kappa,) = follow(control, largest, 1, dual=-1.0)
    assert kappa == CONSTANTS.back * largest
    return control, kappa


def test_kappa_grows_where_it_may_until_the_dual_falls():
    control, kappa = grown()
    assert control.phase is Phase.GROWN
    assert follow(control, kappa, 20, fall=0.5) == [kappa] * 20
    assert follow(Control(4.0, False, Phase.STEADY), 4.0, 20, fall=0.5) == [4.0] * 20


def test_kappa_that_has_grown_is_taken_back_once_where_the_gap_hardly_falls():
    control, kappa = grown()
    window = math.ceil(CONSTANTS.window * math.sqrt(1.0 + kappa))
    *before, last = follow(control, kappa, window, fall=0.999)
    assert before == [kappa] * (window - 1)
    assert last == CONSTANTS.back * kappa
    assert control.phase is Phase.STEADY
    assert follow(control, last, window, fall=0.999) == [last] * window


def test_a_second_fall_of_the_dual_takes_it_back_too():
    control, kappa = grown()
    kappas = follow(control, kappa, 1, dual=-1.0) + follow(control, 0.5 * kappa, 20, fall=0.999)
    assert kappas == [CONSTANTS.back * kappa] * 21
    assert control.phase is Phase.STEADY


def test_a_gap_that_rises_ends_the_growth_only():
    for phase, then in ((Phase.GROWING, Phase.GROWN), (Phase.STEADY, Phase.STEADY)):
        control = Control(4.0, phase is Phase.GROWING, phase)
        (kappa,) = follow(control, 4.0, 1)
        (kappa,) = follow(control, kappa, 1, fall=1.01 * CONSTANTS.rise)
        assert control.phase is then
        assert kappa == (4.0 if then is Phase.STEADY else 2.0)


def test_it_is_not_taken_back_below_its_start_nor_raised_to_it():
    for kappa, then in ((5.0, 4.0), (3.0, 3.0)):
        control = Control(4.0, True, Phase.GROWN)
        assert follow(control, kappa, 20)[-1] == then
        assert control.phase is Phase.STEADY


@pytest.mark.parametrize("phase", Phase)
def test_wherever_the_dual_falls_kappa_is_halved_down_to_what_is_safe(phase):
    control = Control(10.0, True, phase)
    kappas = follow(control, 16.0, 10, dual=-1.0)
    assert kappas[1:] == [8.0, 4.0, 2.0, *[CONSTANTS.safe] * 6]  # there is no fall before the first


def test_nobody_sleeps_once_the_gap_has_stood_still():
    control = Control(2.0, False, Phase.STEADY)
    patience = math.ceil(CONSTANTS.patience * 3.0)
    assert follow(control, 2.0, patience) == [2.0] * patience  # the first gap is lower than none
    assert control.phase is Phase.STEADY
    follow(control, 2.0, 1)
    assert control.phase is Phase.STANDING_STILL
    follow(control, 2.0, 100, fall=0.5)
    assert control.phase is Phase.STANDING_STILL


def test_it_does_not_stand_still_while_the_gap_falls_slowly():
    control = Control(2.0, False, Phase.STEADY)
    follow(control, 2.0, 1000, fall=0.99)
    assert control.phase is Phase.STEADY


def one_pass(state, loop):
    seen = state.sweep(state.problem.visited)
    v, distance = loop.step()
    loop.control(state.dual_sum() - 0.5 * v, seen.gap + 0.5 * distance)


@pytest.mark.parametrize("passes", [1, 30])
def test_a_loop_goes_on_from_its_state_to_the_last_bit(passes):
    problem = make_problem(200, 10, 50.0)
    state = State(problem)
    loop = OuterLoop(state, initial_kappa(state, "auto"), may_grow=True)
    for _ in range(passes):
        one_pass(state, loop)
    saved = loop.state_dict()
    saved |= {name: a.copy() for name, a in saved.items() if isinstance(a, np.ndarray)}

    other = State(problem)
    restored = OuterLoop(other, 1.0, may_grow=False)
    other.load_state_dict(state.state_dict())
    restored.load_state_dict(saved)
    kappas = set()
    for _ in range(60):
        one_pass(state, loop)
        one_pass(other, restored)
        assert other.kappa == state.kappa
        kappas.add(state.kappa)
    assert len(kappas) > 1
    np.testing.assert_array_equal(other.W, state.W)
    np.testing.assert_array_equal(restored.primal_point, loop.primal_point)
    np.testing.assert_equal(restored.state_dict(), loop.state_dict())


def test_kappa_ends_growing_where_the_dual_stands():
    """All blocks at their bounds: the dual does not fall, whatever kappa is."""
    control = Control(4.0, grows=True, phase=Phase.GROWING)
    kappa = 4.0
    for _ in range(1000):
        kappa = control.after_pass(kappa, 1.0, 0.1).kappa
    assert kappa <= CONSTANTS.largest
    assert control.phase is not Phase.GROWING


def test_wide_data_with_a_large_C_need_few_passes(load_data):
    """With a kappa from C alone this took three times as many."""
    X, y, _, _ = load_data("rcv1_multiclass_sub", np.float64)
    costs = np.full(len(y), 10.0)
    problem = Problem(X, y.astype(np.int32), costs, get_loss("one_vs_rest"), len(np.unique(y)), 0.0)
    found = DualSolver().solve(problem, tol=1e-3, max_iter=150, random_state=0)
    assert found.status == "converged"


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins", "one_vs_rest"])
@pytest.mark.parametrize("C", [1.0, 10.0])
def test_a_start_that_examples_were_taken_out_of_begins_without_it(loss, C):
    """Accelerated, such a first pass sees a larger gap than one from zero weights."""
    X, y = load_digits(return_X_y=True)
    everyone = Problem(X / 16, y.astype(np.int32), np.full(len(y), C), get_loss(loss), 10, 1.0)
    assert is_redundant(State(everyone))
    solver = DualSolver(newton=False)
    whole = solver.solve(everyone, tol=1e-2, random_state=0)
    c = everyone.c.copy()
    c[::5] = 0
    kept = sparse.csr_array(sparse.diags_array((c > 0).astype(float)) @ whole.block)
    first = [
        solver.solve(everyone.with_cost(c), max_iter=1, random_state=0, start=start)
        for start in (None, replace(whole, block=kept))
    ]
    seen = [solution.history["estimated_gap"][0] for solution in first]
    assert seen[1] < 0.95 * seen[0]
