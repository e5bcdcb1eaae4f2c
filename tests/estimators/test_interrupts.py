"""Ctrl-C at any instruction: what it comes into is as it was, or whole, and goes on working."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import get_config, set_config

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
    StreamSolver,
)
from polymargin.estimators._threads import alone
from polymargin.solvers import stream
from polymargin.solvers.engines.machine import LaRank
from polymargin.solvers.state import State
from tests.estimators import make_problem
from tests.estimators.ctrl_c import Branches, CtrlC, points
from tests.estimators.interrupted import SCENARIOS, attempts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
ROOT = Path(__file__).resolve().parents[2]
FEW = {"probability", "cv", "kernel_cv", "path", "checkpoint", "linear_long", "blocks"}  # long ones


@pytest.mark.parametrize("name", SCENARIOS)
def test_ctrl_c_at_some_instructions(name):
    total, tried, wrong = attempts(name, 8 if name in FEW else 20)
    assert tried > 0 and total > 1000
    assert wrong == {}


def test_settings_of_scikit_learn_that_ctrl_c_left_changed_are_put_back():
    class Trained:
        @alone
        def fit(self):
            set_config(skip_parameter_validation=True)
            raise KeyboardInterrupt

    before = get_config()
    with pytest.raises(KeyboardInterrupt):
        Trained().fit()
    found = get_config()
    set_config(**before)
    assert found == before


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_ctrl_c_at_every_instruction(name):
    """At every one where it makes a difference; of the longest calls, at many."""
    _, tried, wrong = attempts(name, 4000, seed=1)
    assert tried > 500
    assert wrong == {}


def test_the_interpreter_is_interrupted_at_the_chosen_instruction():
    """Every point of a small function is hit, and what was done before it is done."""

    def call():
        for i in range(3):
            done.append(i)
            done.copy()

    done = []
    total, found = points(call)
    assert done == [0, 1, 2] and 6 <= len(found) <= total
    lengths = set()
    for at in found:
        done = []
        assert CtrlC(at).during(call)
        lengths.add(len(done))
    assert lengths >= {1, 2, 3}
    done = []
    assert not CtrlC(total + 1000).during(call)
    assert done == [0, 1, 2]


HALF_DONE = """
from tests.estimators import interrupted as its

def prepare(folder):
    done, file = {}, folder / "file"
    file.write_text("old")

    def call():
        done["one"] = int("1")
        done["two"] = int("2")
        file.write_text("new")

    def check():
        text = file.read_text()
        file.unlink()
        assert len(done) != 1, "half done"
        assert text in ("old", "new"), "half written"

    return its.Attempt(call, check)

with its.prepared(prepare) as (_, one):
    _, found = its.points(one.call)
made = its.branches(prepare, found)
anew = {at: what for at in found if (what := its.attempt(prepare, at))}
copied = {at: what for at, what in anew.items() if at not in made.left}
assert made.said == copied, (made.said, anew)
assert sum("half done" in what for what in copied.values()) >= 1
assert len(anew) < len(found) and made.left == []
"""


@pytest.mark.skipif(not Branches.can_be(), reason="no copies of processes")
def test_copies_of_the_process_say_what_calls_made_anew_do():
    """In a process of one thread; files that are open go on as copies, too."""
    one = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", HALF_DONE]
    done = subprocess.run(command, cwd=ROOT, env=one, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


# --- one by one ---------------------------------------------------------------------------


class Stopped(DualSolver):
    """One that is interrupted before it has a model."""

    def solve(self, problem, **options):
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, KernelMulticlassSVC])
def test_a_fit_without_a_model_changes_nothing(kind):
    X, y = make_problem()
    clf = kind(random_state=0).fit(X, y)
    before, scores = dict(vars(clf)), clf.decision_function(X)
    clf.solver = before["solver"] = Stopped()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(10 * X[:, :5], y)
    assert vars(clf) == before
    np.testing.assert_array_equal(clf.decision_function(X), scores)


def test_what_half_a_step_left_in_the_weights_does_not_count(monkeypatch):
    """KeyboardInterrupt comes out, and the certificate is that of the dual's own weights."""
    X, y = make_problem()
    sweep = State.sweep

    def interrupted(self, *arguments, **options):
        sweep(self, *arguments, **options)
        self.W[:] = np.inf
        raise KeyboardInterrupt

    clf = LinearMulticlassSVC(random_state=0, store_dual=True)
    with monkeypatch.context() as patch:
        patch.setattr(State, "sweep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, y)
    np.testing.assert_allclose(clf.coef_, clf.dual_coef_ @ X, rtol=1e-9)
    assert 0 < clf.dual_gap_ < 1
    assert clf.fit(X, y).dual_gap_ <= clf.tol


def test_a_stream_is_whole_when_its_arrays_could_not_grow(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 4)), np.arange(200)  # of so many classes that arrays grow
    clf = LinearMulticlassSVC(stream=StreamSolver(average=True), random_state=0)
    clf.partial_fit(X[:5], y[:5])
    made, calls = stream.aligned_zeros, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:  # the sums for the averages, when there is room for the weights
            raise KeyboardInterrupt
        return made(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(stream, "aligned_zeros", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[5:], y[5:])
    seen = clf.n_samples_seen_
    assert 5 <= seen < 200 and clf.predict(X).shape == (200,)
    clf.partial_fit(X[seen:], y[seen:])
    whole = LinearMulticlassSVC(stream=StreamSolver(average=True), random_state=0)
    np.testing.assert_array_equal(clf.coef_, whole.partial_fit(X, y).coef_)


def test_a_class_that_came_with_an_interrupt_keeps_its_code(monkeypatch):
    """What LaRank has learned of a class stays that of its label, whatever comes next."""
    X, y = make_problem()
    clf = LaRankClassifier(random_state=0).partial_fit(X[y < 2], y[y < 2])
    epoch = LaRank.epoch

    def interrupted(self, *arguments):
        epoch(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LaRank, "epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X[y == 3], y[y == 3])
    assert clf.classes_.tolist() == [0, 1, 3]
    clf.partial_fit(X[y == 2], y[y == 2])
    assert clf.classes_.tolist() == [0, 1, 2, 3]
    assert clf.score(X, y) > 0.5
