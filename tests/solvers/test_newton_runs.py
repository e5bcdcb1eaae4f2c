"""Runs with a Newton phase: when it is chosen, and that limits, files and Ctrl-C reach into it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from polymargin import Checkpoint, DualSolver, Problem, get_loss
from polymargin.solvers.acceleration import OuterLoop
from polymargin.solvers.newton import handover, phase
from polymargin.solvers.newton.phase import NewtonPhase
from polymargin.solvers.newton.system import Hessian
from polymargin.solvers.state import State
from tests.reference.objective import Spec, dual, dual_infeasibility, primal
from tests.solvers.test_checkpoints import CrashError, crash_at, same

LOSSES = ["crammer_singer", "weston_watkins", "one_vs_rest", "top_k_alpha", "top_k_beta"]
every_loss = pytest.mark.parametrize("loss", LOSSES)


def make(loss="crammer_singer", C=30.0, n=400, d=12, dtype=np.float64, decades=2.0, intercept=1.0):
    """Overlapping classes whose features have very different scales."""
    rng = np.random.default_rng(0)
    y = np.arange(n, dtype=np.int32) % 4
    X = rng.normal(size=(n, d)) + rng.normal(size=(4, d))[y]
    X *= np.logspace(0, -decades, d)
    c = C * rng.uniform(0.5, 1.5, n)
    c[5] = 0.0
    k = 2 if loss.startswith("top_k") else None
    return Problem(X.astype(dtype), y, c, get_loss(loss, k), 4, intercept)


@pytest.fixture
def steps(monkeypatch):
    """Counts the steps of all phases."""
    seen = []
    advance = NewtonPhase.advance

    def counted(self, *arguments):
        seen.append(advance(self, *arguments))
        return seen[-1]

    monkeypatch.setattr(NewtonPhase, "advance", counted)
    return seen


def assert_certified(problem, solution):
    """What the solution says of itself is so, computed from scratch."""
    loss = problem.loss
    spec = Spec(
        np.asarray(problem.X, np.float64),
        problem.y,
        problem.c,
        loss.name,
        loss.top_k,
        problem.intercept_scaling,
        problem.n_classes,
    )
    rough = problem.rows.dtype == np.float32
    P, D = primal(spec, solution.coef, solution.intercept), dual(spec, solution.dual_coef())
    assert solution.primal == pytest.approx(P, rel=1e-5 if rough else 1e-10)
    assert solution.dual == pytest.approx(D, rel=1e-5 if rough else 1e-10)
    assert dual_infeasibility(spec, solution.dual_coef()) <= (1e-5 if rough else 1e-12)


@every_loss
def test_it_is_chosen_where_sweeps_are_slow(loss, steps):
    problem = make(loss, C=100.0, decades=2.5)
    call = {"tol": 1e-7, "max_iter": 50_000, "random_state": 0}
    sweeps = DualSolver(newton=False).solve(problem, **call)
    assert not steps
    found = DualSolver().solve(problem, **call)
    assert steps
    assert found.status == "converged" and found.gap <= 1e-7
    assert found.n_iter < sweeps.n_iter
    assert found.primal == pytest.approx(sweeps.primal, rel=2e-7)
    assert_certified(problem, found)


@every_loss
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_it_is_not_chosen_where_sweeps_are_fast(loss, tol, steps):
    problem = make(loss, C=0.1, decades=0.0)
    same(
        DualSolver().solve(problem, tol=tol, random_state=0),
        DualSolver(newton=False).solve(problem, tol=tol, random_state=0),
    )
    assert not steps


@pytest.mark.parametrize(
    "solver",
    [
        DualSolver(newton=False),
        DualSolver(certify=False),
        DualSolver(schedule="sdm"),
    ],
    ids=repr,
)
def test_it_is_never_chosen_where_it_may_not_be(solver, steps):
    solver.solve(make(), tol=1e-6, max_iter=300, random_state=0)
    assert not steps


@pytest.mark.parametrize(("fall", "due"), [(0.9, False), (0.97, False), (0.99, True), (1.0, True)])
def test_the_decay_of_the_gap_decides(fall, due):
    """From 0.2 to 1e-4 the phase should need 150 passes; sweeps 72, 250, 756 and no end of them."""
    watch = handover.Handover(State(make()), asked_for=False)
    n = len(make().visited)
    decided = [watch.is_due(n, 0.2 * fall**i, 1e-4) for i in range(40)]
    assert any(decided) == due
    assert not any(decided[: int(handover.CONSTANTS.first) - 1])


def test_nothing_is_decided_before_the_goal_is_known():
    watch = handover.Handover(State(make()), asked_for=False)
    assert not any(watch.is_due(399, 0.2, goal) for goal in [np.inf] * 50 + [0.0] * 50)


@pytest.mark.parametrize("limit", [{"widest": 12}, {"most_classes": 3}])
def test_it_is_for_dense_rows_of_moderate_size(limit, steps, monkeypatch):
    problem = make()  # 12 features, an intercept, 4 classes
    X = sparse.csr_array(problem.X)
    rows = Problem(X, problem.y, problem.c, problem.loss, 4, 1.0)
    DualSolver().solve(rows, tol=1e-6, max_iter=300, random_state=0)
    monkeypatch.setattr(handover, "CONSTANTS", replace(handover.CONSTANTS, **limit))
    DualSolver().solve(problem, tol=1e-6, max_iter=300, random_state=0)
    assert not steps
    with pytest.raises(ValueError, match=r"newton=True needs dense rows .*, not CsrRows"):
        DualSolver(newton=True).solve(rows)


@pytest.mark.parametrize("value", ["yes", 1.5, None])
def test_a_choice_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match='newton must be "auto", True or False'):
        DualSolver(newton=value).solve(make())


@pytest.mark.parametrize("other", [{"certify": False}, {"schedule": "sdm"}])
def test_it_cannot_be_had_without_certificates_nor_with_sdm(other):
    with pytest.raises(ValueError, match="newton=True needs certify=True and schedule"):
        DualSolver(newton=True, **other).solve(make())


@every_loss
@pytest.mark.parametrize("acceleration", ["auto", False])
def test_it_follows_at_once_where_it_is_asked_for(loss, acceleration, steps):
    problem = make(loss, C=1.0)
    solver = DualSolver(newton=True, acceleration=acceleration)
    found = solver.solve(problem, tol=1e-8, random_state=0)
    assert steps and found.gap <= 1e-8
    assert found.n_iter == handover.CONSTANTS.soonest + sum(
        max(1, int(np.ceil(step.passes))) for step in steps
    )
    assert_certified(problem, found)


def test_single_precision(steps):
    problem = make(dtype=np.float32)
    found = DualSolver(newton=True).solve(problem, tol=1e-4, random_state=0)
    assert steps and found.gap <= 1e-4 and found.coef.dtype == np.float32
    assert_certified(problem, found)


@every_loss
def test_a_run_goes_on_bit_for_bit(loss, tmp_path):
    problem, solver = make(loss, n=200), DualSolver(newton=True)
    call = {"tol": 1e-9, "max_iter": 1000, "random_state": 0}
    whole = solver.solve(problem, **call)
    place = Checkpoint(tmp_path / "fit.checkpoint", every=None, passes=1)
    same(solver.solve(problem, **call, checkpoint=place), whole)
    Path(place.path).unlink(missing_ok=True)
    assert whole.n_iter >= 40
    for at in (5, 12, 20, whole.n_iter // 2, whole.n_iter - 1):
        with pytest.raises(CrashError):
            solver.solve(problem, **call, checkpoint=place, progress=crash_at(at))
    same(solver.solve(problem, **call, checkpoint=place), whole)


def test_a_run_that_reached_its_limit_goes_on(tmp_path, steps):
    problem, solver = make(n=200), DualSolver(newton=True)
    place = Checkpoint(tmp_path / "fit.checkpoint")
    early = solver.solve(problem, tol=1e-9, max_iter=25, random_state=0, checkpoint=place)
    assert steps and early.n_iter == 25 and early.status == "max_iter"
    assert early.gap > 1e-9
    assert_certified(problem, early)
    late = solver.solve(problem, tol=1e-9, max_iter=1000, random_state=0, checkpoint=place)
    whole = solver.solve(problem, tol=1e-9, max_iter=1000, random_state=0)
    assert late.coef.tobytes() == whole.coef.tobytes()


@pytest.mark.parametrize("where", ["progress", "product", "polish", "dual"])
def test_an_interrupt_gives_a_certified_model(where, monkeypatch):
    problem, countdown = make(), [6]

    def interrupt(*_):
        countdown[0] -= 1
        if countdown[0] == 0:
            raise KeyboardInterrupt

    progress = None
    if where == "progress":
        countdown[0] = 14
        progress = interrupt
    else:
        owner, name = {
            "product": (Hessian, "times"),
            "polish": (NewtonPhase, "_dual_value"),
            "dual": (NewtonPhase, "_set_dual"),
        }[where]
        countdown[0] = 3 if where == "dual" else 6
        original = getattr(owner, name)

        def then(self, *arguments):
            if where == "dual":  # between the dual and its weights
                W = self._state.W.copy()
                original(self, *arguments)
                if countdown[0] == 1:
                    self._state.W[:] = W
                return interrupt()
            interrupt()
            return original(self, *arguments)

        monkeypatch.setattr(owner, name, then)
    solver = DualSolver(newton=True)
    found = solver.solve(problem, tol=1e-9, random_state=0, progress=progress)
    assert countdown[0] <= 0
    assert found.status == "interrupted"
    assert_certified(problem, found)


def test_a_time_limit_ends_a_step_early(steps):
    solver = DualSolver(newton=True, time_limit=0.2)
    found = solver.solve(make(n=2000), tol=1e-15, max_iter=10**6, random_state=0)
    assert steps and found.status == "time_limit"
    assert found.history["time"][-1] < 2.0


def test_a_path_leaves_the_phase_and_comes_back_to_it(steps, monkeypatch):
    problem, kappas = make(C=1.0, n=100), []
    begin_again = OuterLoop.begin_again

    def noted(self, kappa):
        kappas.append(self._state.kappa)
        begin_again(self, kappa)

    monkeypatch.setattr(OuterLoop, "begin_again", noted)
    call = {"tol": 1e-7, "random_state": 0}
    for C, found in zip(
        (1.0, 30.0), DualSolver(newton=True).solve_path(problem, (1.0, 30.0), **call), strict=True
    ):
        scaled = problem.with_cost(C * problem.c)
        assert steps and found.gap <= 1e-7
        steps.clear()
        assert_certified(scaled, found)
    assert len(kappas) == 2 and min(kappas) > 0  # leaving the phase, and for the other C


@pytest.mark.parametrize("acceleration", ["auto", False])
def test_sweeps_go_on_where_the_phase_gets_no_further(acceleration, monkeypatch, steps):
    monkeypatch.setattr(phase, "CONSTANTS", replace(phase.CONSTANTS, patience=20.0, fall=0.0))
    problem = make(C=0.3, decades=1.0)
    solver = DualSolver(newton=True, acceleration=acceleration)
    found = solver.solve(problem, tol=1e-9, max_iter=100_000, random_state=0)
    assert 0 < sum(step.passes for step in steps) < 60
    assert found.gap <= 1e-9
    assert_certified(problem, found)
