"""What is fuzzed: functions of bytes that raise for whatever is not an error of ours.

Raw bytes seldom get past a digest. So archives are also fuzzed as trees: the bytes are their JSON,
which is sealed with arrays that belong to a real one.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import polymargin
from polymargin import (
    Checkpoint,
    CheckpointError,
    DualSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
    Problem,
    get_loss,
)
from polymargin.export import from_liblinear
from polymargin.io import DataFileError, ModelFileError, inspect_model, read_data
from polymargin.solvers.checkpoint import FORMAT
from polymargin.storage import Archive, Array, Format, write_archive

MODEL = Format("polymargin-model", 1, must_be_sealed=False)
SHARED = Path("/dev/shm")
warnings.simplefilter("ignore")


@functools.cache
def folder() -> Path:
    """Where files go, in memory where there is such a place."""
    return Path(tempfile.mkdtemp(prefix="fuzz", dir=SHARED if SHARED.is_dir() else None))


def place(content: bytes, suffix: str = "") -> Path:
    """A file with this content."""
    path = folder() / f"{os.getpid()}{suffix}"
    path.write_bytes(content)
    return path


# --- models --------------------------------------------------------------------------------------


@functools.cache
def data() -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a small problem."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    return np.round(rng.standard_normal((24, 4)) + y[:, None], 2), y


@functools.cache
def saved(kind: str) -> tuple[dict, list[Array]]:
    """The manifest and the arrays of a real model."""
    makers = {"linear": LinearMulticlassSVC, "larank": LaRankClassifier}
    path = folder() / kind
    polymargin.save(makers[kind](random_state=0).fit(*data()), path)
    with Archive(path, MODEL) as archive:
        manifest = dict(archive.manifest)
        return manifest, [archive.array(name) for name in manifest.pop("arrays")]


def _use(path: Path) -> None:
    """Load a model; one that loads predicts."""
    try:
        model = polymargin.load(path)
    except ModelFileError:
        return
    width = getattr(model, "n_features_in_", 0)
    if isinstance(model, (LinearMulticlassSVC, LaRankClassifier)) and width < 1000:
        model.predict(np.zeros((2, width)))


def model(content: bytes) -> None:
    """A model file."""
    path = place(content)
    _use(path)
    with contextlib.suppress(ModelFileError):
        inspect_model(path)


def _tree(kind: str, content: bytes) -> None:
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return
    manifest, arrays = saved(kind)
    try:
        write_archive(folder() / "tree", MODEL, manifest | {"model": tree}, arrays)
    except (ValueError, RecursionError):  # NaN, or too deep for who writes it
        return
    model((folder() / "tree").read_bytes())


def model_tree(content: bytes) -> None:
    """The JSON of a linear model, in a file with valid digests."""
    _tree("linear", content)


def larank_tree(content: bytes) -> None:
    """The JSON of a LaRank classifier."""
    _tree("larank", content)


# --- checkpoints ---------------------------------------------------------------------------------


def problem() -> Problem:
    """What the checkpoints are of."""
    X, y = data()
    return Problem(X, y.astype(np.int32), np.ones(len(y)), get_loss("crammer_singer"), 3, 1.0)


@functools.cache
def checkpointed() -> tuple[dict, list[Array]]:
    """The manifest and the arrays of a real checkpoint."""
    path = folder() / "fit"
    path.unlink(missing_ok=True)
    place = Checkpoint(path, every=None, passes=1)
    DualSolver().solve(problem(), tol=1e-12, max_iter=4, random_state=0, checkpoint=place)
    with Archive(path, FORMAT) as archive:
        manifest = dict(archive.manifest)
        return manifest, [archive.array(name) for name in manifest.pop("arrays")]


def _go_on(path: Path) -> None:
    settings = {"tol": 1e-12, "max_iter": 6, "random_state": 0}
    try:
        found = DualSolver().solve(problem(), **settings, checkpoint=Checkpoint(path, every=None))
    except CheckpointError:
        return
    W = np.c_[found.coef, found.intercept]
    X, y = data()
    scores = X @ found.coef.T + found.intercept
    margins = 1.0 + scores - scores[np.arange(len(y)), y][:, None]
    margins[np.arange(len(y)), y] = 0.0
    primal = 0.5 * np.vdot(W, W) + margins.max(axis=1).sum()
    assert abs(primal - found.primal) <= 1e-8 * primal, (primal, found.primal)


def checkpoint(content: bytes) -> None:
    """A checkpoint."""
    _go_on(place(content))


def checkpoint_tree(content: bytes) -> None:
    """The JSON of a state, in a file with valid digests."""
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return
    manifest, arrays = checkpointed()
    path = folder() / "state"
    try:
        write_archive(path, FORMAT, manifest | {"state": tree}, arrays)
    except (ValueError, RecursionError):
        return
    _go_on(path)


# --- data files ----------------------------------------------------------------------------------


def _read(path: Path, **how: object) -> None:
    try:
        found = read_data(path, **how)
    except DataFileError:
        return
    assert found.n_examples > 0
    assert found.X is None or np.isfinite(getattr(found.X, "data", found.X)).all()


def csv(content: bytes) -> None:
    """A table."""
    _read(place(content, ".csv"), format="csv")


def jsonl(content: bytes) -> None:
    """JSON lines."""
    _read(place(content, ".jsonl"), format="jsonl")


def svmlight(content: bytes) -> None:
    """An svmlight file, which may be compressed."""
    _read(place(content, ".svm"), format="svmlight")


def npz(content: bytes) -> None:
    """An archive of NumPy."""
    _read(place(content, ".npz"), format="npz")


def npz_members(content: bytes) -> None:
    """The members of one: four bytes of length before each."""
    buffer, names = io.BytesIO(), ("data", "indices", "indptr", "shape", "y", "format")
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            if len(content) < 2:
                break
            (size,), content = struct.unpack("<H", content[:2]), content[2:]
            archive.writestr(f"{name}.npy", content[:size])
            content = content[size:]
    npz(buffer.getvalue())


def directory(content: bytes) -> None:
    """The headers of a data directory: meta.json, then y.npy after a line of nothing but a dash."""
    meta, _, labels = content.partition(b"\n-\n")
    path = folder() / "directory"
    path.mkdir(exist_ok=True)
    np.save(path / "X.npy", np.zeros((3, 2)))
    (path / "meta.json").write_bytes(meta)
    (path / "y.npy").write_bytes(labels)
    try:
        found = read_data(path)
    except DataFileError:
        return
    assert found.y is None or len(found.y) == 3


def liblinear(content: bytes) -> None:
    """A model of LIBLINEAR, and the names of its labels after a line of nothing but a dash."""
    text, _, labels = content.partition(b"\n-\n")
    path = place(text, ".model")
    beside = Path(f"{path}.labels.json")
    beside.unlink(missing_ok=True)
    if labels:
        beside.write_bytes(labels)
    try:
        clf = from_liblinear(path)
    except ModelFileError:
        return
    if clf.n_features_in_ < 1000:
        clf.predict(np.zeros((2, clf.n_features_in_)))


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        *(model, model_tree, larank_tree, checkpoint, checkpoint_tree),
        *(csv, jsonl, svmlight, npz, npz_members, directory, liblinear),
    )
}
