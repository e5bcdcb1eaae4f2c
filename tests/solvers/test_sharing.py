"""Passes shared out among threads: the same optimum, certificates that hold, no bit by chance."""

import threading
from pathlib import Path

import numpy as np
import pytest

from polymargin import DualSolver, Problem, get_loss
from polymargin.solvers.sharing import class_ranges
from polymargin.solvers.state import State
from tests.core.test_sweeps import make_problem
from tests.reference.objective import Spec, primal

UNCOUPLED = ("one_vs_rest", "one_vs_rest_squared")


def problem_of(name, layout=np.int32, *, smoothing=0.0, dtype=np.float64):
    one = make_problem(name, dtype, layout=layout, n_classes=26, n=400, d=30, bias=1.0)
    return Problem(one.X, one.y, one.c, get_loss(name, smoothing=smoothing), 26, 1.0)


def bits(solution):
    return solution.coef.tobytes(), solution.intercept.tobytes(), solution.n_iter


@pytest.mark.parametrize("layout", ["dense", np.int32])
@pytest.mark.parametrize("name", UNCOUPLED)
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_two_threads_reach_the_same_optimum(name, layout, smoothing):
    if smoothing and name == "one_vs_rest_squared":
        pytest.skip("is smooth")
    problem = problem_of(name, layout, smoothing=smoothing)
    call = {"tol": 1e-6, "random_state": 0, "max_iter": 5000}
    alone = DualSolver(newton=False).solve(problem, n_jobs=1, **call)
    shared = DualSolver(newton=False, parallel=True).solve(problem, n_jobs=2, **call)
    assert shared.certificate.gap <= 1e-6
    assert shared.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-6)
    if smoothing:
        return
    rows = problem.X if layout == "dense" else problem.X.toarray()
    spec = Spec(rows, problem.y, problem.c, name, None, 1.0)
    assert shared.certificate.primal == pytest.approx(
        primal(spec, shared.coef, shared.intercept), rel=1e-9
    )


@pytest.mark.parametrize("name", UNCOUPLED)
def test_the_same_number_of_threads_gives_the_same_bits(name):
    problem = problem_of(name)
    call = {"tol": 1e-5, "random_state": 0, "n_jobs": 3}
    solver = DualSolver(parallel=True)
    assert bits(solver.solve(problem, **call)) == bits(solver.solve(problem, **call))


@pytest.mark.parametrize("name", ["crammer_singer", "weston_watkins", "softmax"])
def test_coupled_losses_have_the_same_bits_for_any_number_of_threads(name):
    problem = problem_of(name)
    one = DualSolver().solve(problem, random_state=0, n_jobs=1)
    assert bits(DualSolver().solve(problem, random_state=0, n_jobs=3)) == bits(one)


def test_no_thread_is_left_behind():
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("needs /proc")
    problem = problem_of("one_vs_rest")
    before, python = len(list(tasks.iterdir())), threading.active_count()
    DualSolver(parallel=True).solve(problem, random_state=0, n_jobs=4)
    assert len(list(tasks.iterdir())) == before and threading.active_count() == python


def test_a_cut_is_made_where_it_pays():
    small, large = make_problem("one_vs_rest"), make_problem("one_vs_rest", n=20000, n_classes=60)
    coupled = make_problem("crammer_singer", n=20000, n_classes=60)
    assert class_ranges(State(small, n_jobs=2), "auto") == 1
    assert class_ranges(State(small, n_jobs=2), True) == 2
    assert class_ranges(State(large, n_jobs=2), "auto") == 2
    assert class_ranges(State(large, n_jobs=1), "auto") == 1
    assert class_ranges(State(large, n_jobs=2), False) == 1
    assert class_ranges(State(coupled, n_jobs=2), True) == 1


def test_a_setting_that_is_none():
    with pytest.raises(ValueError, match='parallel must be "auto", True or False'):
        DualSolver(parallel="much").solve(make_problem("one_vs_rest"))
