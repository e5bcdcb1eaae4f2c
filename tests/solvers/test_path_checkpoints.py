"""Checkpoints of paths over C: a path that was killed ends with the models of one that was not."""

from __future__ import annotations

import numpy as np
import pytest

from polymargin import Checkpoint, CheckpointError, DualSolver, regularization_path
from polymargin.solvers.checkpoint import CheckpointFile
from tests.estimators import make_problem, make_sparse_problem
from tests.solvers.test_checkpoints import CrashError, make, same

CS = [0.01, 0.3, 10.0, 1.0]  # not in order: the outer loop of the third goes on in the fourth


def crash_after(monkeypatch, n_saves):
    """Let the process "die" just after a checkpoint has been written."""
    save, left = CheckpointFile.save, [n_saves]

    def save_and_crash(self, state):
        save(self, state)
        left[0] -= 1
        if left[0] == 0:
            raise CrashError

    monkeypatch.setattr(CheckpointFile, "save", save_and_crash)


@pytest.mark.parametrize("data", ["dense", "sparse"])
def test_a_path_goes_on_bit_for_bit(tmp_path, monkeypatch, data):
    problem = make(data, n=150)
    place = Checkpoint(tmp_path / "path", every=None, passes=1)
    whole = list(DualSolver().solve_path(problem, CS, tol=1e-3, random_state=0))
    n_passes = sum(solution.n_iter for solution in whole)
    crashes = 0
    while True:  # dies again and again, a few passes further each time
        with monkeypatch.context() as patch:
            crash_after(patch, 11)
            try:
                found = list(
                    DualSolver().solve_path(problem, CS, tol=1e-3, random_state=0, checkpoint=place)
                )
                break
            except CrashError:
                crashes += 1
    assert crashes >= min(4, n_passes // 12)
    for one, other in zip(whole, found, strict=True):
        same(one, other)
    assert not (tmp_path / "path").exists()


def test_the_models_of_the_function_are_the_same(tmp_path, monkeypatch):
    X, y = make_sparse_problem(200, 60, 10)
    settings = {"Cs": [0.1, 1.0, 3.0], "random_state": 3, "tol": 1e-4}
    whole = regularization_path(X, y, **settings)
    place = Checkpoint(tmp_path / "path", every=None, passes=1)
    with monkeypatch.context() as patch:
        crash_after(patch, int(whole.n_iters[0]) + 2)
        with pytest.raises(CrashError):
            regularization_path(X, y, **settings, checkpoint=place)
    assert (tmp_path / "path").exists()
    again = regularization_path(X, y, **settings, checkpoint=place)
    assert again.coefs.tobytes() == whole.coefs.tobytes()
    np.testing.assert_array_equal(again.n_iters, whole.n_iters)
    assert not (tmp_path / "path").exists()


@pytest.mark.parametrize("change", ["grid", "data", "max_iter"])
def test_something_else_is_refused(tmp_path, monkeypatch, change):
    X, y = make_problem(100, 5, 3)
    settings = {"Cs": [0.1, 1.0], "random_state": 0, "max_iter": 50}
    place = Checkpoint(tmp_path / "path", every=None, passes=1)
    with monkeypatch.context() as patch:
        crash_after(patch, 2)
        with pytest.raises(CrashError):
            regularization_path(X, y, **settings, checkpoint=place)
    if change == "grid":
        settings["Cs"] = [0.1, 2.0]
    elif change == "data":
        X = X + 1e-9
    else:
        settings["max_iter"] = 40
    name = {"grid": "Cs", "data": "X", "max_iter": "max_iter"}[change]
    with pytest.raises(CheckpointError, match=name):
        regularization_path(X, y, **settings, checkpoint=place)


def test_without_a_seed_the_path_goes_on_from_the_file(tmp_path, monkeypatch):
    X, y = make_problem(100, 5, 3)
    place = Checkpoint(tmp_path / "path", every=None, passes=1)
    with monkeypatch.context() as patch:
        crash_after(patch, 3)
        with pytest.raises(CrashError):
            regularization_path(X, y, [0.1, 1.0], checkpoint=place)
    path = regularization_path(X, y, [0.1, 1.0], checkpoint=place)
    assert (path.gaps <= 1e-3).all()
