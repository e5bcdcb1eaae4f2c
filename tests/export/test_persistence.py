"""Other ways to keep a model: pickle, joblib and skops."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
)

X, Y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
MODELS = {
    "linear": lambda: LinearMulticlassSVC(random_state=0, solver=DualSolver()).fit(X, Y),
    "words": lambda: LinearMulticlassSVC(random_state=0).fit(X, np.array(["a", "b", "c"])[Y]),
    "kernel": lambda: KernelMulticlassSVC(random_state=0, solver=KernelSolver()).fit(X, Y),
    "larank": lambda: LaRankClassifier(random_state=0).fit(X, Y),
    "pipeline": lambda: make_pipeline(StandardScaler(), LinearMulticlassSVC()).fit(X, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_pickle_and_joblib(tmp_path, name):
    model = MODELS[name]()
    joblib.dump(model, tmp_path / "model.joblib")
    for back in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        assert np.array_equal(back.decision_function(X), model.decision_function(X))
        assert np.array_equal(back.predict(X), model.predict(X))


def through_skops(model):
    skops = pytest.importorskip("skops.io")
    content = skops.dumps(model)
    types = skops.get_untrusted_types(data=content)
    assert all(name.startswith("polymargin.") or name == "numpy.dtype" for name in types), types
    return skops.loads(content, trusted=types)


@pytest.mark.parametrize("name", ["linear", "words", "kernel", "pipeline"])
def test_skops(name):
    model = MODELS[name]()
    back = through_skops(model)
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    assert np.array_equal(back.predict(X), model.predict(X))


def test_skops_with_text():
    texts = ["a cat sat", "the dog barks", "rain again"]
    model = make_pipeline(TfidfVectorizer(), LinearMulticlassSVC()).fit(texts, ["c", "d", "r"])
    back = through_skops(model)
    assert np.array_equal(back.decision_function(texts), model.decision_function(texts))


def test_skops_with_larank():
    model = MODELS["larank"]()
    back = through_skops(model)
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
