"""A disk that is full, a folder that is read-only: the old file stays, and nothing is left over."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import polymargin
from polymargin import Checkpoint, DualSolver, LinearMulticlassSVC
from polymargin.export import to_liblinear
from polymargin.io import (
    DataFileError,
    Dataset,
    convert_svmlight,
    iter_svmlight,
    read_data,
    write_blocks,
    write_directory,
    write_svmlight,
)
from polymargin.report import write_report
from tests.solvers.test_checkpoints import make

resource = pytest.importorskip("resource", reason="limits of the system are those of POSIX")
pytestmark = pytest.mark.filterwarnings("ignore")

rng = np.random.default_rng(0)
Y = np.arange(200) % 3
X = np.round(rng.standard_normal((200, 5)) + Y[:, None], 3)
CLF = LinearMulticlassSVC(max_iter=5).fit(X, Y)


@contextmanager
def no_file_larger_than(size: int):
    """The quota that a process may have; Python ignores the signal, and writing fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only(folder: Path):
    """For this user, or as another one where nothing is forbidden to this one."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def report(path: Path) -> None:
    write_report(path, CLF, title="a model", X=X, y=Y)


def checkpoint(path: Path) -> None:
    path.unlink()  # one of another fit is refused
    place = Checkpoint(path, every=None, passes=1)
    DualSolver().solve(make(n=80), tol=1e-9, max_iter=3, random_state=0, checkpoint=place)


WRITERS = {
    "model": lambda path: polymargin.save(CLF, path),
    "svmlight": lambda path: write_svmlight(Dataset(X=X, y=Y), path),
    "liblinear": lambda path: to_liblinear(CLF, path),
    "report": report,
    "directory": lambda path: write_directory(Dataset(X=X, y=Y), path, overwrite=True),
    "sparse directory": lambda path: write_directory(
        Dataset(X=sparse.csr_array(X), y=Y.astype(str)), path, overwrite=True
    ),
    "texts": lambda path: write_directory(
        Dataset(text=["a b"] * 900, y=None), path, overwrite=True
    ),
    "converted": lambda path: convert_svmlight(path.parent / "data.svm", path, overwrite=True),
    "blocks": lambda path: write_blocks([(X, Y, None), (X, Y, None)], path, overwrite=True),
}


def content(path: Path) -> object:
    """The bytes of a file, or of all files of a directory."""
    if path.is_dir():
        return {one.name: one.read_bytes() for one in sorted(path.iterdir())}
    return path.read_bytes()


def largest(path: Path) -> int:
    """The size of the largest file."""
    return max(one.stat().st_size for one in (path.iterdir() if path.is_dir() else [path]))


@pytest.fixture(params=WRITERS)
def written(request, tmp_path):
    """How something is written, and what was written before."""
    write_svmlight(Dataset(X=X, y=Y), tmp_path / "data.svm")
    path = tmp_path / "out"
    WRITERS[request.param](path)
    return WRITERS[request.param], path


def test_a_full_disk(written):
    """At any moment: the first byte, the middle, the last."""
    write, path = written
    before, names, size = content(path), sorted(os.listdir(path.parent)), largest(path)
    for limit in (0, 1, 100, size // 2, size - 1):
        with no_file_larger_than(limit), pytest.raises(OSError, match="out") as error:
            write(path)
        assert error.value.errno in (errno.EFBIG, errno.ENOSPC)
        assert content(path) == before, limit
        assert sorted(os.listdir(path.parent)) == names, limit
    write(path)
    assert content(path) == before


def test_a_folder_that_is_read_only(written):
    write, path = written
    before, names = content(path), sorted(os.listdir(path.parent))
    for folder in path.parents[1:3]:  # pytest's own are for this user only
        folder.chmod(0o755)
    with read_only(path.parent), pytest.raises(PermissionError, match="out"):
        write(path)
    assert content(path) == before and sorted(os.listdir(path.parent)) == names


def test_a_checkpoint_on_a_full_disk(tmp_path):
    """The fit ends with an error that names the file; the checkpoint before it is whole."""
    problem, path = make(n=80), tmp_path / "fit"
    call = {"tol": 1e-9, "random_state": 0, "max_iter": 12}
    place = Checkpoint(path, every=None, passes=1)
    DualSolver().solve(problem, **call | {"max_iter": 3}, checkpoint=place)
    before = path.read_bytes()
    for limit in (0, 1000, len(before) - 1):
        with no_file_larger_than(limit), pytest.raises(OSError, match="fit"):
            DualSolver().solve(problem, **call, checkpoint=place)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["fit"]
    found = DualSolver().solve(problem, **call, checkpoint=place)
    whole = DualSolver().solve(problem, **call)
    np.testing.assert_array_equal(found.coef, whole.coef)


def test_a_directory_that_cannot_take_its_name(tmp_path, monkeypatch):
    """The old one comes back."""
    path = tmp_path / "out"
    write_directory(Dataset(X=X, y=Y), path)
    before, replace = content(path), os.replace

    def refuse(source, target):
        calls.append(target)
        if len(calls) == 2:  # the old one has been moved away
            raise OSError(errno.EIO, "Input/output error", os.fspath(source))
        replace(source, target)

    calls = []
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match=r"Input/output error.*out"):
        write_directory(Dataset(X=X + 1, y=Y), path, overwrite=True)
    assert content(path) == before and os.listdir(tmp_path) == ["out"]


def test_a_model_that_is_replaced_while_it_is_read(tmp_path, monkeypatch):
    """By renaming, as `save` does: the one that was opened. In place: an error."""
    from polymargin.storage import Archive

    path, other = tmp_path / "model", LinearMulticlassSVC(C=0.1, max_iter=5).fit(X, Y)
    read = Archive.array

    def meanwhile(change):
        def array(self, name):
            if name == "arrays/0.npy":
                change()
            return read(self, name)

        monkeypatch.setattr(Archive, "array", array)

    polymargin.save(CLF, path)
    meanwhile(lambda: polymargin.save(other, path))
    np.testing.assert_array_equal(polymargin.load(path).coef_, CLF.coef_)
    np.testing.assert_array_equal(polymargin.load(path).coef_, other.coef_)
    for change in (lambda: path.write_bytes(b""), lambda: path.write_bytes(bytes(10_000))):
        polymargin.save(CLF, path)
        meanwhile(change)
        with pytest.raises(polymargin.io.ModelFileError, match="cannot be read"):
            polymargin.load(path)


def test_data_that_are_replaced_between_two_passes(tmp_path):
    """The first pass found the features; one that came later is an error."""
    path = tmp_path / "data.svm"
    path.write_text("1 1:1 2:1\n2 1:1\n")
    chunks = iter_svmlight(path, rows=1)
    next(chunks)
    assert read_data(path).X.shape == (2, 2)
    path.write_text("1 1:1 2:1\n2 9:1\n")
    with pytest.raises(DataFileError, match="beyond"):
        list(iter_svmlight(path, rows=1, n_features=2, zero_based=False))
    list(chunks)  # read already: a block is a megabyte


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_predictions_into_a_full_pipe(tmp_path):
    """A message and an exit status; no traceback, and no success."""
    polymargin.save(CLF, tmp_path / "model.pmz")
    write_svmlight(Dataset(X=X, y=Y), tmp_path / "data.svm")
    command = [sys.executable, "-m", "polymargin", "predict", "model.pmz", "data.svm"]
    with open("/dev/full", "wb") as full:
        child = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300
        )
    assert child.returncode == 5, child.stderr
    assert "No space left" in child.stderr and "Traceback" not in child.stderr
