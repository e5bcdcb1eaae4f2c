"""The same optimum as LIBLINEAR at eps 1e-4, and the papers' accuracy on 20 newsgroups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from polymargin import LinearMulticlassSVC
from tests.reference.objective import Spec, dual, primal

liblinearutil = pytest.importorskip("liblinear.liblinearutil", reason="needs liblinear-official")

FORMULATION = {"crammer_singer": 4, "one_vs_rest": 3, "one_vs_rest_squared": 1}
every_loss = pytest.mark.parametrize("loss", list(FORMULATION))


def liblinear_coef(X, y, loss: str, C: float, eps: float) -> np.ndarray:
    """Train LIBLINEAR without a bias; return its weights, one row per class code."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    options = f"-s {FORMULATION[loss]} -c {C} -e {eps} -B -1 -q"
    model = liblinearutil.train(y.astype(np.float64), X, options)
    K, d = model.get_nr_class(), model.get_nr_feature()
    weights = np.ctypeslib.as_array(model.w, shape=(d, K))
    coef = np.zeros((K, X.shape[1]))
    coef[model.get_labels(), :d] = weights.T
    return coef


def assert_same_optimum(X, y, loss, C):
    """Our P is no worse than 1 + 1e-4 times LIBLINEAR's, and our D is below it."""
    spec = Spec(X, y, np.full(len(y), float(C)), loss)
    none = np.zeros(spec.K)
    theirs = primal(spec, liblinear_coef(X, y, loss, C, 1e-4), none)
    model = LinearMulticlassSVC(
        loss=loss,
        C=C,
        fit_intercept=False,
        tol=5e-5,
        max_iter=100_000,
        store_dual=True,
        random_state=0,
    ).fit(X, y)
    assert primal(spec, model.coef_, none) <= (1 + 1e-4) * theirs
    assert dual(spec, model.dual_coef_.T) <= theirs


@every_loss
@pytest.mark.parametrize(
    ("name", "C", "step"),
    [
        ("dna", 0.1, 1),
        ("dna", 1.0, 1),
        ("satimage", 0.1, 1),
        ("satimage", 1.0, 4),
        ("letter", 0.1, 5),
        ("letter", 1.0, 15),
        ("clinc150", 1.0, 6),
    ],
)
def test_same_optimum_as_liblinear(load_data, loss, name, C, step):
    X, y = load_data(name)[:2]
    assert_same_optimum(X[::step], y[::step], loss, C)


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize(
    ("name", "C"), [("news20", 0.1), ("news20", 1.0), ("satimage", 1.0), ("letter", 1.0)]
)
def test_same_optimum_as_liblinear_on_whole_sets(load_data, loss, name, C):
    X, y = load_data(name)[:2]
    assert_same_optimum(X, y, loss, C)


def test_news20_accuracy_is_that_of_the_papers(load_data):
    X, y, X_test, y_test = load_data("news20")
    model = LinearMulticlassSVC(C=1.0, fit_intercept=False, random_state=0).fit(X, y)
    assert 0.850 <= model.score(X_test, y_test) <= 0.858


@pytest.mark.parametrize("name", ["dna", "satimage"])
def test_the_default_of_linear_svc_is_one_vs_rest_squared(load_data, name):
    X, y = load_data(name)[:2]
    X, y = X[::4], y[::4]
    spec = Spec(X, y, np.full(len(y), 0.5), "one_vs_rest_squared", None, 1.0)
    peer = LinearSVC(C=0.5, dual=False, tol=1e-10, max_iter=100_000).fit(X, y)
    options = {"C": 0.5, "tol": 1e-8, "max_iter": 100_000, "random_state": 0}
    model = LinearMulticlassSVC(loss="one_vs_rest_squared", **options).fit(X, y)
    theirs = primal(spec, peer.coef_, peer.intercept_)
    assert primal(spec, model.coef_, model.intercept_) == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-3 * abs(peer.coef_).max())
