"""A warm start of the same problem goes on where the fit ended, as if it had not ended."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from polymargin import DualSolver, LinearMulticlassSVC
from polymargin.solvers.engines.linear import LinearEngine


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y


@pytest.fixture
def resumed(monkeypatch):
    """Counts the fits that go on from the state of another."""
    count = []
    load = LinearEngine.load_state_dict

    def counting(self, *arguments):
        count.append(1)
        return load(self, *arguments)

    monkeypatch.setattr(LinearEngine, "load_state_dict", counting)
    return count


def passes(X, y, tols, **settings):
    """Those of fits to one tolerance after the other, and those of one to the last from nothing."""
    settings = {"random_state": 0, "max_iter": 100_000} | settings
    clf = LinearMulticlassSVC(**settings, warm_start=True)
    made = []
    for tol in tols:
        made.append(clf.set_params(tol=tol).fit(X, y).n_iter_)
        assert clf.dual_gap_ <= tol
    cold = LinearMulticlassSVC(**settings, tol=tols[-1]).fit(X, y)
    assert clf.objective_ == pytest.approx(cold.objective_, rel=2 * tols[-1])
    return made, cold.n_iter_


def test_going_on_costs_what_a_cold_fit_would_still_have_to_do(digits, resumed):
    made, cold = passes(*digits, (1e-1, 1e-2, 1e-3), C=1.0)
    assert sum(made) <= 1.05 * cold  # it took twice as many when the acceleration began anew
    assert made[1] + made[2] < 0.5 * made[0]
    assert len(resumed) == 2


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss": "weston_watkins"},
        {"loss": "one_vs_rest", "n_jobs": 2},
        {"loss": "softmax", "tols": (1e-2, 1e-4)},
        {"loss": "top_k_alpha", "top_k": 2},
        {"solver": DualSolver(newton=False)},
        {"solver": DualSolver(newton=True), "dense": True},
        {"solver": DualSolver(schedule="sdm")},
        {"solver": DualSolver(precision="single")},
        {"dtype": np.float32},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())) or "default",
)
def test_in_every_setting_it_goes_on(digits, resumed, layout, settings):
    settings = dict(settings)
    dense, tols = settings.pop("dense", False), settings.pop("tols", (1e-1, 1e-3))
    if dense and layout is not np.asarray:
        pytest.skip("the Newton phase is for dense rows")
    X, y = digits
    X = layout((X[:600] / 16).astype(settings.pop("dtype", np.float64)))
    made, cold = passes(X, y[:600], tols, C=1.0, **settings)
    assert len(resumed) == 1
    assert sum(made) <= 1.3 * cold + 5  # certificates fall on other passes


def test_more_passes_go_on_too(digits, resumed):
    X, y = digits
    clf = LinearMulticlassSVC(C=1.0, max_iter=30, random_state=0, warm_start=True)
    with pytest.warns(match="max_iter"):
        clf.fit(X / 16, y)
    clf.set_params(max_iter=1000).fit(X / 16, y)
    cold = LinearMulticlassSVC(C=1.0, random_state=0).fit(X / 16, y)
    assert len(resumed) == 1
    assert 30 + clf.n_iter_ <= 1.1 * cold.n_iter_


def test_a_copy_and_a_pickle_go_on_as_the_model_itself(digits):
    X, y = digits[0] / 16, digits[1]
    clf = LinearMulticlassSVC(C=0.1, tol=1e-2, random_state=0, warm_start=True).fit(X, y)
    others = [copy.deepcopy(clf), pickle.loads(pickle.dumps(clf))]
    clf.set_params(tol=1e-5).fit(X, y)
    for other in others:
        other.set_params(tol=1e-5).fit(X, y)
        np.testing.assert_array_equal(other.coef_, clf.coef_)
        assert other.n_iter_ == clf.n_iter_


def test_fitted_attributes_may_be_edited_before_it_goes_on(digits):
    X, y = digits[0] / 16, digits[1]
    clf = LinearMulticlassSVC(C=0.1, tol=1e-2, random_state=0, warm_start=True).fit(X, y)
    twin = copy.deepcopy(clf)
    clf.coef_ *= 7.0
    clf.set_params(tol=1e-5).fit(X, y)
    twin.set_params(tol=1e-5).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, twin.coef_)


@pytest.mark.parametrize(
    "change", ["values", "C", "weights", "labels", "solver", "loss", "threads"]
)
def test_another_problem_is_begun_anew(digits, resumed, change):
    X, y = digits[0] / 16, digits[1].copy()
    weight = None
    clf = LinearMulticlassSVC(C=0.1, tol=1e-3, random_state=0, warm_start=True).fit(X, y)
    if change == "values":
        X[0, 20] += 0.5  # in place: the same array
    elif change == "labels":
        y[0] = (y[0] + 1) % 10
    elif change == "weights":
        weight = np.linspace(0.5, 1.5, len(y))
    elif change == "solver":
        clf.set_params(solver=DualSolver(shrinking=False))
    else:
        new = {"C": {"C": 0.2}, "loss": {"loss": "weston_watkins"}, "threads": {"n_jobs": 2}}
        clf.set_params(**new[change])
    clf.set_params(tol=1e-5).fit(X, y, weight)
    assert not resumed
    cold = LinearMulticlassSVC(**clf.get_params(deep=False)).fit(X, y, weight)
    assert clf.dual_gap_ <= 1e-5
    assert clf.objective_ == pytest.approx(cold.objective_, rel=2e-5)


def test_who_does_not_ask_keeps_nothing(digits):
    X, y = digits
    clf = LinearMulticlassSVC(C=0.001, random_state=0).fit(X, y)
    assert not hasattr(clf, "_warm_start_state")
