"""LIBLINEAR's own programs (Debian's liblinear-tools) read our models, and we read theirs."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits

from polymargin import LinearMulticlassSVC
from polymargin.export import from_liblinear, to_liblinear
from polymargin.io import Dataset, write_svmlight

NAMES = {"train": ("liblinear-train", "train"), "predict": ("liblinear-predict", "predict")}


@pytest.fixture(scope="module")
def tool():
    """A function that runs one of the programs."""

    def run(name, *arguments):
        program = next(filter(None, map(shutil.which, NAMES[name])), None)
        if program is None:
            pytest.skip(f"LIBLINEAR's {name} is absent: install the package liblinear-tools")
        subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE)

    return run


def dump(X, y, path):
    write_svmlight(Dataset(X=X, y=y), path)


def test_predict_reads_our_model_of_news20(tmp_path, tool, load_data):
    X_train, y_train, X_test, y_test = load_data("news20")
    model = LinearMulticlassSVC(random_state=0).fit(X_train, y_train + 1)
    to_liblinear(model, tmp_path / "model")
    dump(X_test, y_test + 1, tmp_path / "test.svm")
    tool("predict", "-q", tmp_path / "test.svm", tmp_path / "model", tmp_path / "out")
    theirs = np.loadtxt(tmp_path / "out", dtype=int)
    assert len(theirs) == 3993
    assert np.array_equal(theirs, model.predict(X_test))


def test_models_of_train_load_here(tmp_path, tool, load_data):
    X_train, y_train, X_test, y_test = load_data("news20")
    dump(X_train, y_train + 1, tmp_path / "train.svm")
    dump(X_test, y_test + 1, tmp_path / "test.svm")
    tool("train", "-s", 4, "-q", tmp_path / "train.svm", tmp_path / "model")
    tool("predict", "-q", tmp_path / "test.svm", tmp_path / "model", tmp_path / "out")
    theirs = np.loadtxt(tmp_path / "out", dtype=int)
    model = from_liblinear(tmp_path / "model")
    width = model.n_features_in_
    assert np.array_equal(model.predict(X_test[:, :width]), theirs)
    assert (theirs == y_test + 1).mean() > 0.7


@pytest.mark.parametrize("labels", [np.arange(10), np.array(list("abcdefghij"))])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_both_ways_on_digits(tmp_path, tool, labels, n_classes):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < n_classes] / 16, y[y < n_classes]
    model = LinearMulticlassSVC(random_state=0, tol=1e-2).fit(X, labels[y])
    to_liblinear(model, tmp_path / "model")
    dump(X, y, tmp_path / "data.svm")
    tool("predict", "-q", tmp_path / "data.svm", tmp_path / "model", tmp_path / "out")
    theirs = np.loadtxt(tmp_path / "out", dtype=int)  # numbers stand for labels that are words
    assert np.array_equal(labels[theirs], model.predict(X))
    tool("train", "-s", 4, "-B", 1, "-q", tmp_path / "data.svm", tmp_path / "theirs")
    tool("predict", "-q", tmp_path / "data.svm", tmp_path / "theirs", tmp_path / "out")
    imported = from_liblinear(tmp_path / "theirs")
    assert np.array_equal(imported.predict(X), np.loadtxt(tmp_path / "out", dtype=int))
