"""Checkpoints: a fit that goes on is the fit that was never interrupted, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polymargin import (
    Checkpoint,
    CheckpointError,
    DualSolver,
    LinearMulticlassSVC,
    Problem,
    get_loss,
)
from polymargin.solvers.checkpoint import FORMAT, CheckpointFile
from polymargin.storage import Archive, Format, write_archive
from tests.estimators import LOSS_PARAMS, loss_id, make_problem, make_sparse_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class CrashError(Exception):
    """Ends a run between two passes."""


def make(data="dense", loss="crammer_singer", C=1.0, dtype=np.float64, n=300):
    X, y = make_problem(n, 12, 4) if data == "dense" else make_sparse_problem(n, 60, 40)
    y = np.unique(y, return_inverse=True)[1].astype(np.int32)
    k = 2 if loss.startswith("top_k") else None
    c = C * np.random.default_rng(0).uniform(0.5, 1.5, n)
    return Problem(X.astype(dtype), y, c, get_loss(loss, k), int(y.max()) + 1, 1.0)


def same(one, other):
    """Two solutions agree in everything but the clock."""
    for name in ("coef", "intercept"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(one.block, name), getattr(other.block, name))
    assert (one.n_iter, one.status) == (other.n_iter, other.status)
    np.testing.assert_array_equal((one.primal, one.dual), (other.primal, other.dual))
    for name in set(one.history) - {"time"}:
        np.testing.assert_array_equal(one.history[name], other.history[name])


def crash_at(n_passes):
    def progress(record):
        if record["pass"] >= n_passes:
            raise CrashError

    return progress


CASES = {
    "dense": ({}, {}, {}),
    "sparse": ({"data": "sparse"}, {}, {}),
    "float32": ({"dtype": np.float32}, {}, {"tol": 1e-4}),
    "sparse float32": ({"data": "sparse", "dtype": np.float32}, {}, {"tol": 1e-4}),
    "accelerated": ({"C": 50.0}, {"acceleration": True}, {}),
    "accelerated float32": ({"C": 50.0, "dtype": np.float32}, {}, {"tol": 1e-3}),
    "kappa grows": ({"C": 50.0, "n": 900}, {}, {}),
    "not shrunk": ({}, {"shrinking": False, "acceleration": False}, {}),
    "in order": ({}, {"shuffle": False}, {}),
    "blocked": ({}, {"blocked": True}, {}),
    "ranges of classes": (
        {"loss": "one_vs_rest", "data": "sparse"},
        {"parallel": True},
        {"n_jobs": 2},
    ),
    "sdm": ({"data": "sparse"}, {"schedule": "sdm"}, {}),
    "sdm, weston_watkins": ({"loss": "weston_watkins"}, {"schedule": "sdm", "cooling": None}, {}),
    "uncertified": ({"C": 5.0}, {"certify": False}, {"max_iter": 30}),
    **{p["loss"]: ({"loss": p["loss"], "data": "sparse"}, {}, {}) for p in LOSS_PARAMS[1:]},
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_goes_on_bit_for_bit(case, tmp_path):
    about, chosen, limits = CASES[case]
    problem, solver = make(**about), DualSolver(**chosen)
    call = {"tol": 1e-5, "max_iter": 60, "random_state": 0, **limits}
    whole = solver.solve(problem, **call)
    place = Checkpoint(tmp_path / "fit.checkpoint", every=None, passes=1)
    saved = solver.solve(problem, **call, checkpoint=place)
    same(saved, whole)  # saving does not disturb
    Path(place.path).unlink(missing_ok=True)
    assert whole.n_iter >= 6
    for at in sorted({2, 5, whole.n_iter // 2, whole.n_iter - 1}):  # crashes one after the other
        with pytest.raises(CrashError):
            solver.solve(problem, **call, checkpoint=place, progress=crash_at(at))
        assert Path(place.path).exists()
    same(solver.solve(problem, **call, checkpoint=place), whole)


def test_a_warm_start_goes_on_bit_for_bit(tmp_path):
    first = DualSolver().solve(make(C=0.3), tol=1e-4, random_state=0)
    problem, place = make(), Checkpoint(tmp_path / "fit", passes=1)
    call = {"tol": 1e-6, "random_state": 0, "start": first, "max_iter": 40}
    with pytest.raises(CrashError):
        DualSolver().solve(problem, **call, checkpoint=place, progress=crash_at(4))
    with pytest.raises(CheckpointError, match="warm start"):
        DualSolver().solve(problem, tol=1e-6, random_state=0, checkpoint=place)
    same(DualSolver().solve(problem, **call, checkpoint=place), DualSolver().solve(problem, **call))


@pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)
def test_a_fit_that_reached_its_limit_goes_on(params, tmp_path):
    X, y = make_problem(300)
    place = tmp_path / "fit"
    clf = LinearMulticlassSVC(**params, C=0.1, tol=1e-4, max_iter=5, random_state=0)
    clf.set_params(checkpoint=str(place)).fit(X, y)
    assert clf.n_iter_ == 5 and place.exists()
    again = clone(clf).fit(X, y)  # nothing to do: the same model
    assert again.coef_.tobytes() == clf.coef_.tobytes()
    clf.set_params(max_iter=3000).fit(X, y)
    assert not place.exists() and clf.dual_gap_ <= 1e-4
    whole = clone(clf).set_params(checkpoint=None).fit(X, y)
    assert whole.coef_.tobytes() == clf.coef_.tobytes()
    np.testing.assert_array_equal(whole.history_["pass"], clf.history_["pass"])
    assert os.listdir(tmp_path) == []


def test_a_time_limit_counts_from_this_call(tmp_path):
    problem, place = make(C=100.0), Checkpoint(tmp_path / "fit", passes=1)
    solver = DualSolver(time_limit=1e-9)
    with pytest.raises(CrashError):
        DualSolver().solve(
            problem, tol=1e-9, random_state=0, checkpoint=place, progress=crash_at(20)
        )
    stopped = solver.solve(problem, tol=1e-9, random_state=0, checkpoint=place)
    assert stopped.status == "time_limit" and Path(place.path).exists()
    assert stopped.n_iter >= 20  # from where the other stopped
    later = DualSolver(time_limit=600).solve(
        problem, tol=1e-9, max_iter=25, random_state=0, checkpoint=place
    )
    assert later.n_iter == 25


def test_without_a_random_state_any_run_goes_on(tmp_path):
    problem, place = make(C=0.1), Checkpoint(tmp_path / "fit", passes=1)
    with pytest.raises(CrashError):
        DualSolver().solve(problem, tol=1e-4, checkpoint=place, progress=crash_at(3))
    assert DualSolver().solve(problem, tol=1e-4, checkpoint=place).status == "converged"
    assert not Path(place.path).exists()


def test_checkpoints_by_time(tmp_path):
    problem, path = make(), tmp_path / "fit"
    kept = {}
    for every in (0.0, 3600.0):
        with pytest.raises(CrashError):
            DualSolver().solve(
                problem, tol=1e-6, checkpoint=Checkpoint(path, every=every), progress=crash_at(4)
            )
        kept[every] = path.exists()
        path.unlink(missing_ok=True)
    assert kept == {0.0: True, 3600.0: False}


# --- killed at random moments --------------------------------------------------------------------

DRIVER = """
import os, random, signal, sys, time, warnings
import numpy as np
from polymargin import Checkpoint, LinearMulticlassSVC

folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
y = rng.integers(0, 30, 3000)
X = (rng.standard_normal((30, 40))[y] + 2 * rng.standard_normal((3000, 40))).astype(np.float32)

def fit(name, **kwargs):
    clf = LinearMulticlassSVC(C=0.3, tol=1e-9, max_iter=80, random_state=0, **kwargs).fit(X, y)
    np.save(f"{folder}/{name}.npy", np.column_stack([clf.coef_, clf.intercept_]))

begin = time.perf_counter()
fit("whole")
length = time.perf_counter() - begin
place = Checkpoint(f"{folder}/fit.checkpoint", every=None, passes=2)
random.seed(seed)
killed = finished = went_on = 0
span = 0.4 * length
while killed < kills or finished == 0:
    went_on += os.path.exists(place.path)
    child = os.fork()
    if child == 0:
        fit("resumed", checkpoint=place)
        os._exit(0)
    if killed < kills:
        time.sleep(random.uniform(0, span))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        killed += 1
        if not os.path.exists(place.path):  # too early: give it more time
            span *= 1.5
        continue
    assert os.WEXITSTATUS(status) == 0, status
    finished += 1
    left = [name for name in os.listdir(folder) if "checkpoint" in name]
    a, b = (np.load(f"{folder}/{name}.npy") for name in ("whole", "resumed"))
    # after max_iter passes the last checkpoint stays, to go on from
    assert a.tobytes() == b.tobytes(), "other coefficients"
    for name in left:
        os.unlink(f"{folder}/{name}")
print(killed, finished, went_on)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")
def test_killed_at_random_moments(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(DRIVER), str(tmp_path), "24", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    killed, finished, went_on = map(int, done.stdout.split())
    assert killed >= 20 and finished >= 1
    assert went_on >= 5  # it was not only killed before the first checkpoint


# --- what is refused -----------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path):
    """A classifier, data, and the checkpoint of an interrupted fit."""
    X, y = make_problem(200)
    place = tmp_path / "fit"
    clf = LinearMulticlassSVC(C=0.1, tol=1e-4, max_iter=4, random_state=0)
    clf.set_params(checkpoint=place).fit(X, y)
    assert place.exists()
    return clf.set_params(max_iter=1000), X, y, place


def test_damage_is_noticed(stopped):
    clf, X, y, place = stopped
    whole = place.read_bytes()
    rng = np.random.default_rng(0)
    for length in [0, 1, 21, 22, 60, *rng.integers(0, len(whole), 20), len(whole) - 1]:
        place.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"damaged or truncated|not a checkpoint"):
            clf.fit(X, y)
    for at in rng.integers(30, len(whole), 40):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.integers(8)
        place.write_bytes(changed)
        with pytest.raises(CheckpointError, match="damaged or truncated"):
            clf.fit(X, y)
    place.write_bytes(whole + b"more")
    with pytest.raises(CheckpointError, match="damaged or truncated"):
        clf.fit(X, y)
    place.write_bytes(whole)
    clf.fit(X, y)


def test_foreign_files_are_refused_and_kept(stopped):
    clf, X, y, place = stopped
    for content in (b"", b"my thesis\n", b"PK\x03\x04" + bytes(500)):
        place.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a checkpoint of polymargin"):
            clf.fit(X, y)
        assert place.read_bytes() == content


def test_other_formats_are_refused(stopped):
    clf, X, y, place = stopped
    later = Format(FORMAT.name, FORMAT.version + 1)
    write_archive(place, later, {"made_for": {}, "state": None}, [np.arange(3)])
    with pytest.raises(CheckpointError, match=rf"format {later.version}.*update polymargin"):
        clf.fit(X, y)
    place.write_bytes(b"polymargin checkpoint 0001 " + b"0" * 64 + b"\nPK")
    with pytest.raises(CheckpointError, match=r"format 1, of an earlier polymargin.*remove"):
        clf.fit(X, y)
    for sealed in (True, False):  # another kind of archive, as of before there were seals
        write_archive(place, Format("polymargin-model", 1), {"model": None}, [np.arange(3)])
        if not sealed:
            content = place.read_bytes()
            end = content.index(b"PK\5\6") + 20
            place.write_bytes(content[:end] + b"\0\0")
        with pytest.raises(CheckpointError, match="not a checkpoint of polymargin"):
            clf.fit(X, y)


def test_a_checkpoint_is_plain_arrays(stopped):
    *_, place = stopped
    with np.load(place, allow_pickle=False) as plain, Archive(place, FORMAT) as archive:
        names = list(archive.manifest["arrays"])
        for name in names:  # a history has NaN
            np.testing.assert_array_equal(plain[name], archive.array(name))
        assert all(plain[name].dtype != object for name in names)
        state = dict(archive.manifest["state"]["$dict"])
    assert {"engine", "history", "forecast"} <= set(state) and state["n_iter"] == 4


CHANGES = {
    "C": ({"C": 0.2}, "C, sample_weight or class_weight"),
    "class_weight": ({"class_weight": {0: 2.0}}, "C, sample_weight or class_weight"),
    "loss": ({"loss": "weston_watkins"}, "loss"),
    "intercept": ({"fit_intercept": False}, "intercept"),
    "tol": ({"tol": 1e-5}, "tol"),
    "random_state": ({"random_state": 1}, "random_state"),
    "no random_state": ({"random_state": None}, "random_state"),
    "solver": ({"solver": DualSolver(shrinking=False)}, "solver"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_parameters_are_noticed(stopped, name):
    clf, X, y, place = stopped
    change, message = CHANGES[name]
    with pytest.raises(CheckpointError, match=f"differ: {message}.*remove it"):
        clone(clf).set_params(**change).fit(X, y)
    assert place.exists()
    clf.fit(X, y)


def test_changed_data_are_noticed(stopped):
    clf, X, y, place = stopped
    other = X.copy()
    other[100, 3] = np.nextafter(other[100, 3], np.inf)
    labels = y.copy()
    labels[0] = (labels[0] + 1) % 4
    for data, message in (
        ((other, y), "X"),
        ((X.astype(np.float32), y), "X"),
        ((X[:, :5], y), "X"),
        ((X, labels), "y"),
        ((X[:150], y[:150]), "X, y, C"),
        ((X, y, np.full(len(y), 2.0)), "C, sample_weight or class_weight"),
    ):
        with pytest.raises(CheckpointError, match=f"differ: {message}"):
            clf.fit(*data)
    assert place.exists()
    assert isinstance(CheckpointError(), ValueError)


def test_fewer_passes_than_were_made(stopped):
    clf, X, y, _ = stopped
    with pytest.raises(CheckpointError, match="past max_iter=2"):
        clf.set_params(max_iter=2).fit(X, y)


def test_a_limit_of_the_solver_may_change(stopped):
    clf, X, y, place = stopped
    clf.set_params(solver=DualSolver(time_limit=1e6)).fit(X, y)
    assert not place.exists()


def test_a_failed_write_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    file = Checkpoint(tmp_path / "fit").open({"X": "1"})
    file.save({"a": np.arange(3), "b": {"c": 1.5, "d": np.zeros(2)}})
    whole = file.path.read_bytes()

    def no_room(*args, **kwargs):
        raise OSError("No space left on device")

    for owner, name in ((zipfile.ZipFile, "writestr"), (os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, no_room)
            with pytest.raises(OSError, match="No space"):
                file.save({"a": np.arange(4)})
    assert file.path.read_bytes() == whole
    assert os.listdir(tmp_path) == ["fit"]
    found = Checkpoint(tmp_path / "fit").open({"X": "1"}).saved
    assert found["a"].tolist() == [0, 1, 2] and found["b"]["c"] == 1.5
    assert found["b"]["d"].tolist() == [0, 0]


def test_bad_settings(tmp_path):
    X, y = make_problem()
    for wrong in ({"path": ""}, {"path": 3}, {"every": -1.0}, {"passes": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Checkpoint(**{"path": "fit", **wrong})
    with pytest.raises(CheckpointError, match="folder"):
        LinearMulticlassSVC(checkpoint=tmp_path / "no" / "fit").fit(X, y)
    with pytest.raises(ValueError, match="checkpoint"):
        LinearMulticlassSVC(checkpoint=3).fit(X, y)
    clf = clone(LinearMulticlassSVC(checkpoint=Checkpoint(tmp_path / "fit", passes=3)))
    assert clf.checkpoint.passes == 3


def test_a_convergence_warning_stays(tmp_path):
    X, y = make_problem()
    clf = LinearMulticlassSVC(C=10, tol=1e-9, max_iter=2, checkpoint=tmp_path / "fit")
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)


def test_steps_that_count_as_several_passes_are_saved_too(tmp_path):
    place = Checkpoint(tmp_path / "fit", every=None, passes=4)
    steps = {"one": range(1, 10), "several": [3, 6, 10, 11, 15, 24]}
    due = {}
    for name, counts in steps.items():
        file = CheckpointFile(place, {})
        due[name] = [n for n in counts if file.due(n)]
    assert due == {"one": [4, 8], "several": [6, 10, 15, 24]}
