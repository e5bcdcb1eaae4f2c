"""Public originals: the fetchers are replaced, so that nothing is downloaded."""

from __future__ import annotations

import urllib.error
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from benchmarks import datasets, originals


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No folder holds any file."""
    monkeypatch.setenv("POLYMARGIN_DATA", str(tmp_path / "named"))
    monkeypatch.setattr(datasets, "PROJECT_ROOT", tmp_path / "a" / "project")
    return tmp_path


def test_the_named_folder_comes_first_then_the_default_one(nowhere):
    default = nowhere / "a" / "shared" / "data"
    for number, folder in enumerate((default, nowhere / "named")):
        folder.mkdir(parents=True)
        X = np.full((2, 1), float(number))
        np.savez(folder / "usps.npz", train_X=X, train_y=[0, 1], test_X=X, test_y=[0, 1])
        assert datasets.load("usps").X_train[0, 0] == number
        assert datasets.source("usps").startswith("file of")


def openml(X, y, seen=None):
    def fetch(name, version, as_frame, parser):
        if seen is not None:
            seen.append((name, version))
        return SimpleNamespace(data=X, target=y)

    return fetch


@pytest.mark.parametrize(
    ("name", "n", "n_train", "scale"),
    [
        ("letter", 15_010, 15_000, lambda x: x / 7.5 - 1),
        ("mnist", 60_010, 60_000, lambda x: x / 255),
        ("usps", 7_300, 7_291, lambda x: x),
        ("dna", 2_010, 2_000, lambda x: x),
    ],
)
def test_first_rows_train_and_are_prepared_like_the_files(
    nowhere, monkeypatch, name, n, n_train, scale
):
    X = np.arange(2.0 * n).reshape(n, 2) % 16
    y = np.array([str(1 + i % 10) for i in range(n)])  # as OpenML gives them
    monkeypatch.setattr(originals.fetchers, "fetch_openml", openml(X, y))
    data = datasets.load(name)
    assert data.X_train.shape == (n_train, 2)
    np.testing.assert_allclose(data.X_train[:5], scale(X[:5]))
    np.testing.assert_allclose(data.X_test, scale(X[n_train:]))
    np.testing.assert_array_equal(data.y_train[:10], range(10))  # "10" after "9"
    assert data.y_train.dtype == data.y_test.dtype == np.int32
    assert datasets.source(name) == "original"


def test_satimage_is_scaled_by_its_training_part(nowhere, monkeypatch):
    X = np.r_[np.linspace(27, 157, 4_435), 200.0][:, None]
    y = np.arange(4_436) % 6
    monkeypatch.setattr(originals.fetchers, "fetch_openml", openml(X, y))
    data = datasets.load("satimage")
    assert (data.X_train.min(), data.X_train.max()) == (-1, 1)
    assert data.X_test.max() > 1


def test_aloi_is_stratified_and_its_largest_value_is_one(nowhere, monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.integers(0, 500, (13_000, 3)).astype(float))
    seen = []
    y = np.arange(13_000) % 10
    monkeypatch.setattr(originals.fetchers, "fetch_openml", openml(X, y, seen))
    data = datasets.load("aloi")
    assert seen == [("aloi", 1)]
    assert np.abs(data.X_train).max() == pytest.approx(1, abs=0.01)
    assert set(np.bincount(data.y_test)) == {1_080}
    assert data.X_train.shape[0] + data.X_test.shape[0] == 13_000


def test_newsgroups_are_counts_with_unit_rows(nowhere, monkeypatch):
    def fetch(subset, normalize, download_if_missing):
        assert normalize is False
        X = sparse.csr_matrix(np.array([[3.0, 4.0], [0, 2.0]]))
        return SimpleNamespace(data=X, target=np.array([1, 0]))

    monkeypatch.setattr(originals.fetchers, "fetch_20newsgroups_vectorized", fetch)
    data = datasets.load("news20")
    np.testing.assert_allclose(data.X_train.toarray(), [[0.6, 0.8], [0, 1]])


def test_rcv1_keeps_documents_with_one_second_level_topic(nowhere, monkeypatch):
    names = ["C11", "C151", "CCAT", "E12", "ECAT", "G15", "G151", "GCAT", "GSPO", "M14", "MCAT"]
    topics = [  # per document
        ["CCAT", "C11"],
        ["CCAT", "C11", "ECAT", "E12"],  # two of the second level
        ["GCAT", "GSPO"],
        ["GCAT"],  # none
        ["CCAT", "C151", "GCAT", "G15", "G151"],
        ["MCAT", "M14"],
    ]
    target = sparse.csr_matrix([[float(n in doc) for n in names] for doc in topics])
    X = sparse.csr_matrix(np.eye(6) * 2)

    def fetch(subset):
        found = SimpleNamespace(data=X, target=target, target_names=np.array(names))
        if subset == "test":
            found.data, found.target = X[2:4], target[2:4]
        return found

    monkeypatch.setattr(originals.fetchers, "fetch_rcv1", fetch)
    data = datasets.load("rcv1_multiclass_sub")
    np.testing.assert_array_equal(data.X_train.toarray(), np.eye(6)[[0, 2, 4, 5]])
    np.testing.assert_array_equal(data.y_train, [0, 2, 1, 3])  # C11, GSPO, G15, M14
    np.testing.assert_array_equal(data.y_test, [2])


def test_topics_of_our_file_are_those_of_the_rule():
    path = datasets.data_folder() / "rcv1_multiclass_sub.labels.json"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    import json

    for name in json.loads(path.read_text()):
        assert originals.RCV1_TOPIC.fullmatch(name), name
    for name in ("CCAT", "GCAT", "C151", "C1511", "G151", "E121", "M131"):
        assert not originals.RCV1_TOPIC.fullmatch(name), name


def test_covtype_leaves_test_rows_of_unknown_classes_out(nowhere, monkeypatch):
    X, y = np.random.default_rng(0).random((50, 3)), np.repeat([1, 2], 25)
    monkeypatch.setattr(
        originals.fetchers, "fetch_covtype", lambda **options: SimpleNamespace(data=X, target=y)
    )
    data = datasets.load("covtype")
    assert data.X_train.shape == (40, 3)
    assert set(data.y_train) == {0, 1}
    monkeypatch.setitem(originals.ORIGINALS, "dna", lambda: (X[:3], [5, 6, 5], X[:2], [6, 7]))
    assert datasets.load("dna").y_test.tolist() == [1]


def test_bundled_digits_need_no_download(nowhere):
    data = datasets.load("digits", download=False)
    assert data.n_classes == 10
    assert data.X_train.max() == 1


def test_without_a_network_the_error_says_what_to_do(nowhere, monkeypatch):
    def fail(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(originals.fetchers, "fetch_openml", fail)
    with pytest.raises(FileNotFoundError, match=r"could not be fetched.*POLYMARGIN_DATA"):
        datasets.load("mnist")
    with pytest.raises(FileNotFoundError, match="nothing may be downloaded"):
        datasets.load("mnist", download=False)
    with pytest.raises(FileNotFoundError, match="POLYMARGIN_DATA"):
        datasets.load("clinc150")  # has no public fetcher
