"""One object and several threads: nothing crashes, nothing is seen half done, nothing lost."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from polymargin import LaRankClassifier, LinearMulticlassSVC
from polymargin.core import core
from polymargin.data import as_rows
from polymargin.losses import get_loss
from polymargin.solvers.state import aligned_zeros
from tests.estimators import make_problem
from tests.estimators.hammer import OBJECTS

ROOT = Path(__file__).resolve().parents[2]


def hammer(name: str, count: int) -> None:
    """Run the threads in a process of their own, which may crash."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.estimators.hammer", name, str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["errors"] == {}
    assert all(found["did"][method] >= count for method in ("predict", "look", "copies", "save"))
    if "learned" in found:
        seen, given = found["learned"]
        assert seen == given


@pytest.mark.parametrize("name", ["stream", "stream_and_fit", "larank_csr", "linear"])
def test_threads_that_share_an_object_see_it_whole(name):
    hammer(name, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTS)
def test_threads_that_share_an_object_for_long(name):
    hammer(name, 1000)


def test_an_engine_refuses_a_second_thread():
    """Whoever uses compiled objects directly gets an error, not a crash."""
    X, y = np.random.default_rng(0).standard_normal((20_000, 20)), np.zeros(20_000, np.int32)
    gap, threshold = np.zeros(len(y)), np.zeros(len(y))
    rows = as_rows(X)
    engine = core.linear_engine(
        rows.compiled,
        get_loss("weston_watkins").compiled,
        intercept_scaling=0.0,
        n_classes=50,
        y=y,
        c=np.ones(len(y)),
        squared_norms=rows.squared_norms,
        threshold=threshold,
        gap=gap,
    )
    lanes = core.vector_bytes // 8
    W = aligned_zeros((20, -(-50 // lanes) * lanes), np.float64)
    order = np.arange(len(y))
    refusals = []

    def use(method, *arguments):
        try:
            method(*arguments)
        except RuntimeError as error:
            refusals.append(str(error))

    def work():
        for _ in range(200):
            use(engine.sweep, W, order, "rows", 1.0, 1.0, 1)
            if refusals:
                return

    working = threading.Thread(target=work)
    working.start()
    while working.is_alive():
        use(engine.dual_sum)
    working.join()
    assert "another thread" in refusals[0]
    assert np.isfinite(engine.dual_sum())


def test_predictions_while_a_class_appears_are_of_the_classes_that_were():
    """A thread that has begun to look goes on with the labels of then."""
    X, y = make_problem()
    clf = LinearMulticlassSVC().partial_fit(X[y < 2], y[y < 2])
    then, scores = copy.copy(clf), clf.decision_function(X)
    clf.partial_fit(X[y == 3], y[y == 3])
    assert clf.decision_function(X).shape == (len(X), 3)
    assert then.classes_.tolist() == [0, 1] and then.decision_function(X).shape == scores.shape
    assert then.coef_.shape[0] == 1 and set(then.predict(X)) <= {0, 1}


def test_learning_in_the_middle_of_learning_is_refused():
    X, y = make_problem()
    clf = LinearMulticlassSVC().partial_fit(X, y)
    learn = clf._stream.model.learn

    def interrupted(*examples):
        clf.partial_fit(X, y)

    clf._stream.model.learn = interrupted
    with pytest.raises(RuntimeError, match="in the middle of another partial_fit"):
        clf.partial_fit(X, y)
    clf._stream.model.learn = learn
    assert clf.partial_fit(X, y).n_samples_seen_ == 2 * len(y)


def test_shallow_copies_of_a_machine_do_not_mix_up_their_classes():
    X, y = make_problem()
    clf = LaRankClassifier(random_state=0).partial_fit(X[y < 2], y[y < 2])
    other = copy.copy(clf)
    other.partial_fit(X[y == 2], y[y == 2])
    with pytest.raises(ValueError, match="shallow copy"):
        clf.partial_fit(X[y == 3], y[y == 3])
    deep = pickle.loads(pickle.dumps(other)).partial_fit(X, y)
    assert deep.classes_.tolist() == [0, 1, 2, 3] and other.classes_.tolist() == [0, 1, 2]


def fitted(C: float) -> LinearMulticlassSVC:
    X, y = make_problem(600, 30, 7, seed=4)
    return LinearMulticlassSVC(C=C, tol=1e-4, random_state=0).fit(X, y)


def test_fits_in_many_threads_find_what_one_alone_finds():
    """With the interpreter's lock or, in a free-threaded interpreter, without."""
    values = [0.01 * 1.5**k for k in range(8)]
    alone = [fitted(C) for C in values]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(fitted, values * 4))
    for clf, C in zip(together, values * 4, strict=True):
        same = alone[values.index(C)]
        np.testing.assert_array_equal(clf.coef_, same.coef_)
        assert clf.n_iter_ == same.n_iter_ and clf.dual_gap_ == same.dual_gap_


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded interpreter"
)
def test_the_lock_of_the_interpreter_stays_off():
    command = "import polymargin, sys; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-W", "error", "-c", command], cwd=ROOT, check=True)
