"""Kernel machines in ONNX give the scores that ours give; feature names are kept."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
)
from polymargin.models import ModelFileError

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

from polymargin.export import to_onnx  # noqa: E402

X, Y = load_digits(return_X_y=True)
X, Y = X[:400] / 16, Y[:400]


def run(proto, X, dtype=np.float32):
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X.astype(dtype)}), strict=True))


def scores_by_hand(model, X):
    """Scores by the formulas of the kernels, in double precision."""
    Z = np.asarray(
        model.support_vectors_.todense()
        if sparse.issparse(model.support_vectors_)
        else model.support_vectors_,
        float,
    )
    inner = X @ Z.T
    if model.kernel == "rbf":
        far = ((X[:, None, :] - Z[None]) ** 2).sum(axis=2)
        K = np.exp(-model.gamma_ * far)
    elif model.kernel == "poly":
        K = (model.gamma_ * inner + model.coef0) ** model.degree
    elif model.kernel == "sigmoid":
        K = np.tanh(model.gamma_ * inner + model.coef0)
    else:
        K = inner
    scores = K @ np.asarray(model.dual_coef_, float).T
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
        {"kernel": "sigmoid", "gamma": 0.001, "coef0": 0.1},
    ],
    ids=lambda settings: settings["kernel"],
)
def test_scores_are_those_of_the_formulas(settings, dtype):
    model = KernelMulticlassSVC(**settings, C=0.1, random_state=0).fit(X, Y)
    found = run(to_onnx(model, dtype=dtype), X, dtype)
    expected = scores_by_hand(model, X)
    close = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found["scores"], expected, rtol=0, atol=close * abs(expected).max())
    assert (found["label"] == model.predict(X)).mean() > 0.995


def test_distances_keep_their_digits_far_from_the_origin():
    model = KernelMulticlassSVC(gamma=0.02, random_state=0).fit(X + 1000.0, Y)
    found = run(to_onnx(model), X + 1000.0)
    np.testing.assert_allclose(found["scores"], scores_by_hand(model, X + 1000.0), atol=2e-2)
    assert (found["label"] == model.predict(X + 1000.0)).mean() > 0.99


def test_two_classes_words_sparse_vectors_and_probabilities():
    two = Y < 2
    labels = np.array(["no", "yes"])[Y[two]]
    model = KernelMulticlassSVC(probability=True, random_state=0)
    model.fit(sparse.csr_array(X[two]), labels)
    found = run(to_onnx(model), X[two])
    np.testing.assert_allclose(found["scores"], scores_by_hand(model, X[two]), atol=1e-4)
    assert found["label"].tolist() == model.predict(X[two]).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X[two]), atol=1e-4)


def test_pipelines_and_cross_validated_machines():
    model = make_pipeline(StandardScaler(), KernelMulticlassSVC(random_state=0)).fit(X, Y)
    found = run(to_onnx(model), X)
    assert found["label"].tolist() == model.predict(X).tolist()
    chosen = KernelMulticlassSVCCV(Cs=[0.1, 1.0, 10.0], cv=2, random_state=0).fit(X, Y)
    assert run(to_onnx(chosen), X)["label"].tolist() == chosen.predict(X).tolist()


def test_what_only_python_knows_is_refused():
    K = X @ X.T
    with pytest.raises(ModelFileError, match="whose kernel is precomputed cannot"):
        to_onnx(KernelMulticlassSVC(kernel="precomputed").fit(K, Y))
    with pytest.raises(ModelFileError, match="kernel is a function of yours cannot"):
        to_onnx(KernelMulticlassSVC(kernel=lambda A, B: A @ B.T).fit(X, Y))
    with pytest.raises(ModelFileError, match="not LaRankClassifier"):
        to_onnx(LaRankClassifier(random_state=0).fit(X, Y))


@pytest.mark.parametrize("make", [LinearMulticlassSVC, KernelMulticlassSVC])
@pytest.mark.parametrize("scaled", [False, True])
def test_feature_names_are_in_the_metadata(make, scaled):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :3], columns=["width", "Höhe", "長さ"])
    model = make(C=0.1, max_iter=10_000, random_state=0)
    model = make_pipeline(StandardScaler(), model) if scaled else model
    proto = to_onnx(model.fit(frame, Y % 2))
    about = {one.key: one.value for one in proto.metadata_props}
    assert json.loads(about["feature_names"]) == ["width", "Höhe", "長さ"]
    assert "feature_names" not in {one.key for one in to_onnx(make().fit(X, Y)).metadata_props}
