"""Model files give back the model: parameters, fitted attributes and predictions, to the bit."""

from __future__ import annotations

import json
import os
import pickle
import stat
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import polymargin
from polymargin import KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC
from polymargin.io import ModelFileError, inspect_model
from tests.models.fitted import KINDS, ROW_MODELS, TEXT_MODELS, TEXTS, WORDS, X, Y, linear


def through_a_file(model, tmp_path):
    polymargin.save(model, tmp_path / "model.pmz")
    return polymargin.load(tmp_path / "model.pmz")


def equal(a, b) -> bool:
    if sparse.issparse(a):
        return type(a) is type(b) and a.dtype == b.dtype and (a != b).nnz == 0
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or a != a) if not hasattr(a, "get_params") else True


def assert_same_attributes(a, b) -> None:
    fitted = {key for key in vars(a) if key.endswith("_") and not key.startswith("_")}
    assert fitted == {key for key in vars(b) if key.endswith("_") and not key.startswith("_")}
    for key in fitted:
        left, right = getattr(a, key), getattr(b, key)
        left = left.item() if isinstance(left, np.generic) else left
        assert equal(left, right), key


@pytest.mark.parametrize("name", ROW_MODELS)
def test_models_of_rows(tmp_path, fitted, name):
    model = fitted[name]
    back = through_a_file(model, tmp_path)
    assert type(back) is type(model)
    params, saved = (clone(one).get_params() for one in (model, back))
    for key, value in params.items():
        if not hasattr(value, "get_params") and key != "steps":
            assert saved[key] == value, key
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back.predict(X).dtype == model.predict(X).dtype
    assert_same_attributes(model, back)
    if name not in ("scaled", "other scalers"):
        assert equal(back.predict_top_k(X, k=2), model.predict_top_k(X, k=2))


@pytest.mark.parametrize("name", TEXT_MODELS)
def test_models_of_texts(tmp_path, fitted, name):
    model = fitted[name]
    back = through_a_file(model, tmp_path)
    texts = [*TEXTS, "", "no word that is known", "thé cat and the dog in the rain"]
    assert np.array_equal(back.decision_function(texts), model.decision_function(texts))
    assert repr(back) == repr(model) and [n for n, _ in back.steps] == [n for n, _ in model.steps]
    for (_, step), (_, saved) in zip(model.steps, back.steps, strict=True):
        assert repr(step.get_params()) == repr(saved.get_params())
        assert_same_attributes(step, saved)


def test_a_loaded_model_can_be_fitted_again(tmp_path, fitted):
    for name, rows, labels in (("linear", X, WORDS), ("tf-idf", TEXTS, KINDS)):
        again = through_a_file(fitted[name], tmp_path).fit(rows, labels)
        fresh = clone(fitted[name]).fit(rows, labels)
        assert np.array_equal(again.decision_function(rows), fresh.decision_function(rows))


def test_where_checkpoints_went_is_not_kept(tmp_path):
    model = linear(checkpoint=str(tmp_path / "state")).fit(X, Y)
    assert through_a_file(model, tmp_path).checkpoint is None


def test_a_stream_goes_on_from_its_weights(tmp_path):
    model = linear().partial_fit(X[:50], WORDS[:50])
    with pytest.raises(ModelFileError, match="two classes or more"):
        polymargin.save(model, tmp_path / "model.pmz")
    model.partial_fit(X[50:], WORDS[50:])
    back = through_a_file(model, tmp_path)
    np.testing.assert_allclose(back.decision_function(X), model.decision_function(X), atol=1e-12)
    assert back.n_samples_seen_ == len(X)
    assert back.partial_fit(X[:9], WORDS[:9]).score(X, WORDS) > 0.6


def test_names_of_features(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    back = through_a_file(linear().fit(frame, Y), tmp_path)
    assert back.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert back.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names should match"):
        back.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_larank_goes_on_learning_where_it_was(tmp_path, make, dtype):
    rows = make(X.astype(dtype))
    model = LaRankClassifier(random_state=0).partial_fit(rows[:50], WORDS[:50])
    model.partial_fit(rows[50:120], WORDS[50:120])
    back, pickled = through_a_file(model, tmp_path), pickle.loads(pickle.dumps(model))
    for one in (back, pickled):
        assert np.array_equal(one.decision_function(rows), model.decision_function(rows))
        one.partial_fit(rows[120:], WORDS[120:])
        one.partial_fit(rows[:2], ["a new class", "setosa"])
    assert back.classes_.tolist() == pickled.classes_.tolist()
    assert back.n_operations_ == pickled.n_operations_
    assert np.array_equal(back.dual_coef_, pickled.dual_coef_)
    assert np.array_equal(back.decision_function(rows), pickled.decision_function(rows))


def test_precomputed_kernels(tmp_path):
    gram = X @ X.T
    for cls in (KernelMulticlassSVC, LaRankClassifier):
        model = cls(kernel="precomputed", random_state=0).fit(gram, Y)
        back = through_a_file(model, tmp_path)
        assert np.array_equal(back.decision_function(gram), model.decision_function(gram))


# --- what is refused when saving -----------------------------------------------------------------


def rbf(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: KernelMulticlassSVC(kernel=rbf).fit(X, Y), r"kernel is a function .*\(rbf\)"),
        (
            lambda: LinearMulticlassSVC(random_state=np.random.RandomState(0)).fit(X, Y),
            "random_state is an object of type RandomState",
        ),
        (
            lambda: make_pipeline(TfidfVectorizer(tokenizer=str.split), linear()).fit(TEXTS, KINDS),
            "tokenizer is a function",
        ),
        (
            lambda: make_pipeline(PolynomialFeatures(), linear()).fit(X, Y),
            "step 'polynomialfeatures' .* PolynomialFeatures.* Use joblib or skops",
        ),
        (
            lambda: make_pipeline(FunctionTransformer(np.abs), linear()).fit(X, Y),
            "func is .* Use joblib or skops",
        ),
        (
            lambda: make_pipeline(make_column_transformer((KMeans(2), [0])), linear()).fit(X, Y),
            "step 'kmeans' of the ColumnTransformer is of type KMeans",
        ),
        (lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), "last step"),
        (lambda: make_pipeline(StandardScaler(), linear(), memory="/tmp").fit(X, Y), "memory="),
        (lambda: LogisticRegression().fit(X, Y), "not an object of type LogisticRegression"),
        (lambda: GridSearchCV(linear(), {"C": [1]}).fit(X, Y), "Save its best_estimator_"),
    ],
)
@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern'")
def test_what_a_file_cannot_hold_is_named(tmp_path, model, reason):
    with pytest.raises(ModelFileError, match=reason):
        polymargin.save(model(), tmp_path / "model.pmz")
    assert list(tmp_path.iterdir()) == []


def test_models_must_be_fitted(tmp_path):
    for model in (linear(), make_pipeline(StandardScaler(), linear()), LaRankClassifier()):
        with pytest.raises(NotFittedError):
            polymargin.save(model, tmp_path / "model.pmz")


# --- the file ------------------------------------------------------------------------------------


def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch, fitted):
    path = tmp_path / "model.pmz"
    polymargin.save(fitted["linear"], path)
    old = path.read_bytes()
    for function in ("fsync", "replace"):

        def fail(*arguments):
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(os, function, fail)
            with pytest.raises(OSError, match="disk full"):
                polymargin.save(fitted["binary"], path)
        assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


def test_equal_models_give_equal_files_with_usual_permissions(tmp_path):
    for name in "ab":
        polymargin.save(linear().fit(X, Y).set_params(), tmp_path / name)
    manifests = []
    for name in "ab":
        with zipfile.ZipFile(tmp_path / name) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            manifest["model"]["state"].pop("history_")  # it has times
            manifests.append(manifest["model"])
    assert manifests[0] == manifests[1]
    if os.name == "posix":
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_a_card_without_the_weights(tmp_path, fitted):
    path = tmp_path / "model.pmz"
    model = fitted["tf-idf"]
    polymargin.save(model, path)
    card = inspect_model(path)
    assert card.kind == "LinearMulticlassSVC"
    assert card.steps == ["TfidfVectorizer", "LinearMulticlassSVC"]
    assert card.params["C"] == 1.0 and card.classes.tolist() == ["cat", "dog", "weather"]
    assert card.certificate["dual_gap"] == model[-1].dual_gap_
    assert card.n_features == model[-1].n_features_in_ and card.file_bytes == path.stat().st_size
    polymargin.save(fitted["solver"], path)
    solver = inspect_model(path).params["solver"]
    assert solver["class"] == "DualSolver" and solver["time_limit"] == 100.0
    for name, model in fitted.items():
        polymargin.save(model, path)
        last = model[-1] if hasattr(model, "steps") else model
        assert inspect_model(path).classes.tolist() == last.classes_.tolist(), name


def test_notes_come_back_and_are_no_part_of_the_model(tmp_path, fitted):
    path, model = tmp_path / "model.pmz", fitted["solver"]
    polymargin.save(model, path)
    assert inspect_model(path).notes == {}
    notes = {"from": "a test", "fold": 3, "share": 0.5, "final": True, "nothing": None}
    polymargin.save(model, path, notes=notes)
    assert inspect_model(path).notes == notes
    assert_same_attributes(polymargin.load(path), model)


def test_the_arrays_are_plain_npy_files(tmp_path, fitted):
    model = fitted["linear"]
    polymargin.save(model, tmp_path / "model.pmz")
    with np.load(tmp_path / "model.pmz", allow_pickle=False) as archive:
        arrays = [archive[name] for name in archive.files if name != "manifest.json"]
    assert any(np.array_equal(array, model.coef_) for array in arrays)


def test_a_path_that_cannot_be_written(tmp_path, fitted):
    with pytest.raises(FileNotFoundError):
        polymargin.save(fitted["linear"], tmp_path / "absent" / "model.pmz")
    with pytest.raises(FileNotFoundError):
        polymargin.load(tmp_path / "absent.pmz")
