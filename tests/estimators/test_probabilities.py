"""Temperatures: the log loss is minimal, scores are held out, and they go wherever models go."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import polymargin
from polymargin import (
    LOSSES,
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
)
from polymargin.estimators.probabilities import (
    fit_temperature,
    held_out_parts,
    log_probabilities,
    temperature_of,
)
from polymargin.io import Dataset, write_directory
from polymargin.losses import loss_class

HINGES = [name for name in LOSSES if not loss_class(name).gives_probabilities]
NAMES = np.array(["ant", "bee", "cat"])


def smoothed_loss(T, scores, y, weight):
    """The log loss that a temperature minimises, straight from its definition."""
    w = weight / weight.sum()
    share = 1 / (1 / (w**2).sum() + 2)
    S = np.asarray(scores, np.float64) / T
    own = (1 - share) * S[np.arange(len(y)), y] + share * S.mean(axis=1)
    return float(w @ (logsumexp(S, axis=1) - own))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(2, 7),
    st.integers(1, 40),
    st.floats(-6, 6),
    st.booleans(),
)
def test_a_temperature_minimises_the_log_loss(seed, k, n, size, ties):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, k))
    y = rng.integers(0, k, n)
    scores[np.arange(n), y] += rng.uniform(0.0, 2.0)
    scores = scores.round(0 if ties else 12) * 10.0**size
    weight = rng.uniform(0.1, 3.0, n)
    T = fit_temperature(scores, y, weight)
    assert np.isfinite(T) and T > 0
    span = np.ptp(scores, axis=1).max() or 1.0
    found = minimize_scalar(
        lambda t: smoothed_loss(span * np.exp(t), scores, y, weight),
        bounds=(np.log(1e-6), np.log(1e3)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert smoothed_loss(T, scores, y, weight) <= found.fun + 1e-9


def test_temperatures_of_awkward_scores():
    y, one = np.array([0, 1, 2, 0]), np.ones(4)
    right = np.eye(3)[y]
    T = fit_temperature(right, y, one)  # every example is right: sharp, but not without end
    assert 0.05 < T < 1
    assert fit_temperature(1e200 * right, y, one) == pytest.approx(1e200 * T)
    assert fit_temperature(1e-200 * right, y, one) == pytest.approx(1e-200 * T)
    flat = fit_temperature(-right, y, one)  # every example is wrong: about equally likely
    assert np.ptp(softmax(-right / flat, axis=1)) < 1e-2
    assert fit_temperature(np.zeros((4, 3)), y, one) == 1.0
    two = fit_temperature(np.array([-2.0, 1.0, 3.0, 0.5]), np.array([0, 1, 1, 0]), one)
    both = np.column_stack([np.zeros(4), [-2.0, 1.0, 3.0, 0.5]])
    assert two == fit_temperature(both, np.array([0, 1, 1, 0]), one)
    twice = fit_temperature(np.repeat(right, 2, axis=0), np.repeat(y, 2), np.ones(8))
    assert twice < T  # more examples say more


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 30), st.integers(2, 400))
def test_folds_hold_every_example_out_once_at_most_and_keep_every_class(seed, k, n):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n)]).astype(np.int32)
    c = np.where(rng.random(len(y)) < 0.2, 0.0, 1.0)
    c[:k] = 1.0
    c[k] = 1.0
    parts = held_out_parts(y, c, k, seed)
    everyone = np.concatenate(parts)
    assert len(np.unique(everyone)) == len(everyone) == np.count_nonzero(c) - k
    assert (c[everyone] > 0).all()
    for part in parts:
        assert len(part) <= 0.2 * np.count_nonzero(c) + 1
        kept = np.delete(np.arange(len(y)), part)
        assert set(y[kept][c[kept] > 0]) == set(range(k))


def test_many_examples_are_held_out_in_one_part():
    y = np.arange(30_000, dtype=np.int32) % 10
    parts = held_out_parts(y, np.ones(len(y)), 10, 0)
    assert [len(part) for part in parts] == [5000]
    parts = held_out_parts(y[:5000], np.ones(5000), 10, 0)
    assert [len(part) for part in parts] == [1000, 1000]
    with pytest.raises(ValueError, match="single example"):
        held_out_parts(y[:10], np.ones(10), 10, 0)


@pytest.fixture(scope="module")
def noisy():
    """Overlapping classes, so that probabilities matter."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = np.eye(3)[y] + 0.6 * rng.normal(size=(900, 3))
    return X[:500], NAMES[y[:500]], X[500:], NAMES[y[500:]]


def params_of(loss):
    return {"loss": loss, "top_k": 2 if "top_k" in loss_class(loss).parameters else None}


@pytest.mark.parametrize("loss", HINGES)
@pytest.mark.parametrize("kind", [LinearMulticlassSVC, KernelMulticlassSVC])
def test_probabilities_of_every_loss(noisy, kind, loss):
    X, y, X_test, y_test = noisy
    clf = kind(probability=True, random_state=0, **params_of(loss)).fit(X, y)
    P = clf.predict_proba(X_test)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(P), clf.predict_log_proba(X_test))
    scores = clf.decision_function(X_test)
    np.testing.assert_allclose(P, softmax(scores / clf.temperature_, axis=1))
    np.testing.assert_array_equal(clf.classes_[P.argmax(axis=1)], clf.predict(X_test))
    codes = np.searchsorted(clf.classes_, y_test)
    best = fit_temperature(scores, codes, np.ones(len(codes)))
    optimal = log_loss(y_test, softmax(scores / best, axis=1))
    assert log_loss(y_test, P) <= optimal + 0.02
    plain = kind(random_state=0, **params_of(loss)).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X_test), scores)  # the model stays


def test_the_scores_are_held_out():
    """Labels without any meaning: a model learns them by heart, its probabilities must not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 300)), rng.integers(0, 2, 200)
    clf = LinearMulticlassSVC(probability=True, C=100.0, random_state=0).fit(X, y)
    assert clf.score(X, y) == 1.0
    fresh = clf.predict_proba(rng.normal(size=(500, 300)))
    assert fresh.max(axis=1).mean() < 0.75


def test_folds_that_start_from_the_solution_find_that_of_a_fresh_fit(noisy):
    X, y, *_ = noisy
    clf = LinearMulticlassSVC(probability=True, tol=1e-8, random_state=0)
    clf.fit(X, y)
    scores, codes = [], []
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    for part in held_out_parts(np.searchsorted(NAMES, y).astype(np.int32), np.ones(500), 3, seed):
        rest = np.delete(np.arange(500), part)
        fold = LinearMulticlassSVC(tol=1e-6, random_state=0).fit(X[rest], y[rest])
        scores.append(fold.decision_function(X[part]))
        codes.append(np.searchsorted(NAMES, y[part]))
    expected = fit_temperature(np.concatenate(scores), np.concatenate(codes), np.ones(497))
    assert clf.temperature_ == pytest.approx(expected, rel=0.03)


def test_two_classes_weights_and_string_labels(noisy):
    X, y, X_test, _ = noisy
    two = y != "cat"
    clf = LinearMulticlassSVC(probability=True, random_state=0).fit(X[two], y[two])
    P, s = clf.predict_proba(X_test), clf.decision_function(X_test)
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-s / clf.temperature_)))
    np.testing.assert_array_equal((P[:, 1] > 0.5), s > 0)
    weight = np.where(np.arange(500) % 3 == 0, 0.0, 1.0)
    absent = clone(clf).fit(X, y, weight)
    assert absent.temperature_ > 0
    scaled = clone(clf).fit(X, y, 2.0 * weight).temperature_
    halved = clone(clf).set_params(C=2.0).fit(X, y, weight).temperature_
    assert scaled == pytest.approx(halved)
    rare = clone(clf).fit(X, y, np.where(y == "cat", 1e-3, 1.0))
    assert rare.temperature_ != pytest.approx(clone(clf).fit(X, y).temperature_, rel=1e-3)


def test_the_methods_are_there_when_the_temperature_is(noisy):
    X, y, *_ = noisy
    assert not hasattr(LinearMulticlassSVC(), "predict_proba")
    assert not hasattr(LaRankClassifier(), "predict_proba")
    wanted = LinearMulticlassSVC(probability=True, random_state=0)
    assert hasattr(wanted, "predict_proba")
    with pytest.raises(NotFittedError):
        wanted.predict_proba(X)
    without = LinearMulticlassSVC(random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        without.set_params(probability=True).predict_proba(X)
    assert "fitted with probability=False" in str(caught.value.__cause__)
    wanted.fit(X, y)
    assert not hasattr(wanted.partial_fit(X, y), "predict_proba")
    assert not hasattr(wanted, "temperature_")
    soft = LinearMulticlassSVC(loss="softmax", probability=True, random_state=0).fit(X, y)
    assert not hasattr(soft, "temperature_")
    assert temperature_of(soft) == 1.0
    assert hasattr(soft.partial_fit(X, y), "predict_proba")
    refit = wanted.fit(X, y).set_params(probability=False).fit(X, y)
    assert not hasattr(refit, "temperature_")


@pytest.mark.parametrize("kind", [LinearMulticlassSVCCV, KernelMulticlassSVCCV])
def test_searches_refit_with_a_temperature(noisy, kind):
    X, y, X_test, _ = noisy
    clf = kind(Cs=[0.1, 1.0], cv=3, probability=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X_test).sum(axis=1), 1.0)
    one = clf._model_class(C=clf.C_, probability=True, random_state=0)
    if kind is LinearMulticlassSVCCV:
        assert clf.temperature_ == one.fit(X, y).temperature_
    soft = kind(Cs=[0.1, 1.0], cv=3, loss="softmax", scoring="neg_log_loss", random_state=0)
    assert (soft.fit(X, y).scores_ < 0).all()


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_kernels(noisy, kernel):
    X, y, *_ = noisy
    K = X @ X.T if kernel == "precomputed" else X
    clf = KernelMulticlassSVC(kernel=kernel, probability=True, random_state=0).fit(K, y)
    plain = KernelMulticlassSVC(kernel=kernel, random_state=0).fit(K, y)
    assert clf.predict_proba(K).shape == (500, 3)
    assert clf.n_kernel_evaluations_ >= plain.n_kernel_evaluations_


def test_layouts_and_copies_agree(noisy, tmp_path):
    X, y, X_test, _ = noisy
    clf = LinearMulticlassSVC(probability=True, random_state=0).fit(X, y)
    again = LinearMulticlassSVC(probability=True, random_state=0).fit(sparse.csr_array(X), y)
    assert again.temperature_ == pytest.approx(clf.temperature_, rel=1e-6)
    single = LinearMulticlassSVC(probability=True, random_state=0).fit(X.astype(np.float32), y)
    assert single.temperature_ == pytest.approx(clf.temperature_, rel=0.02)
    assert single.predict_proba(X_test.astype(np.float32)).dtype == np.float32
    assert clone(clf).fit(X, y).temperature_ == clf.temperature_
    assert pickle.loads(pickle.dumps(clf)).temperature_ == clf.temperature_
    wide = np.hstack([X, np.zeros((500, 60))])
    folder = write_directory(Dataset(X=wide, y=y), tmp_path / "data")
    limited = LinearMulticlassSVC(probability=True, memory_limit="200KB", random_state=0)
    limited.fit(folder)
    assert limited.temperature_ == pytest.approx(clf.temperature_, rel=0.05)
    kept = LinearMulticlassSVC(
        probability=True, random_state=0, checkpoint=tmp_path / "run", store_dual=True
    ).fit(X, y)
    assert kept.temperature_ == clf.temperature_
    assert kept.dual_coef_.shape == (3, 500)


def test_names_of_columns_are_not_warned_of(noisy, recwarn):
    pandas = pytest.importorskip("pandas")
    X, y, *_ = noisy
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    clf = LinearMulticlassSVC(probability=True, random_state=0).fit(frame, y)
    assert list(clf.feature_names_in_) == ["a", "b", "c"]
    clf.predict_proba(frame)
    assert not recwarn.list


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, KernelMulticlassSVC, LinearMulticlassSVCCV])
def test_model_files_hold_the_temperature(noisy, kind, tmp_path):
    X, y, X_test, _ = noisy
    clf = kind(probability=True, random_state=0).fit(X, y)
    polymargin.save(clf, tmp_path / "m.pmz")
    back = polymargin.load(tmp_path / "m.pmz")
    np.testing.assert_array_equal(back.predict_proba(X_test), clf.predict_proba(X_test))
    clf.temperature_ = -1.0
    with pytest.raises(polymargin.io.ModelFileError, match="temperature_"):
        polymargin.save(clf, tmp_path / "bad.pmz")


def test_pipelines_and_calibration(noisy):
    X, y, X_test, y_test = noisy
    pipe = make_pipeline(StandardScaler(), LinearMulticlassSVC(probability=True, random_state=0))
    assert pipe.fit(X, y).predict_proba(X_test).shape == (400, 3)
    for probability in (False, True):  # it asks for decision_function first
        inner = LinearMulticlassSVC(probability=probability, random_state=0)
        wrapped = CalibratedClassifierCV(inner, cv=3).fit(X, y)
        assert log_loss(y_test, wrapped.predict_proba(X_test)) < 0.8


def test_interruptions_leave_the_model_without_temperature(noisy, monkeypatch):
    X, y, *_ = noisy
    clf = LinearMulticlassSVC(probability=True, random_state=0)

    def stop(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(LinearMulticlassSVC, "_held_out_scores", stop)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.score(X, y) > 0.5
    assert not hasattr(clf, "predict_proba")


def test_costs_and_probabilities(noisy):
    X, y, X_test, _ = noisy
    costs = [[0, 3, 1], [1, 0, 1], [1, 1, 0]]
    clf = LinearMulticlassSVC(probability=True, cost_matrix=costs, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X_test).sum(axis=1), 1.0)


def test_log_probabilities_do_not_overflow():
    huge = np.array([[1e300, -1e300, 0.0]])
    with np.errstate(all="raise"):
        P = np.exp(np.maximum(log_probabilities(huge, 1e300), -700))
    np.testing.assert_allclose(P.sum(), 1.0)
    assert np.isfinite(log_probabilities(np.array([1e3, -1e3]), 1.0)).all()


@parametrize_with_checks(
    [
        LinearMulticlassSVC(probability=True, tol=1e-6, random_state=0),
        KernelMulticlassSVC(probability=True, tol=1e-6, random_state=0),
    ]
)
def test_conformance(estimator, check):
    if "sample_weight_equivalence" in str(check):
        pytest.skip("weighted and repeated examples are dealt into folds differently")
    check(estimator)


def test_a_small_problem_with_rare_classes():
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.zeros(12, int)
    y[0], y[1], y[2] = 1, 2, 2
    clf = LinearMulticlassSVC(probability=True, random_state=0).fit(X, y)
    assert clf.predict_proba(X).shape == (12, 3)
