"""NumPy archives and memory-mapped directories."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import sparse

from benchmarks import datasets
from polymargin import LinearMulticlassSVC
from polymargin.io import (
    DataFileError,
    Dataset,
    convert_svmlight,
    open_directory,
    read_data,
    write_directory,
)
from tests.files.strategies import files

X = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0]])
Y = np.array([2, 1, 2])


def parts_of(matrix) -> dict:
    names = ("data", "indices", "indptr")
    return {**{name: getattr(matrix, name) for name in names}, "shape": matrix.shape}


# --- archives ------------------------------------------------------------------------------------


def test_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    data = read_data(tmp_path / "a.npz")
    assert np.array_equal(data.X, X) and np.array_equal(data.y, Y)
    assert read_data(tmp_path / "a.npz", n_features=5).X.shape == (3, 5)
    with pytest.raises(DataFileError, match="3 features, where n_features=2"):
        read_data(tmp_path / "a.npz", n_features=2)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse(tmp_path, kind):
    matrix = sparse.csr_array(X).asformat(kind)
    sparse.save_npz(tmp_path / "x.npz", matrix)
    assert read_data(tmp_path / "x.npz").y is None
    with np.load(tmp_path / "x.npz") as archive:
        np.savez_compressed(tmp_path / "a.npz", **archive, y=["u", "v", "u"])
    data = read_data(tmp_path / "a.npz", dtype=np.float32)
    assert data.X.format == "csr" and data.X.dtype == np.float32
    assert np.array_equal(data.X.toarray(), X) and data.y.tolist() == ["u", "v", "u"]


def test_parts(tmp_path):
    test = {f"test_{name}": part for name, part in parts_of(sparse.csr_array(X)).items()}
    np.savez(tmp_path / "a.npz", train_X=X[:2], train_y=Y[:2], **test, test_y=Y)
    assert read_data(tmp_path / "a.npz", part="train").X.shape == (2, 3)
    assert np.array_equal(read_data(tmp_path / "a.npz", part="test").X.toarray(), X)
    with pytest.raises(DataFileError, match="parts test, train: choose one with part="):
        read_data(tmp_path / "a.npz")
    with pytest.raises(DataFileError, match="no part 'dev'; the parts are test, train"):
        read_data(tmp_path / "a.npz", part="dev")


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_parts_as_scipy_saves_them(tmp_path, kind):
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(X).asformat(kind))
    with np.load(tmp_path / "x.npz") as archive:
        np.savez(tmp_path / "a.npz", **{f"train_{name}": archive[name] for name in archive.files})
    assert np.array_equal(read_data(tmp_path / "a.npz", part="train").X.toarray(), X)


def test_the_data_folder(load_data):
    X_train, y_train, _, _ = load_data("news20")  # skips where the folder is absent
    data = read_data(datasets.data_folder() / "news20.npz", part="train")
    assert data.X.shape == X_train.shape and np.array_equal(data.y, y_train)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"X": X, "y": Y[:2]}, "y has shape"),
        ({"X": Y, "y": Y}, "X must be a matrix"),
        ({"X": X.astype(str), "y": Y}, "X must be a matrix of numbers"),
        ({"X": np.array([[np.nan]]), "y": Y[:1]}, "NaN or infinite"),
        ({"Z": X}, "data is missing"),
        ({"X": np.array([[object()]])}, "not a sound NumPy archive"),
        (
            {**parts_of(sparse.csr_array(X)), "indices": np.array([9, 9, 9, 9, 9])},
            "not a sound NumPy archive",
        ),
        (
            {**parts_of(sparse.csr_array(X)), "indptr": np.array([0, 2, 1, 5])},
            "not a sound NumPy archive",
        ),
    ],
)
def test_bad_archives(tmp_path, arrays, reason):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataFileError, match=reason):
        read_data(tmp_path / "a.npz")


# --- directories ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        Dataset(X=X, y=Y, feature_names=["a", "b", "c"], label_name="y"),
        Dataset(X=sparse.csr_array(X.astype(np.float32)), y=np.array(["b c", "a", "é"])),
        Dataset(X=sparse.csr_array((3, 5)), y=np.array([0.5, 1, 2])),
        Dataset(text=["one", "", "trois é"], y=np.array(["u", "v", "u"])),
        Dataset(text=["", "", ""]),
    ],
    ids=["dense", "sparse", "empty", "text", "unlabelled"],
)
def test_a_directory_gives_back_what_was_written(tmp_path, data):
    write_directory(data, tmp_path / "d")
    back = read_data(tmp_path / "d")
    assert back.feature_names == data.feature_names and back.label_name == data.label_name
    if data.X is not None:
        assert back.X.dtype == data.X.dtype and type(back.X) in (np.memmap, sparse.csr_array)
        dense = [M.toarray() if sparse.issparse(M) else M for M in (back.X, data.X)]
        assert np.array_equal(*dense)
    if data.text is not None:
        assert list(back.text) == data.text and back.text[-1] == data.text[-1]
        assert back.text[1:] == data.text[1:] and back.take([2, 0]).text == data.take([2, 0]).text
    if data.y is None:
        assert back.y is None
    else:
        assert back.y.dtype == data.y.dtype and np.array_equal(back.y, data.y)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
@given(content=files())
def test_conversion_in_chunks_is_what_reading_gives(tmp_path, content):
    path, folder = tmp_path / "a.svm", tmp_path / "d"
    path.write_bytes(content)
    whole = read_data(path)
    convert_svmlight(path, folder, rows=2, overwrite=True)
    data = open_directory(folder)
    assert data.X.shape == whole.X.shape
    assert np.array_equal(data.X.toarray(), whole.X.toarray())
    assert data.y.dtype == whole.y.dtype and np.array_equal(data.y, whole.y)


def test_arrays_are_mapped_not_read(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:1 2:2\n2 2:3\n" * 50)
    convert_svmlight(tmp_path / "a.svm", tmp_path / "d", dtype=np.float32)
    data = open_directory(tmp_path / "d")
    for part in (data.X.data, data.X.indices, data.X.indptr):
        base = part
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap), "copied"
        assert not part.flags.writeable
    clf = LinearMulticlassSVC(random_state=0).fit(data.X, data.y)
    assert clf.score(data.X, data.y) == 1.0


def test_indices_that_become_wide_midway(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n2 2:3\n3 3000000000:1\n4 1:1\n")
    convert_svmlight(tmp_path / "a.svm", tmp_path / "d", rows=1)
    data = open_directory(tmp_path / "d")
    assert data.X.indices.dtype == np.int64 and data.X.indptr.dtype == np.int64
    assert data.X.indices.tolist() == [0, 1, 2999999999, 0] and data.X.shape == (4, 3000000000)


def test_a_failed_conversion_leaves_nothing(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n" * 10 + b"1 x")
    with pytest.raises(DataFileError, match=r"a\.svm:11:3"):
        convert_svmlight(tmp_path / "a.svm", tmp_path / "d", rows=3)
    assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]


def test_existing_directories_are_left_alone(tmp_path):
    data = Dataset(X=X, y=Y)
    write_directory(data, tmp_path / "d")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_directory(data, tmp_path / "d")
    write_directory(data.take([0]), tmp_path / "d", overwrite=True)
    assert open_directory(tmp_path / "d").n_examples == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="not a data directory"):
        write_directory(data, tmp_path / "mine", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "mine"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: (d / "meta.json").write_text("{"),
        lambda d: (d / "meta.json").write_text("[]"),
        lambda d: (d / "meta.json").unlink(),
        lambda d: (d / "indices.npy").unlink(),
        lambda d: (d / "data.npy").write_bytes((d / "data.npy").read_bytes()[:-8]),
        lambda d: (d / "y.npy").write_bytes(b""),
        lambda d: np.save(d / "y.npy", np.zeros(99)),
        lambda d: np.save(d / "indptr.npy", np.zeros(99, np.int32)),
        lambda d: np.save(d / "data.npy", np.array([object()]), allow_pickle=True),
    ],
)
def test_damaged_directories(tmp_path, damage):
    write_directory(Dataset(X=sparse.csr_array(X), y=Y), tmp_path / "d")
    damage(tmp_path / "d")
    with pytest.raises(DataFileError):
        read_data(tmp_path / "d")


def test_newer_directories(tmp_path):
    write_directory(Dataset(X=X, y=Y), tmp_path / "d")
    meta = json.loads((tmp_path / "d" / "meta.json").read_text())
    (tmp_path / "d" / "meta.json").write_text(json.dumps({**meta, "version": 2}))
    with pytest.raises(DataFileError, match=r"version 2 .* update polymargin"):
        open_directory(tmp_path / "d")
    with pytest.raises(FileNotFoundError):
        open_directory(tmp_path / "absent")
