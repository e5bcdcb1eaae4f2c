"""LIBLINEAR's model format, to and from, with the Python package and without."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import KernelMulticlassSVC, LinearMulticlassSVC, LinearMulticlassSVCCV
from polymargin.export import from_liblinear, to_liblinear
from polymargin.export._liblinear import CLASSIFIERS, labels_path
from polymargin.io import ModelFileError

X, Y = load_digits(return_X_y=True)
X = X / 16


def model(labels, n_classes=10, **params):
    rows = n_classes > Y
    fitted = LinearMulticlassSVC(random_state=0, tol=1e-2, **params)
    return fitted.fit(X[rows], np.asarray(labels)[Y[rows]])


LABELS = {
    "numbers": [3, 1, 2, 9, 8, 7, 0, -4, 5, 6],
    "words": ["a b", "c", "é", "d", "e", "f", "g", "h", "i", "<script>"],
    "large": [10**12 + i for i in range(10)],
    "floats": [i / 1 for i in range(10)],
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_round_trip(tmp_path, kind, n_classes, fit_intercept):
    saved = model(LABELS[kind], n_classes, fit_intercept=fit_intercept, intercept_scaling=2.0)
    to_liblinear(saved, tmp_path / "m")
    back = from_liblinear(tmp_path / "m")
    assert labels_path(tmp_path / "m").exists() == (kind != "numbers")
    assert back.classes_.tolist() == saved.classes_.tolist()
    assert np.array_equal(back.coef_, saved.coef_)
    assert np.array_equal(back.intercept_, saved.intercept_)
    assert np.array_equal(back.decision_function(X), saved.decision_function(X))
    assert np.array_equal(back.predict_top_k(X, k=2), saved.predict_top_k(X, k=2))
    assert np.isnan(back.dual_gap_) and back.n_features_in_ == 64
    assert back.fit_intercept == fit_intercept
    back.fit(X, Y)  # it is an estimator like any other


def test_labels_that_are_no_longer_needed_are_removed(tmp_path):
    to_liblinear(model(LABELS["words"]), tmp_path / "m")
    to_liblinear(model(LABELS["numbers"]), tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_the_file_looks_like(tmp_path):
    fitted = model(LABELS["numbers"], 2)
    fitted.coef_, fitted.intercept_ = np.zeros((1, 64)), np.array([0.5])
    to_liblinear(fitted, tmp_path / "m")
    lines = (tmp_path / "m").read_text().splitlines()
    assert lines[:6] == [
        "solver_type L2R_L1LOSS_SVC_DUAL",
        "nr_class 2",
        "label 3 1",  # a positive score is for the first
        "nr_feature 64",
        "bias 1",
        "w",
    ]
    assert len(lines) == 6 + 64 + 1 and lines[-1] == "0.5 "


@pytest.mark.parametrize(
    ("loss", "solver_type"),
    [
        ("crammer_singer", "MCSVM_CS"),
        ("softmax", "MCSVM_CS"),  # what predicts by the largest score without a sigmoid each
        ("one_vs_rest", "L2R_L1LOSS_SVC_DUAL"),
        ("one_vs_rest_squared", "L2R_L2LOSS_SVC_DUAL"),
    ],
)
def test_the_file_names_the_loss_where_liblinear_has_it(tmp_path, loss, solver_type):
    to_liblinear(model(LABELS["numbers"], loss=loss), tmp_path / "m")
    assert (tmp_path / "m").read_text().startswith(f"solver_type {solver_type}\n")
    back = from_liblinear(tmp_path / "m")
    assert back.loss == ("crammer_singer" if loss == "softmax" else loss)


def test_sparse_and_float32_weights(tmp_path):
    fitted = model(LABELS["numbers"]).sparsify()
    to_liblinear(fitted, tmp_path / "m")
    assert np.array_equal(from_liblinear(tmp_path / "m").coef_, fitted.coef_.toarray())
    fitted = LinearMulticlassSVC(tol=1e-2).fit(X.astype(np.float32), Y)
    to_liblinear(fitted, tmp_path / "m")
    assert np.array_equal(from_liblinear(tmp_path / "m").coef_.astype(np.float32), fitted.coef_)


def test_cross_validated_models(tmp_path):
    fitted = LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, tol=1e-2, random_state=0).fit(X, Y)
    to_liblinear(fitted, tmp_path / "m")
    assert np.array_equal(from_liblinear(tmp_path / "m").predict(X), fitted.predict(X))


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(ModelFileError, match="linear models only, not KernelMulticlassSVC"):
        to_liblinear(KernelMulticlassSVC().fit(X[:100], Y[:100]), tmp_path / "m")
    pipeline = make_pipeline(StandardScaler(), LinearMulticlassSVC(tol=0.1)).fit(X, Y)
    with pytest.raises(ModelFileError, match="export the last step of the pipeline"):
        to_liblinear(pipeline, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# --- models of LIBLINEAR itself ------------------------------------------------------------------


@pytest.mark.parametrize("solver", range(8))
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("bias", [-1, 0, 2.5])
def test_models_of_liblinear(tmp_path, solver, n_classes, bias):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    labels = np.array([5, -2, 9, 0])
    rows = n_classes > Y
    y = labels[Y[rows]]
    options = f"-s {solver} -B {bias} -e 0.1 -q"
    theirs = liblinearutil.train(y, sparse.csr_matrix(X[rows]), options)
    path = str(tmp_path / "m")
    liblinearutil.save_model(path, theirs)
    ours = from_liblinear(path)
    expected, _, values = liblinearutil.predict(y, sparse.csr_matrix(X[rows]), theirs, "-q")
    assert np.array_equal(ours.predict(X[rows]), expected)
    if n_classes > 2:
        order = np.argsort(theirs.get_labels())
        scores = np.array(values)[:, order]
        np.testing.assert_allclose(ours.decision_function(X[rows]), scores, atol=1e-12)
    to_liblinear(ours, path)
    again, _, _ = liblinearutil.predict(
        y, sparse.csr_matrix(X[rows]), liblinearutil.load_model(path), "-q"
    )
    assert np.array_equal(again, expected)


GOOD = "solver_type MCSVM_CS\nnr_class 3\nlabel 1 2 3\nnr_feature 2\nbias -1\nw\n1 2 3 \n4 5 6 \n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("MCSVM_CS", "L2R_L2LOSS_SVR"), r"not a classifier \(L2R_L2LOSS_SVR\)"),
        (("MCSVM_CS", "ONECLASS_SVM"), "not a classifier"),
        (("solver_type MCSVM_CS\n", ""), "no solver_type"),
        (("solver_type MCSVM_CS", "svm_type c_svc"), "LIBSVM model with a kernel"),
        (("nr_class 3", "nr_class 1"), "1 classes with the labels"),
        (("nr_class 3", "nr_class x"), "nr_class is 'x', not an integer"),
        (("label 1 2 3", "label 1 1 3"), "with the labels '1 1 3'"),
        (("label 1 2 3", "label 1 2"), "with the labels '1 2'"),
        (("nr_feature 2", "nr_feature 99999999999"), "6 weights, where its header promises"),
        (("nr_feature 2", "nr_feature -3"), "nr_feature is -3"),
        (("bias -1", "bias"), "bias is '', not a number"),
        (("bias -1", "bias 1"), "6 weights, where its header promises 3 x 3"),
        (("4 5 6", "4 5"), "5 weights"),
        (("4 5 6", "4 5 x"), "not numbers"),
        (("4 5 6", "4 5 nan"), "not finite"),
        (("\nw\n", "\nv\n"), "0 weights"),
        ((GOOD, ""), "no solver_type"),
        ((GOOD, "\u00e9" * 5), "it is no text"),
    ],
)
def test_bad_files(tmp_path, change, reason):
    (tmp_path / "m").write_text(GOOD)
    assert from_liblinear(tmp_path / "m").predict([[1, 1]]).tolist() == [3]
    (tmp_path / "m").write_text(GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(ModelFileError, match=reason):
        from_liblinear(tmp_path / "m")


@pytest.mark.parametrize(
    "labels", ["{", "{}", "[]", '["a"]', '["a", 1, 2, 3]', '["a", "a", "b", "c"]']
)
def test_bad_lists_of_labels(tmp_path, labels):
    (tmp_path / "m").write_text(GOOD)
    labels_path(tmp_path / "m").write_text(labels)
    with pytest.raises(ModelFileError):
        from_liblinear(tmp_path / "m")


def test_a_list_of_labels_may_be_written_by_hand(tmp_path):
    (tmp_path / "m").write_text(GOOD)
    labels_path(tmp_path / "m").write_text(json.dumps(["none", "z", "y", "x"]))
    assert from_liblinear(tmp_path / "m").classes_.tolist() == ["x", "y", "z"]
    assert from_liblinear(tmp_path / "m").predict([[1, 1]]).tolist() == ["x"]


def test_every_classifier_is_known():
    assert len(CLASSIFIERS) == 8
