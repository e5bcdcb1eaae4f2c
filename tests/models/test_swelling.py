"""A small file never asks for much memory: limits are enforced before it is taken."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import polymargin
from polymargin import LinearMulticlassSVC
from polymargin.io import ModelFileError, read_data
from polymargin.storage import StorageError, StringRoom, check_expansion
from tests.models import swollen

MOST = 64 * 2**20 + 64 * 3 * 2**20  # as documented, for the largest of the files


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is in kilobytes on Linux")
def test_small_files_do_not_swell(tmp_path):
    """Each is refused with a clear error (or is harmless), and reading all takes little memory."""
    swollen.model_files(tmp_path)
    swollen.checkpoint(tmp_path)
    swollen.data_files(tmp_path)
    files = {path.name: path for path in tmp_path.iterdir() if path.name != "sound"}
    assert all(path.stat().st_size < 7 * 2**20 for path in files.values())
    command = [sys.executable, "-m", "tests.models.swollen", str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr[-2000:]
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    assert {name for name, *_ in lines} == set(files)
    for name, reader, found, growth in lines:
        assert growth < MOST, (name, found, growth)
        if ".ok." in name:
            assert found == "read"
        elif reader != "inspect_model":  # which has no need to look at what is wrong
            assert found.startswith(("ModelFileError", "CheckpointError", "DataFileError")), found


def test_what_is_written_can_be_read(tmp_path):
    """A long word among many is refused when it is saved, not when it is needed."""
    X = np.eye(4)[np.arange(40) % 4]
    clf = LinearMulticlassSVC().fit(X, [f"class {i % 4}" for i in range(40)])
    clf.classes_ = np.array(["a", "b", "c", "d" * 10_000])
    polymargin.save(clf, tmp_path / "long.pmz")
    assert np.array_equal(polymargin.load(tmp_path / "long.pmz").classes_, clf.classes_)
    clf.history_ = np.array(["x" * 100_000] + ["y"] * 1_000)
    with pytest.raises(ModelFileError, match="padded to the 100000 characters of the longest"):
        polymargin.save(clf, tmp_path / "longer.pmz")
    assert not (tmp_path / "longer.pmz").exists()


def test_room_for_strings_is_shared():
    room, strings = StringRoom(), ["x" * 1000] + [""] * 1000  # of 4 MB
    for _ in range(16):
        room.take(strings)
    with pytest.raises(StorageError, match="more than such a file may ask for"):
        room.take(strings)
    StringRoom().take(["word"] * 2**20)  # what is there in the file may be long


def test_expansion_is_relative_to_the_file():
    check_expansion("X", 2**30, 10)
    check_expansion("X", 100 * 2**26, 2**26)
    with pytest.raises(StorageError, match="X would take 1,073,741,825 bytes, and a file of 10"):
        check_expansion("X", 2**30 + 1, 10)


def test_sparse_archives_are_as_tall_as_they_are(tmp_path):
    """By columns, with more rows than entries: fine as long as they fit."""
    from scipy import sparse

    X = sparse.csc_array(([1.0], ([70_000], [1])), shape=(100_000, 3))
    sparse.save_npz(tmp_path / "x.npz", X)
    assert (read_data(tmp_path / "x.npz").X != X).nnz == 0
