"""Softmax in the estimators: the same model as LogisticRegression, and its probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from polymargin import (
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
)
from polymargin.solvers import state
from tests.estimators import make_problem
from tests.reference.objective import Spec, primal

MACHINES = [
    LinearMulticlassSVC(loss="softmax", random_state=0),
    KernelMulticlassSVC(loss="softmax", random_state=0),
    LinearMulticlassSVCCV(loss="softmax", Cs=[0.1, 1.0], random_state=0),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda m: type(m).__name__)


def sets(load_data):
    X, y = load_digits(return_X_y=True)
    yield "digits", X / 16, y
    yield "satimage", *load_data("satimage")[:2]
    X, y = load_data("letter")[:2]
    yield "letter", X[::3], y[::3]


def test_the_model_is_that_of_logistic_regression(load_data):
    for name, X, y in sets(load_data):
        options = {"C": 0.1, "fit_intercept": False}
        peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=10_000, **options)
        peer.fit(X, y)
        model = LinearMulticlassSVC(loss="softmax", tol=1e-10, max_iter=20_000, **options)
        model.set_params(random_state=0).fit(X, y)
        spec = Spec(X, y.astype(np.int32), np.full(len(y), 0.1), "softmax")
        none = np.zeros(spec.K)
        theirs, ours = primal(spec, peer.coef_, none), primal(spec, model.coef_, none)
        assert ours <= theirs * (1 + 1e-9), name
        np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-4)


def test_two_classes_are_logistic_regression_with_twice_the_c():
    X, y = make_problem(n_classes=2)
    peer = LogisticRegression(C=0.4, fit_intercept=False, tol=1e-12, max_iter=1000).fit(X, y)
    model = LinearMulticlassSVC(loss="softmax", C=0.2, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


@every_machine
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_probabilities(machine, n_classes, dtype):
    X, y = make_problem(n_classes=n_classes)
    X = X.astype(dtype)
    model = clone(machine).fit(X, y)
    probability = model.predict_proba(X)
    assert probability.shape == (len(y), n_classes)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probability)


def test_probabilities_of_far_away_examples_stay_numbers():
    X, y = make_problem()
    model = LinearMulticlassSVC(loss="softmax").fit(X, y)
    logarithms = model.predict_log_proba(X * 1e6)
    assert np.isfinite(logarithms).all() and logarithms.min() < -1000


@pytest.mark.parametrize("machine", [LinearMulticlassSVC(), LaRankClassifier()])
def test_other_losses_have_no_probabilities(machine):
    assert not hasattr(machine, "predict_proba") and not hasattr(machine, "predict_log_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        machine.predict_proba([[0.0]])


@pytest.mark.parametrize("machine", MACHINES[:2], ids=["linear", "kernel"])
def test_a_dual_that_does_not_fit_into_memory_is_refused_before_training(machine, monkeypatch):
    X, y = make_problem()
    width = state.core.vector_bytes
    needed = len(y) * -(-4 * 8 // width) * width  # four classes, in whole vectors
    monkeypatch.setattr(state, "available_memory", lambda: float(needed))
    clone(machine).fit(X, y)
    monkeypatch.setattr(state, "available_memory", lambda: float(needed - 1))
    with pytest.raises(MemoryError, match=r"dense: 120 examples of 4 classes.*float32"):
        clone(machine).fit(X, y)
    LinearMulticlassSVC().fit(X, y)


def test_a_stream_learns():
    X, y = make_problem(600)
    model = LinearMulticlassSVC(loss="softmax", C=0.01, random_state=0)
    for first in range(0, 600, 50):
        model.partial_fit(X[first : first + 50], y[first : first + 50], classes=range(4))
    fitted = LinearMulticlassSVC(loss="softmax", C=0.01, random_state=0).fit(X, y)
    assert model.score(X, y) > fitted.score(X, y) - 0.05
    assert model.predict_proba(X).shape == (600, 4)
