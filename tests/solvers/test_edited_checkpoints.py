"""An edited checkpoint with valid digests is refused, or leads to a right model and certificate."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest

from polymargin import Checkpoint, CheckpointError, DualSolver, Problem
from polymargin.data import BlockRows
from polymargin.solvers import audit
from tests.data.test_blocks import memory_for, stored
from tests.estimators import LOSS_PARAMS
from tests.solvers import edited
from tests.solvers.test_checkpoints import CrashError, crash_at, make, same
from tests.solvers.test_partitions import ENGINES, blobs, check_certificate, fitted, source
from tests.solvers.test_path_checkpoints import crash_after

pytestmark = pytest.mark.filterwarnings("ignore")

CASES = {
    "dense": ({}, {}, 1e-5),
    "sparse float32": ({"data": "sparse", "dtype": np.float32}, {}, 1e-4),
    "accelerated": ({"C": 50.0}, {"acceleration": True}, 1e-4),
    "single": ({"C": 5.0}, {"precision": "single"}, 1e-7),
    "newton": ({"C": 50.0}, {"newton": True}, 1e-9),
    "sdm": ({"data": "sparse"}, {"schedule": "sdm"}, 1e-5),
    "not accelerated": ({}, {"acceleration": False}, 1e-5),
    **{p["loss"]: ({"loss": p["loss"]}, {}, 1e-4) for p in LOSS_PARAMS[1:]},
}


def crashed(made, chosen, tol, path):
    """What is in the checkpoint of a run that was killed, and how to go on from what is there.

    `made` makes the problem anew: rows on disk are changed by a run.
    """
    solver, place = DualSolver(**chosen), Checkpoint(path, every=None, passes=1)
    call = {"tol": tol, "random_state": 0, "max_iter": 40}

    def resume(**more):
        return solver.solve(made(), **call, checkpoint=place, **more)

    whole = solver.solve(made(), **call)
    with pytest.raises(CrashError):
        resume(progress=crash_at(max(2, min(14, whole.n_iter - 1))))
    saved = edited.read(path)
    edited.write(path, *saved)
    same(resume(), whole)  # written again, it is as good as it was
    return saved, resume


def outcomes(saved, path, go_on, check, count, seed=0):
    """What comes of so many edits, each of the checkpoint as it was."""
    seen = Counter()
    for i in range(count):
        manifest, arrays = copy.deepcopy(saved[0]), list(saved[1])
        what = edited.edit(np.random.default_rng([seed, i]), manifest, arrays)
        edited.write(path, manifest, arrays)
        try:
            found = go_on()
        except CheckpointError:
            seen["refused"] += 1
            continue
        except Exception as error:
            raise AssertionError(f"edit {i}: {what} led to {error!r}") from error
        try:
            check(found)
        except AssertionError as error:
            raise AssertionError(f"edit {i}: {what} led to {error}") from error
        seen["right"] += 1
    return seen


def check_all(case, tmp_path, count):
    about, chosen, tol = CASES[case]
    problem, path = make(**{"n": 120, **about}), tmp_path / "fit"
    saved, resume = crashed(lambda: problem, chosen, tol, path)
    return outcomes(saved, path, resume, lambda found: edited.check(found, problem), count)


@pytest.mark.parametrize("case", CASES)
def test_edits_are_refused_or_harmless(case, tmp_path):
    seen = check_all(case, tmp_path, 25)
    assert seen["refused"] >= 3 and seen.total() == 25


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_many_edits_are_refused_or_harmless(case, tmp_path):
    assert check_all(case, tmp_path, 3000).total() == 3000


@pytest.mark.parametrize(("count", "dense"), [(20, True), (20, False)])
def test_edits_of_runs_on_data_on_disk(tmp_path, count, dense):
    problem = make("dense" if dense else "sparse", n=400)
    path, memory = tmp_path / "fit", memory_for(problem.X, 12)
    X, k = stored(tmp_path, problem.X), problem.n_classes

    def on_disk():
        return Problem(BlockRows(X, memory, k), problem.y, problem.c, problem.loss, k, 1.0)

    saved, resume = crashed(on_disk, {}, 1e-3, path)
    seen = outcomes(saved, path, resume, lambda found: edited.check(found, problem), count)
    assert seen["refused"] >= 3


@ENGINES
def test_edits_of_partitioned_runs(tmp_path, solver):
    X, y = blobs(150, 8)
    path, parts = tmp_path / "fit", source(X, y, 3)
    place = Checkpoint(path, every=None, passes=1)
    params = {"C": 0.1, "checkpoint": place, "tol": 1e-3, "solver": solver}
    fitted(parts, **params, max_iter=4)
    saved = edited.read(path)

    def check(clf):
        clf.tol = max(clf.tol, clf.dual_gap_)
        check_certificate(clf, X, y)

    def go_on():
        return fitted(source(X, y, 3), **params, max_iter=40)

    seen = outcomes(saved, path, go_on, check, 20)
    assert seen["refused"] >= 3


def test_edits_of_paths(tmp_path, monkeypatch):
    problem, path = make(n=100), tmp_path / "path"
    place, Cs = Checkpoint(path, every=None, passes=1), [0.1, 0.3, 1.0]
    call = {"tol": 1e-3, "random_state": 0, "checkpoint": place, "max_iter": 60}
    first = len(list(DualSolver().solve_path(problem, Cs[:2], tol=1e-3, random_state=0)))
    assert first == 2
    with monkeypatch.context() as patch:
        crash_after(patch, 12)
        with pytest.raises(CrashError):
            list(DualSolver().solve_path(problem, Cs, **call))
    saved = edited.read(path)

    def check(found):
        for C, solution in zip(Cs, found, strict=True):
            edited.check(solution, problem.with_cost(C * problem.c))

    seen = outcomes(
        saved, path, lambda: list(DualSolver().solve_path(problem, Cs, **call)), check, 40
    )
    assert seen["refused"] >= 3


def forged(tmp_path, change):
    """What a run says that goes on from a checkpoint in which a forger has changed something."""
    problem, path = make(n=120, C=1.0), tmp_path / "fit"
    (manifest, arrays), resume = crashed(lambda: problem, {"acceleration": False}, 1e-6, path)
    state = dict(manifest["state"]["$dict"])
    change(state, arrays)
    manifest["state"] = {"$dict": [[key, value] for key, value in state.items()]}
    edited.write(path, manifest, arrays)
    return resume


def test_a_better_certificate_is_not_believed(tmp_path):
    def change(state, arrays):
        best = state["best"]["$dict"]
        state["best"] = {
            "$dict": [["primal", 1.0] if pair[0] == "primal" else pair for pair in best]
        }
        state["best"]["$dict"][1][1] = 1.0

    with pytest.raises(CheckpointError, match=r"claims objectives of 1 and 1 for a model that has"):
        forged(tmp_path, change)()


def test_an_infeasible_dual_is_refused(tmp_path):
    """Twice the dual is twice the sum in the dual objective: above the primal, or a false gap."""

    def change(state, arrays):
        for i, array in enumerate(arrays):
            if array.dtype == np.float64 and array.ndim == 1 and array.size and array.min() >= 0:
                arrays[i] = 10 * array

    with pytest.raises(CheckpointError, match="makes no sense"):
        forged(tmp_path, change)()


def test_what_is_checked_costs_a_fit_nothing(tmp_path, monkeypatch):
    """Only a run that goes on from a file looks at what the file says."""
    calls = []
    monkeypatch.setattr(audit, "check_dual", lambda *what: calls.append(what))
    DualSolver().solve(make(n=60), tol=1e-2, checkpoint=Checkpoint(tmp_path / "fit", passes=1))
    assert calls == []
