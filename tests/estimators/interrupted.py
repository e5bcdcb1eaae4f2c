"""What Ctrl-C may come into, and what must be true afterwards.

Every scenario is a call and a check of what it leaves behind: everything as before, or a whole
result. ``python -m tests.estimators.interrupted NAME [MOST]`` tries all points, or so many, and
prints what was wrong; fast on Linux where there is one thread (``OPENBLAS_NUM_THREADS=1``).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import pickle
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config, set_config

import polymargin
from polymargin import (
    Checkpoint,
    DualSolver,
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    StreamSolver,
    regularization_path,
)
from polymargin.estimators.compat import OF_A_RUNNING_FIT
from polymargin.estimators.partitioned import LocalSource, PartitionedLinearSVC, checked_chunk
from tests.estimators.ctrl_c import Branches, CtrlC, points, spread
from tests.reference.objective import Spec, dual, primal

TOL = 0.05


def problem(n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A few examples of k classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.standard_normal((n, d)) + 2 * np.eye(k, d)[y], y


OLD = problem(24, 5, 4, 1)  # other features and classes than what comes
X, Y = problem(24, 4, 3, 0)


@dataclass
class Attempt:
    """A call, and the check of what it has left behind."""

    call: Callable[[], Any]
    check: Callable[[], None]


Prepare = Callable[[Path], Attempt]  # in an empty folder


def certified(clf: Any, of: tuple[np.ndarray, np.ndarray] = (X, Y), most_gap: float = 1.0) -> None:
    """Every fitted attribute of a linear model is of one fit, and its certificate is true."""
    data, labels = of
    assert clf.coef_.shape == (3, data.shape[1]) and clf.intercept_.shape == (3,)
    assert clf.n_features_in_ == data.shape[1] and clf.classes_.tolist() == [0, 1, 2]
    spec = Spec(
        data,
        labels,
        np.full(len(labels), getattr(clf, "C_", None) or clf.C),
        clf.loss,
        None,
        clf.intercept_scaling,
    )
    assert np.isclose(clf.objective_, primal(spec, clf.coef_, clf.intercept_), rtol=1e-6)
    if clf.store_dual:
        assert np.isclose(clf.dual_objective_, dual(spec, clf.dual_coef_.T), rtol=1e-6, atol=1e-9)
    gap = (clf.objective_ - clf.dual_objective_) / clf.objective_
    assert np.isclose(clf.dual_gap_, gap) and -1e-9 <= gap <= most_gap, gap
    assert len({len(column) for column in clf.history_.values()}) == 1
    assert clf.predict(data).shape == labels.shape


def certified_early(clf: Any) -> None:
    """The same of a sum of partitions, whose dual may be below zero in the first rounds."""
    certified(clf, most_gap=np.inf)


def kernel_certified(clf: Any) -> None:
    """The same of a kernel machine."""
    assert clf.n_features_in_ == X.shape[1] and clf.classes_.tolist() == [0, 1, 2]
    a = np.zeros((len(X), 3))
    a[clf.support_] = clf.dual_coef_.T
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    scores = np.exp(-clf.gamma_ * squares) @ a
    assert np.allclose(clf.decision_function(X), scores)
    C = getattr(clf, "C_", None) or clf.C
    half_norm = 0.5 * np.sum(a * scores)
    h = 1 + scores - scores[np.arange(len(X)), Y][:, None]
    h[np.arange(len(X)), Y] = 0
    assert np.isclose(clf.objective_, half_norm + C * np.maximum(0, h).max(axis=1).sum())
    assert np.isclose(clf.dual_objective_, a[np.arange(len(X)), Y].sum() - half_norm, atol=1e-9)


def machine_whole(clf: Any) -> None:
    """The attributes of LaRank are of one moment, and its scores follow from them."""
    n = len(clf.support_)
    assert clf.support_vectors_.shape == (n, X.shape[1]) and clf.dual_coef_.shape == (3, n)
    squares = ((X[:, None] - clf.support_vectors_[None]) ** 2).sum(axis=2)
    assert np.allclose(clf.decision_function(X), np.exp(-clf.gamma_ * squares) @ clf.dual_coef_.T)
    assert clf.n_support_.sum() == n and clf.n_features_in_ == X.shape[1]
    assert np.allclose(clf.dual_coef_.sum(axis=0), 0)
    assert np.isclose(clf.dual_objective_, clf._model.machine.dual)


# --- the calls -----------------------------------------------------------------------------------


def unchanged(thing: Any, before: dict[str, Any]) -> bool:
    """Whether its attributes are the same objects as before."""
    now = {name: one for name, one in vars(thing).items() if name not in OF_A_RUNNING_FIT}
    return now.keys() == before.keys() and all(one is before[name] for name, one in now.items())


def usually(clf: Any, data: np.ndarray, labels: np.ndarray) -> Any:
    """Train it."""
    return clf.fit(data, labels)


def in_partitions(clf: Any, data: np.ndarray, labels: np.ndarray) -> Any:
    """Train it on four partitions in this process; one is empty."""
    parts = [slice(0, 10), slice(10, 10), slice(10, 13), slice(13, None)]
    chunks = [checked_chunk(m, data[part], labels[part]) for m, part in enumerate(parts)]
    return clf._fit_on(contextlib.nullcontext(LocalSource(chunks)))


def of_fit(
    make: Callable[[], Any],
    whole: Callable[[Any], None],
    *,
    warm: bool = False,
    fit: Callable[[Any, np.ndarray, np.ndarray], Any] = usually,
) -> Prepare:
    """`fit` of an object that was fitted before: to other data, or with another C."""
    first = fit(make(), *((X, Y) if warm else OLD))

    def prepare(folder: Path) -> Attempt:
        clf = copy.deepcopy(first)
        if warm:
            clf.set_params(C=0.7)
        before = dict(vars(clf))

        def check() -> None:
            if not unchanged(clf, before):
                whole(clf)
            whole(fit(clf, X, Y))
            assert not clf.dual_gap_ > TOL  # LaRank has none

        return Attempt(lambda: fit(clf, X, Y), check)

    return prepare


def bits(clf: Any) -> list[bytes]:
    """What a linear model is, to the last bit."""
    return [one.tobytes() for one in (clf.coef_, clf.intercept_, clf.classes_)]


def of_stream(start: int, **settings: Any) -> Prepare:
    """`partial_fit`, of an object that has seen some examples; classes appear one after the other.

    Whatever it has seen of the batch, the rest of it leads to the same model, bit for bit.
    """
    order = np.argsort(Y, kind="stable")
    rows, labels = X[order], Y[order]

    def made() -> Any:
        clf = LinearMulticlassSVC(random_state=0, **settings)
        return clf.partial_fit(rows[:start], labels[:start]) if start else clf

    expected = bits(made().partial_fit(rows[start:], labels[start:]))

    def prepare(folder: Path) -> Attempt:
        clf = made()

        def check() -> None:
            seen = getattr(clf, "n_samples_seen_", 0)
            assert seen == (clf._stream.model.n_seen if hasattr(clf, "_stream") else 0)
            if seen:
                assert clf.coef_.shape[0] == (len(clf.classes_) if len(clf.classes_) != 2 else 1)
                assert clf.predict(rows).shape == labels.shape
            if seen < len(rows):
                clf.partial_fit(rows[seen:], labels[seen:])
            assert bits(pickle.loads(pickle.dumps(clf))) == expected

        return Attempt(lambda: clf.partial_fit(rows[start:], labels[start:]), check)

    return prepare


def of_stream_after_fit(folder: Path) -> Attempt:
    """The first `partial_fit` after a `fit`, whose certificate is then of no use."""
    clf = LinearMulticlassSVC(random_state=0, store_dual=True, tol=TOL).fit(X, Y)
    before = dict(vars(clf))

    def check() -> None:
        if not unchanged(clf, before):
            assert clf.n_samples_seen_ == len(X) and not hasattr(clf, "dual_gap_")
            assert not hasattr(clf, "dual_coef_")
        clf.partial_fit(X, Y)
        assert clf.predict(X).shape == Y.shape

    return Attempt(lambda: clf.partial_fit(X, Y), check)


def of_machine(start: int) -> Prepare:
    """`partial_fit` of LaRank; a class appears."""

    def prepare(folder: Path) -> Attempt:
        clf = LaRankClassifier(gamma=0.1, random_state=0)
        if start:
            clf.partial_fit(X[Y < 2], Y[Y < 2])
        before = dict(vars(clf))

        def check() -> None:
            if len(getattr(clf, "classes_", ())) == 3:
                machine_whole(clf)
            else:
                assert unchanged(clf, before)
            clf.partial_fit(X, Y)
            machine_whole(clf)
            assert clf.score(X, Y) > 0.6

        return Attempt(lambda: clf.partial_fit(X, Y), check)

    return prepare


def of_path(folder: Path) -> Attempt:
    """A path changes nothing; with a checkpoint, the next call goes on from it."""
    options = {"tol": TOL, "random_state": 0}
    saved = Checkpoint(folder / "path", passes=1)
    expected = PATHS.setdefault("coefs", regularization_path(X, Y, [0.1, 1.0], **options).coefs)

    def check() -> None:
        assert {file.name for file in folder.iterdir()} <= {"path"}
        again = regularization_path(X, Y, [0.1, 1.0], checkpoint=saved, **options)
        np.testing.assert_array_equal(again.coefs, expected)

    return Attempt(
        lambda: regularization_path(X, Y, [0.1, 1.0], checkpoint=saved, **options), check
    )


PATHS: dict[str, np.ndarray] = {}


def of_checkpoint(folder: Path) -> Attempt:
    """A fit that saves its state after every pass goes on to the same bits."""
    clf = LinearMulticlassSVC(
        tol=1e-4, random_state=0, checkpoint=Checkpoint(folder / "state", passes=1)
    )
    if "fit" not in PATHS:
        PATHS["fit"] = copy.deepcopy(clf).set_params(checkpoint=None).fit(X, Y).coef_

    def check() -> None:
        assert {file.name for file in folder.iterdir()} <= {"state"}
        if hasattr(clf, "coef_"):
            certified(clf)
        np.testing.assert_array_equal(clf.fit(X, Y).coef_, PATHS["fit"])
        assert not list(folder.iterdir())

    return Attempt(lambda: clf.fit(X, Y), check)


def of_blocks(folder: Path) -> Attempt:
    """Data that are read in blocks, from a copy on disk."""
    rows, labels = problem(300, 40, 3, 0)
    half = slice(150), slice(150, None)
    source = polymargin.io.BlockSource(lambda: iter([(rows[part], labels[part]) for part in half]))
    clf = LinearMulticlassSVC(tol=TOL, random_state=0, memory_limit=100_000, store_dual=True)

    def check() -> None:
        assert not list(folder.iterdir())
        if hasattr(clf, "coef_"):
            certified(clf, (rows, labels))
        certified(clf.fit(source), (rows, labels))

    return Attempt(lambda: clf.fit(source), check)


def of_save(folder: Path) -> Attempt:
    """The old file or the new one, and nothing else in the folder."""
    model, old = LinearMulticlassSVC(random_state=0), LinearMulticlassSVC(random_state=0)
    model.fit(X, Y), old.fit(*OLD)
    path = folder / "model.pmz"
    polymargin.save(old, path)

    def check() -> None:
        assert [file.name for file in folder.iterdir()] == ["model.pmz"]
        assert bits(polymargin.load(path)) in (bits(old), bits(model))
        polymargin.save(model, path)
        assert bits(polymargin.load(path)) == bits(model)

    return Attempt(lambda: polymargin.save(model, path), check)


def of_load(folder: Path) -> Attempt:
    """Nothing happens but that there is no model."""
    model = LaRankClassifier(gamma=0.1, random_state=0).partial_fit(X, Y)
    polymargin.save(model, folder / "model.pmz")

    def check() -> None:
        machine_whole(polymargin.load(folder / "model.pmz"))

    return Attempt(lambda: polymargin.load(folder / "model.pmz"), check)


DIRECTORIES: dict[str, Callable[[Path, polymargin.io.Dataset], Any]] = {
    "write": lambda path, data: polymargin.io.write_directory(data, path, overwrite=True),
    "convert": lambda path, data: polymargin.io.convert_svmlight(
        path.parent.parent / f"{data.n_examples}.svm", path, overwrite=True
    ),
    "blocks": lambda path, data: polymargin.io.write_blocks(
        polymargin.io.BlockSource(lambda: iter([(data.X, data.y)] * 2)), path, overwrite=True
    ),
}


def of_directory(kind: str) -> Prepare:
    """A data directory in the place of another: the old one or the new one, and nothing else."""
    write = DIRECTORIES[kind]
    old = polymargin.io.Dataset(X=sparse.csr_array(X[:9]), y=Y[:9])
    new = polymargin.io.Dataset(X=sparse.csr_array(X), y=Y)

    def content(path: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in path.iterdir()}

    def prepare(folder: Path) -> Attempt:
        path, found = folder / "data", []
        for data in (old, new):
            polymargin.io.write_svmlight(data, folder.parent / f"{data.n_examples}.svm")
        for data in (new, old):
            write(path, data)
            found.append(content(path))

        def check() -> None:
            assert [file.name for file in folder.iterdir()] == ["data"]
            assert content(path) in found
            write(path, new)
            assert content(path) == found[0]
            assert [file.name for file in folder.iterdir()] == ["data"]

        return Attempt(lambda: write(path, new), check)

    return prepare


LINEAR = {"tol": TOL, "random_state": 0, "store_dual": True}
SCENARIOS: dict[str, Callable[[], Prepare]] = {
    "linear": lambda: of_fit(lambda: LinearMulticlassSVC(**LINEAR), certified),
    "linear_warm": lambda: of_fit(
        lambda: LinearMulticlassSVC(warm_start=True, **LINEAR), certified, warm=True
    ),
    "linear_long": lambda: of_fit(
        lambda: LinearMulticlassSVC(C=100.0, **LINEAR | {"tol": 1e-6}), certified
    ),
    "probability": lambda: of_fit(
        lambda: LinearMulticlassSVC(probability=True, **LINEAR), certified
    ),
    "stream": lambda: of_stream(0, stream=StreamSolver(average=True, reservoir=5)),
    "stream_goes_on": lambda: of_stream(
        10, loss="one_vs_rest", stream=StreamSolver(average=True, reservoir=5)
    ),
    "stream_after_fit": lambda: of_stream_after_fit,
    "larank": lambda: of_fit(lambda: LaRankClassifier(gamma=0.1, random_state=0), machine_whole),
    "larank_stream": lambda: of_machine(0),
    "larank_goes_on": lambda: of_machine(1),
    "kernel": lambda: of_fit(
        lambda: KernelMulticlassSVC(warm_start=True, random_state=0, tol=TOL), kernel_certified
    ),
    "path": lambda: of_path,
    "cv": lambda: of_fit(lambda: LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, **LINEAR), certified),
    "kernel_cv": lambda: of_fit(
        lambda: KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, random_state=0, tol=TOL),
        kernel_certified,
    ),
    "checkpoint": lambda: of_checkpoint,
    "blocks": lambda: of_blocks,
    "partitions": lambda: of_fit(
        lambda: PartitionedLinearSVC(warm_start=True, solver=DualSolver(newton=False), **LINEAR),
        certified_early,
        fit=in_partitions,
    ),
    "partitions_newton": lambda: of_fit(
        lambda: PartitionedLinearSVC(**LINEAR), certified, fit=in_partitions
    ),
    "save": lambda: of_save,
    "load": lambda: of_load,
    "directory": lambda: of_directory("write"),
    "convert": lambda: of_directory("convert"),
    "blocks_to_directory": lambda: of_directory("blocks"),
}


# --- trying --------------------------------------------------------------------------------------


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder that is also where temporary files go."""
    with tempfile.TemporaryDirectory() as outer:
        inner = Path(outer) / "inner"
        inner.mkdir()
        usual, tempfile.tempdir = tempfile.tempdir, str(inner)
        try:
            yield inner
        finally:
            tempfile.tempdir = usual


@contextlib.contextmanager
def prepared(prepare: Prepare) -> Iterator[tuple[Path, Attempt]]:
    """A folder, and what was made ready in it; warnings do not matter."""
    with empty_folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield folder, prepare(folder)


def ends_with(n_threads: int) -> bool:
    """Whether there are no more threads than this, or soon: one told to end may be reading yet."""
    deadline = time.monotonic() + 60.0
    while threading.active_count() > n_threads and time.monotonic() < deadline:
        time.sleep(0.005)
    return threading.active_count() <= n_threads


def what_is_wrong(one: Attempt, ctrl_c: CtrlC) -> str | None:
    """Make the call and interrupt it; what was wrong, if anything was."""
    n_threads, settings = threading.active_count(), get_config()
    try:
        came_out = ctrl_c.during(one.call)
    except Exception as error:
        return f"{type(error).__name__} came out: {error}"
    if not ctrl_c.at:
        return None
    if get_config() != settings:
        set_config(**settings)
        return "scikit-learn's settings stayed changed"
    if ctrl_c.came and not came_out and not ctrl_c.in_vain:
        return "KeyboardInterrupt was swallowed"
    try:
        one.check()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"afterwards {type(error).__name__}: {error} ({where.name}, line {where.lineno})"
    if not ends_with(n_threads):
        return "a thread was left behind"
    return None


def attempt(prepare: Prepare, at: int) -> str | None:
    """Interrupt a call at an instruction; what was wrong, if anything was."""
    with prepared(prepare) as (_, one):
        return what_is_wrong(one, CtrlC(at))


def branches(prepare: Prepare, chosen: list[int]) -> Branches:
    """Make a call once, and interrupt copies of it where that can be."""
    with prepared(prepare) as (folder, one):
        made = Branches(chosen, folder)
        try:
            wrong = what_is_wrong(one, made)
        except BaseException as error:
            if made.answer is None:
                raise
            wrong = f"{type(error).__name__} came out: {error}"
        if made.answer is not None:
            made.say(wrong)
        if wrong is not None:
            raise RuntimeError(f"A call that nobody interrupted: {wrong}")
    return made


def attempts(
    name: str, most: int, seed: int = 0, part: tuple[int, int] = (0, 1), most_anew: int = 10**9
) -> tuple[int, int, dict[int, str]]:
    """Instructions of a scenario, how many were interrupted, and what was wrong at which.

    Of a `part`, the i-th of n, of the instructions; calls are made anew for `most_anew` of them.
    """
    prepare = SCENARIOS[name]()
    with prepared(prepare) as (_, one):
        one.call()  # whatever is made once is made
    with prepared(prepare) as (_, one):
        total, found = points(one.call)
    chosen = [*spread(found, most, seed)][part[0] :: part[1]]
    wrong, anew = {}, chosen
    if Branches.can_be() and len(chosen) > 20:
        made = branches(prepare, chosen)
        wrong, anew = made.said, made.left
    left = [*spread(anew, most_anew, seed)]
    for at in left:
        what = attempt(prepare, at)
        if what is not None:
            wrong[at] = what
    return total, len(chosen) - len(anew) + len(left), wrong


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=SCENARIOS)
    parser.add_argument("most", type=int, nargs="?", default=10**9)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"))
    parser.add_argument("--seed", type=int, default=0, help="of the choice where there are more")
    parser.add_argument("--anew", type=int, default=10**9, help="most calls that are made anew")
    given = parser.parse_args()
    total, tried, wrong = attempts(
        given.name, given.most, given.seed, tuple(given.part), given.anew
    )
    print(f"{given.name}: {total} instructions, {tried} interrupted, {len(wrong)} wrong")
    for at, what in sorted(wrong.items()):
        print(at, what)


if __name__ == "__main__":
    main()
