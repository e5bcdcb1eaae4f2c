"""ONNX: onnxruntime gives our scores to 1e-4, and our labels where the best two are not closer."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from benchmarks import datasets
from polymargin import LaRankClassifier, LinearMulticlassSVC, LinearMulticlassSVCCV
from polymargin.export import to_onnx
from polymargin.io import ModelFileError, read_data

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

X, Y = load_digits(return_X_y=True)
X = X / 16
CLOSE = 1e-4


def linear(**params):
    return LinearMulticlassSVC(random_state=0, tol=1e-2, **params)


def run(proto, rows, names=("label", "scores")):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (name,) = [value.name for value in session.get_inputs()]
    assert [value.name for value in session.get_outputs()] == list(names)
    return session.run(None, {name: rows})


def assert_same_predictions(model, proto, rows, given):
    label, scores = run(proto, given)
    expected = model.decision_function(rows)
    if expected.ndim == 1:
        expected = np.column_stack([-expected, expected])
    np.testing.assert_allclose(scores, expected, atol=CLOSE, rtol=0)
    best = np.sort(expected, axis=1)
    clear = best[:, -1] - best[:, -2] > CLOSE
    assert clear.mean() > 0.9
    assert np.array_equal(label[clear], model.predict(rows)[clear])
    assert label.shape == (scores.shape[0],)
    classes = json.loads({p.key: p.value for p in proto.metadata_props}["classes"])
    assert classes == model.classes_.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_dense_models(dtype, words, n_classes):
    labels = np.array([f"digit {i} é" for i in range(10)]) if words else np.arange(10) * 3 - 7
    rows = n_classes > Y
    model = linear().fit(X[rows], labels[Y[rows]])
    proto = to_onnx(model, dtype=dtype)
    assert_same_predictions(model, proto, X, X.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("params", [{"loss": "softmax"}, {"probability": True}], ids=str)
def test_probabilities(dtype, n_classes, params):
    rows = n_classes > Y
    model = make_pipeline(StandardScaler(), linear(**params)).fit(X[rows], Y[rows].astype(str))
    names = ("label", "scores", "probabilities")
    _, scores, found = run(to_onnx(model, dtype=dtype), X[rows].astype(dtype), names)
    np.testing.assert_allclose(found, model.predict_proba(X[rows]), atol=CLOSE)
    np.testing.assert_array_equal(found.argmax(axis=1), scores.argmax(axis=1))


def test_letter(load_data):
    X_train, y_train, X_test, _ = load_data("letter")
    model = linear(loss="weston_watkins").fit(X_train, y_train)
    assert_same_predictions(model, to_onnx(model), X_test, X_test.astype(np.float32))


def test_sparse_training_data_and_weights():
    model = linear(fit_intercept=False).fit(sparse.csr_array(X), Y).sparsify()
    assert_same_predictions(model, to_onnx(model), X, X.astype(np.float32))


def test_cross_validated_models():
    model = LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, tol=1e-2, random_state=0)
    for one in (model, make_pipeline(StandardScaler(), model)):
        one.fit(X, Y)
        assert_same_predictions(one, to_onnx(one), X, X.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, MaxAbsScaler, Normalizer])
def test_scaled_models(scaler, dtype):
    model = make_pipeline(scaler(), linear()).fit(X, Y)
    assert_same_predictions(model, to_onnx(model, dtype=dtype), X, X.astype(dtype))


# --- text ----------------------------------------------------------------------------------------


def as_column(texts):
    return np.array(texts, dtype=object)[:, None]


@pytest.fixture(scope="module")
def clinc150():
    path = datasets.data_folder() / "clinc150.jsonl.gz"
    if not path.exists():
        pytest.skip(f"data set clinc150 is absent: {path} does not exist")
    return [read_data(path, where={"split": split}) for split in ("train", "test")]


@pytest.mark.parametrize(
    "vectorizer",
    [TfidfVectorizer(), TfidfVectorizer(ngram_range=(1, 2), min_df=2)],
    ids=["words", "pairs"],
)
def test_text_models(clinc150, vectorizer):
    train, test = clinc150
    model = make_pipeline(vectorizer, linear()).fit(train.text, train.y)
    proto = to_onnx(model)
    assert_same_predictions(model, proto, test.text, as_column(test.text))


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(norm=None, smooth_idf=False),
        TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", use_idf=False),
        TfidfVectorizer(lowercase=False),
        CountVectorizer(stop_words=["the"]),
        CountVectorizer(binary=True),
    ],
)
def test_text_with_all_sorts_of_letters(vectorizer):
    texts = ["The cat SAT", "Müller's Straße", "naïve ÉCOLE 42", "кот и пёс", "a_b b2 x y", "é è"]
    labels = list("abcabc")
    model = make_pipeline(vectorizer, linear()).fit(texts, labels)
    new = [*texts, "ÉCOLE the Кот", "unknown words only", "42 42 cat", "a", "."]
    label, scores = run(to_onnx(model), as_column(new))
    np.testing.assert_allclose(scores, model.decision_function(new), atol=CLOSE)
    assert np.array_equal(label, model.predict(new))


def test_two_classes_of_text():
    model = make_pipeline(TfidfVectorizer(), linear()).fit(["good day", "bad day"], [1, 0])
    texts = ["good", "bad", "a good day"]
    assert_same_predictions(model, to_onnx(model), texts, as_column(texts))


@pytest.mark.parametrize(
    ("vectorizer", "reason"),
    [
        (HashingVectorizer(), "skl2onnx cannot convert"),
        (TfidfVectorizer(analyzer="char"), "analyzer='char'"),
        (TfidfVectorizer(sublinear_tf=True), "sublinear_tf=True"),
        (TfidfVectorizer(stop_words=["a"], ngram_range=(1, 2)), "stop_words with ngram_range"),
        (TfidfVectorizer(strip_accents="unicode"), "skl2onnx cannot convert"),
    ],
)
def test_text_that_would_come_out_differently_is_refused(vectorizer, reason):
    model = make_pipeline(vectorizer, linear()).fit(["good day", "bad day"], [1, 0])
    with pytest.raises(ModelFileError, match=reason):
        to_onnx(model)


# --- files and errors ----------------------------------------------------------------------------


def test_files(tmp_path):
    model = linear().fit(X, Y)
    to_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    label, _ = session.run(None, {"X": X[:5].astype(np.float32)})
    assert label.tolist() == model.predict(X[:5]).tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_what_cannot_be_converted():
    larank = LaRankClassifier(random_state=0).fit(X[:50], Y[:50])
    with pytest.raises(ModelFileError, match="not LaRankClassifier"):
        to_onnx(larank)
    with pytest.raises(ModelFileError, match="end in one can be converted to ONNX, not LaRank"):
        to_onnx(make_pipeline(StandardScaler(), larank))
    with pytest.raises(ModelFileError, match="integers or strings"):
        to_onnx(linear().fit(X, Y.astype(float)))
    with pytest.raises(ValueError, match="dtype must be"):
        to_onnx(linear().fit(X, Y), dtype=np.float16)


def test_without_the_packages_the_extra_is_named():
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import numpy as np, polymargin\n"
        "model = polymargin.LinearMulticlassSVC().fit(np.eye(3), [0, 1, 2])\n"
        "polymargin.export.to_onnx(model)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'polymargin[onnx]'" in done.stderr
