"""partial_fit beside fit, and with bad input: a clear error, and the model as it was."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from polymargin import DualSolver, LinearMulticlassSVC, StreamSolver
from polymargin.solvers.stream import StreamModel
from tests.estimators import make_problem, make_sparse_problem
from tests.estimators.streams import bits, by_loss, state_of
from tests.reference.objective import loss_values

# --- what it is next to fit ----------------------------------------------------------------------


@by_loss
def test_one_pass_is_one_pass_of_fit(params):
    X, y = make_sparse_problem(300)
    solver = DualSolver(certify=False, shuffle=False, acceleration=False, shrinking=False)
    fit = LinearMulticlassSVC(**params, max_iter=1, solver=solver).fit(X, y)
    clf = LinearMulticlassSVC(**params).partial_fit(X, y, classes=np.unique(y))
    np.testing.assert_allclose(clf.coef_, fit.coef_, atol=1e-12)
    np.testing.assert_allclose(clf.intercept_, fit.intercept_, atol=1e-12)


@by_loss
def test_a_large_reservoir_comes_close_to_the_optimum(params):
    X, y = make_problem(200)
    best = LinearMulticlassSVC(**params, C=0.1, tol=1e-6).fit(X, y)

    def objective(clf):
        W = np.column_stack([clf.coef_, clf.intercept_])
        scores = X @ clf.coef_.T + clf.intercept_
        k = params.get("top_k")
        return 0.5 * (W**2).sum() + 0.1 * loss_values(scores, y, params["loss"], k).sum()

    assert objective(best) == pytest.approx(best.objective_, rel=1e-6)
    stream = StreamSolver(reservoir=200, revisits=100)
    clf = LinearMulticlassSVC(**params, C=0.1, random_state=0, stream=stream)
    clf.partial_fit(X, y, classes=range(4))
    plain = LinearMulticlassSVC(**params, C=0.1).partial_fit(X, y, classes=range(4))
    assert objective(clf) - best.objective_ < 0.25 * (objective(plain) - best.objective_)


@by_loss
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_stream_goes_on_from_a_fit(params, n_classes):
    X, y = make_problem(200, n_classes=n_classes)
    clf = LinearMulticlassSVC(**params, C=0.1, tol=1e-8).fit(X, y)
    at_fit = clf.decision_function(X)
    coef = clf.coef_
    nothing = np.zeros((1, X.shape[1]))
    clf.set_params(fit_intercept=True)
    clf.partial_fit(nothing, [0], sample_weight=[0.0])  # absent: only the form changes
    np.testing.assert_allclose(clf.coef_, coef, atol=1e-12)
    np.testing.assert_allclose(clf.decision_function(X), at_fit, atol=1e-10)
    for name in ("objective_", "dual_gap_", "history_"):
        assert not hasattr(clf, name)
    clf.partial_fit(np.full((1, X.shape[1]), 9.0), [9])
    assert clf.classes_.tolist() == [*range(n_classes), 9]
    assert clf.predict(np.full((1, X.shape[1]), 9.0)).tolist() == [9]


def test_fit_after_a_stream_starts_afresh():
    X, y = make_problem()
    clean = LinearMulticlassSVC(random_state=0, C=0.1).fit(X, y)
    clf = LinearMulticlassSVC(random_state=0, C=0.1, warm_start=True)
    clf.partial_fit(X[:, :3], y).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, clean.coef_)
    assert not hasattr(clf, "n_samples_seen_") and clf.dual_gap_ <= 1e-3
    assert sorted(vars(clf)) == sorted({**vars(clean), "_warm_start_state": 0})


def test_c_and_class_weight_may_change_between_batches():
    X, y = make_problem()
    clf = LinearMulticlassSVC(C=0.1, class_weight={0: 2.0, 9: 7.0}).partial_fit(X[:60], y[:60])
    clf.set_params(C=0.3, class_weight=None).partial_fit(X[60:], y[60:])
    weight = np.where(np.arange(120) < 60, np.where(y == 0, 0.2, 0.1), 0.3)
    same = LinearMulticlassSVC(C=1.0).partial_fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(clf.coef_, same.coef_, atol=1e-12)


def test_averages_of_a_sparsified_stream_and_memory_of_the_reservoir():
    X, y = make_problem()
    clf = LinearMulticlassSVC(stream=StreamSolver(reservoir=5), C=0.01).partial_fit(X, y)
    assert clf._stream.model.n_kept <= 5
    coef = clf.coef_
    clf.sparsify()
    assert sparse.issparse(clf.coef_)
    clf.partial_fit(X, y)
    assert not sparse.issparse(clf.coef_) and not np.array_equal(clf.coef_, coef)


def test_ctrl_c_keeps_the_examples_before_it(monkeypatch):
    X, y = make_problem()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    learn = StreamModel.learn

    def interrupted(self, *rows):
        learn(self, *rows)
        if self.n_columns == 3:
            raise KeyboardInterrupt

    clf = LinearMulticlassSVC()
    with monkeypatch.context() as patch:
        patch.setattr(StreamModel, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.partial_fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.n_samples_seen_ == np.count_nonzero(y < 3)
    clf.partial_fit(X[y == 3], y[y == 3])
    assert bits(clf) == bits(LinearMulticlassSVC().partial_fit(X, y))


def test_memory_does_not_grow_with_the_stream():
    rng = np.random.default_rng(0)
    clf = LinearMulticlassSVC(stream=StreamSolver(average=True, reservoir=50))
    sizes = []
    for n in (1000, 9000):
        X, y = rng.standard_normal((n, 6)), rng.integers(0, 5, n)
        sizes.append(len(pickle.dumps(clf.partial_fit(X, y))))
    assert clf._stream.model.n_kept == 50
    assert sizes[1] < 1.1 * sizes[0]


# --- bad input: a clear error, and the model as it was --------------------------------------------


def _bad_batches():
    X, y = make_problem()
    nan, inf = X.copy(), X.copy()
    nan[7, 1], inf[7, 1] = np.nan, np.inf
    weight = np.ones(len(y))
    return {
        "text": ((X, y.astype(str)), {}, "Labels of type"),
        "features": ((X[:, :5], y), {}, "features"),
        "nan": ((nan, y), {}, "NaN"),
        "inf": ((inf, y), {}, "infinity"),
        "negative weight": ((X, y), {"sample_weight": -weight}, "[Nn]egative"),
        "weights of another length": ((X, y), {"sample_weight": weight[:3]}, "sample_weight"),
        "lengths": ((X, y[:5]), {}, "inconsistent"),
        "overflow": ((X * 1e200, y), {}, "overflow"),
        "fractions": ((X, y + 0.5), {}, "Unknown label type"),
        "empty": ((X[:0], y[:0]), {}, "0 sample"),
        "two-dimensional": ((X[0], y[0]), {}, "2D array"),
        "lost class": ((X, y), {"classes": [0, 1]}, "must contain"),
    }


@pytest.mark.parametrize("name", _bad_batches())
def test_bad_input_leaves_the_model_as_it_was(name):
    X, y = make_problem()
    clf = LinearMulticlassSVC(random_state=0, stream=StreamSolver(average=True, reservoir=9))
    clf.partial_fit(X, y)
    before = state_of(clf)
    arguments, keywords, message = _bad_batches()[name]
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(*arguments, **keywords)
    assert state_of(clf) == before
    again = LinearMulticlassSVC(random_state=0, stream=StreamSolver(average=True, reservoir=9))
    again.partial_fit(X, y).partial_fit(X, y)
    assert bits(clf.partial_fit(X, y)) == bits(again)


def test_unannounced_labels():
    X, y = make_problem()
    clf = LinearMulticlassSVC().partial_fit(X[y < 3], y[y < 3], classes=[0, 1, 2])
    before = state_of(clf)
    with pytest.raises(ValueError, match=r"not announced: \[3\]"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="not the set of classes"):
        clf.partial_fit(X[y < 3], y[y < 3], classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"not announced: \[3\]"):
        LinearMulticlassSVC().partial_fit(X, y, classes=[0, 1, 2])
    assert state_of(clf) == before
    clf.partial_fit(X[y < 3], y[y < 3], classes=[2, 1, 0])


def test_an_open_stream_may_announce_its_classes_later():
    X, y = make_problem()
    clf = LinearMulticlassSVC().partial_fit(X[y < 2], y[y < 2])
    clf.partial_fit(X[y < 3], y[y < 3], classes=[0, 1, 2, 3])
    assert clf.classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="not announced"):
        clf.partial_fit(X, y + 1)


@pytest.mark.parametrize(
    "change",
    [{"loss": "weston_watkins"}, {"fit_intercept": False}, {"stream": StreamSolver(average=True)}],
)
def test_what_must_not_change_along_a_stream(change):
    X, y = make_problem()
    clf = LinearMulticlassSVC().partial_fit(X, y)
    before = bits(clf)
    with pytest.raises(ValueError, match="must not change along a stream"):
        clf.set_params(**change).partial_fit(X, y)
    assert bits(clf) == before


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"average": 3}, "average"),
        ({"reservoir": -1}, "reservoir"),
        ({"reservoir": 2.5}, "reservoir"),
        ({"revisits": 0}, "revisits"),
    ],
)
def test_settings_that_mean_nothing(chosen, message):
    X, y = make_problem()
    with pytest.raises(ValueError, match=message):
        LinearMulticlassSVC(stream=StreamSolver(**chosen)).partial_fit(X, y)


def test_balanced_weights_need_all_labels():
    X, y = make_problem()
    clf = LinearMulticlassSVC(class_weight="balanced")
    with pytest.raises(ValueError, match="partial_fit"):
        clf.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)
    with pytest.raises(ValueError, match="weight zero"):
        LinearMulticlassSVC().partial_fit(X, y, sample_weight=np.zeros(len(y)))
    assert not hasattr(clf, "coef_")


def test_settings_are_nested_parameters():
    clf = LinearMulticlassSVC(stream=StreamSolver())
    clf.set_params(stream__average=True)
    assert clone(clf).stream.average
