"""C of a kernel machine by cross-validation: the choice of a grid search, on one kernel matrix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import polymargin
from polymargin import KernelMulticlassSVC, KernelMulticlassSVCCV, KernelSolver, get_loss
from polymargin.kernel_functions import resolve_gamma
from tests.estimators import (
    LOSS_PARAMS,
    loss_id,
    make_problem,
    make_sparse_problem,
    needs_callbacks,
)
from tests.estimators.test_conformance import run_at_the_default_tolerance
from tests.estimators.test_cv import Watcher

GRID = [0.1, 0.5, 2.0]
EXACT = {"gamma": 0.2, "tol": 1e-6, "random_state": 0}
NO_ROOM = 0.05  # megabytes: less than the matrix of the problems here
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)


@parametrize_with_checks([KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=3)])
def test_checks_pass_at_the_default_tolerance(estimator: Any, check: Any, request: Any) -> None:
    run_at_the_default_tolerance(check, estimator, request)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_sample_weight_equivalence_on_dense_data,
        estimator_checks.check_sample_weight_equivalence_on_sparse_data,
    ],
)
def test_weights_equal_repetitions_at_a_tight_tolerance(check):
    # gamma="scale" depends on which rows are repeated, the folds too
    estimator = KernelMulticlassSVCCV(Cs=[1.0], cv=3, tol=1e-10, gamma=0.1)
    check("KernelMulticlassSVCCV", estimator)


def grid_search(X, y, weight=None, **params):
    model = KernelMulticlassSVC(**params)
    search = GridSearchCV(model, {"C": GRID}, cv=StratifiedKFold(5))
    if weight is None:
        return search.fit(X, y)
    with config_context(enable_metadata_routing=True):  # without it, scores have weights since 1.7
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        return search.fit(X, y, sample_weight=weight)


def assert_same_search(clf, searched):
    found = np.array([searched.cv_results_[f"split{fold}_test_score"] for fold in range(5)])
    np.testing.assert_allclose(clf.scores_, found, rtol=1e-12)
    assert searched.best_params_["C"] == clf.C_
    assert clf.best_score_ == pytest.approx(searched.best_score_, rel=1e-12)


def full_search(**params):
    return KernelMulticlassSVCCV(Cs=GRID, early_stopping=False, **params)


# --- the choice ----------------------------------------------------------------------------------


@by_loss
@pytest.mark.parametrize("cache_size", [200, NO_ROOM], ids=["shared", "computed"])
def test_choice_and_scores_are_those_of_a_grid_search(params, cache_size):
    X, y = make_problem(120)
    flat = get_loss(params["loss"], params.get("top_k")).flat
    exact = EXACT if flat else EXACT | {"tol": 1e-12}  # no corner to end in
    clf = full_search(cache_size=cache_size, **params, **exact).fit(X, y)
    assert_same_search(clf, grid_search(X, y, **params, **exact))
    assert (clf.dual_gaps_ <= exact["tol"]).all()
    assert (clf.n_kernel_evaluations_ == 120**2) == (cache_size == 200)


def test_two_classes():
    X, y = make_problem(120, n_classes=2)
    for loss in ("crammer_singer", "one_vs_rest"):
        clf = full_search(loss=loss, **EXACT).fit(X, y)
        assert_same_search(clf, grid_search(X, y, loss=loss, **EXACT))
        assert clf.decision_function(X).shape == (120,)


@pytest.mark.parametrize("cache_size", [200, NO_ROOM], ids=["shared", "computed"])
def test_weights_are_those_of_a_grid_search(cache_size):
    """In training and in scoring; balanced classes are those of each training part."""
    X, y = make_problem(120)
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    weight[::5] = 0.0
    params = {"class_weight": "balanced", **EXACT}
    clf = full_search(cache_size=cache_size, **params).fit(X, y, weight)
    assert_same_search(clf, grid_search(X, y, weight=weight, **params))


def test_refit_is_the_fit_with_the_chosen_c():
    X, y = make_problem(120)
    for cache_size in (200, NO_ROOM):
        clf = full_search(cache_size=cache_size, **EXACT).fit(X, y)
        same = KernelMulticlassSVC(C=clf.C_, cache_size=cache_size, **EXACT).fit(X, y)
        for name in vars(same):
            if name.endswith("_"):
                assert hasattr(clf, name), name
        assert clf.objective_ == pytest.approx(same.objective_, rel=1e-6)
        assert clf.dual_gap_ <= clf.tol
        np.testing.assert_allclose(clf.decision_function(X), same.decision_function(X), atol=1e-3)
        np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
        np.testing.assert_array_equal(clf.predict_top_k(X, 2)[:, 0], clf.predict(X))
        if cache_size == NO_ROOM:  # computed the same way: the same bits
            np.testing.assert_array_equal(clf.dual_coef_, same.dual_coef_)


@pytest.mark.parametrize("kernel", ["poly", "callable"])
def test_other_kernels(kernel):
    X, y = make_problem(120)
    function = (lambda A, B: (0.1 * A @ B.T + 1) ** 2) if kernel == "callable" else kernel
    params = {**EXACT, "kernel": function, "coef0": 1.0, "degree": 2}
    shared = full_search(**params).fit(X, y)
    assert_same_search(shared, grid_search(X, y, **params))
    computed = full_search(cache_size=NO_ROOM, n_jobs=2, **params).fit(X, y)
    np.testing.assert_array_equal(computed.scores_, shared.scores_)
    assert computed.C_ == shared.C_
    apart = (computed.dual_gap_ + shared.dual_gap_) * shared.objective_
    assert abs(computed.objective_ - shared.objective_) <= apart


def test_sparse_rows_give_what_dense_ones_do():
    """Up to an example of 24 that is close to the border."""
    X, y = make_sparse_problem(120)
    clf = full_search(**EXACT).fit(X, y)
    assert sparse.issparse(clf.support_vectors_)
    dense = full_search(**EXACT).fit(X.toarray(), y)
    np.testing.assert_allclose(clf.scores_, dense.scores_, atol=0.05)
    assert clf.objective_ == pytest.approx(dense.objective_, rel=2e-6)
    computed = full_search(cache_size=NO_ROOM, **EXACT).fit(X, y)
    np.testing.assert_allclose(clf.scores_, computed.scores_, atol=0.05)


def test_a_precomputed_kernel_equals_computing_it():
    X, y = make_problem(120)
    K = pairwise_kernels(X, metric="rbf", gamma=EXACT["gamma"])
    computed = full_search(**EXACT).fit(X, y)
    given = full_search(kernel="precomputed", cache_size=NO_ROOM, **EXACT).fit(K, y)
    np.testing.assert_array_equal(given.scores_, computed.scores_)
    assert given.C_ == computed.C_
    assert given.n_kernel_evaluations_ == 0
    np.testing.assert_allclose(given.decision_function(K), computed.decision_function(X), atol=1e-3)
    assert_same_search(given, grid_search(K, y, kernel="precomputed", **EXACT))


def test_float32_is_kept():
    X, y = make_problem(120)
    clf = full_search(gamma=0.2, random_state=0).fit(X.astype(np.float32), y)
    assert clf.dual_coef_.dtype == clf.decision_function(X).dtype == np.float32
    exact = full_search(**EXACT).fit(X, y)
    np.testing.assert_allclose(clf.scores_.mean(axis=0), exact.scores_.mean(axis=0), atol=0.02)


def test_a_number_of_values_spans_what_the_kernel_can_tell_apart():
    X, y = make_problem(100)
    clf = KernelMulticlassSVCCV(Cs=3, cv=2, early_stopping=False).fit(X, y)
    np.testing.assert_allclose(clf.Cs_, [0.01, 1.0, 100.0])
    assert clf.gamma_ == resolve_gamma("scale", X)
    clf = KernelMulticlassSVCCV(Cs=3, cv=2, kernel="linear", refit=False).fit(X, y)
    np.testing.assert_allclose(clf.Cs_, np.array([0.01, 1, 100]) / np.mean(np.sum(X**2, axis=1)))


def test_threads_change_nothing():
    X, y = make_problem(120)
    for cache_size in (200, NO_ROOM):
        params = {"Cs": GRID, "random_state": 0, "cache_size": cache_size}
        one = KernelMulticlassSVCCV(**params).fit(X, y)
        for early_stopping in (True, False):
            many = KernelMulticlassSVCCV(**params, n_jobs=3, early_stopping=early_stopping)
            many.fit(X, y)
            tried = ~np.isnan(one.scores_)
            np.testing.assert_array_equal(many.scores_[tried], one.scores_[tried])
            np.testing.assert_array_equal(many.dual_gaps_[tried], one.dual_gaps_[tried])
            np.testing.assert_array_equal(many.dual_coef_, one.dual_coef_)


# --- the rest of the contract --------------------------------------------------------------------


def test_early_stopping_leaves_the_largest_values_out():
    X, y = make_problem()
    clf = KernelMulticlassSVCCV(
        Cs=[*GRID, 10.0], scoring=lambda estimator, X, y: -abs(np.log10(estimator.C / 0.5))
    ).fit(X, y)
    assert clf.C_ == 0.5
    np.testing.assert_array_equal(np.isnan(clf.scores_), [[False] * 3 + [True]] * 5)
    np.testing.assert_array_equal(np.isnan(clf.dual_gaps_), np.isnan(clf.scores_))


def test_groups_and_metadata():
    X, y = make_problem(120)
    groups, weight = np.arange(120) % 10, np.arange(120, dtype=float)
    plain = KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=GroupKFold(4), random_state=0)
    plain.fit(X, y, weight, groups=groups)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        clf = clone(plain).set_params(scoring=scorer).set_fit_request(sample_weight=True)
        clf.fit(X, y, sample_weight=weight, groups=groups)
        weighted = clf.score(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.scores_, plain.scores_)
    assert weighted == pytest.approx(np.average(clf.predict(X) == y, weights=weight))
    with pytest.raises(ValueError, match="groups"):
        KernelMulticlassSVCCV(Cs=[0.1], cv=GroupKFold(4)).fit(X, y)
    with pytest.raises(ValueError, match="prices"):
        KernelMulticlassSVCCV(Cs=[0.1]).fit(X, y, prices=groups)


@needs_callbacks
def test_callbacks_and_lines(capsys):
    X, y = make_problem()
    watcher = Watcher()
    clf = KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=3, verbose=1).set_callbacks(watcher).fit(X, y)
    assert watcher.names == ["fold and C"] * 6 + ["search", "refit", "fit"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("fold" in line and "working sets" in line for line in lines)
    clf = KernelMulticlassSVCCV(Cs=GRID, cv=3).set_callbacks(Watcher(stop_after=4)).fit(X, y)
    assert np.isnan(clf.scores_[:, 2:]).all() and clf.C_ in GRID[:2]


class Interrupted(KernelSolver):
    """Ctrl-C comes in the first round of a call that is not one of the first `after`."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def solve(self, problem, **options):
        self.after -= 1
        if self.after < 0:

            def interrupt(record):
                raise KeyboardInterrupt

            options["progress"] = interrupt
        return super().solve(problem, **options)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ctrl_c_in_the_search_leaves_the_estimator_as_it_was(n_jobs):
    X, y = make_problem()
    clf = KernelMulticlassSVCCV(Cs=[0.1], cv=3, random_state=0, n_jobs=n_jobs).fit(X, y)
    before = {name: value for name, value in vars(clf).items() if name.endswith("_")}
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(Cs=GRID, solver=Interrupted(4)).fit(X, y)
    assert {name for name in vars(clf) if name.endswith("_")} == set(before)
    for name, value in before.items():
        assert getattr(clf, name) is value, name


def test_ctrl_c_in_the_refit_keeps_the_model_so_far():
    X, y = make_problem()
    clf = KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, early_stopping=False, tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(solver=Interrupted(4)).fit(X, y)
    assert clf.C_ in (0.1, 1.0)
    assert clf.score(X, y) > 0.5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": []}, "empty"),
        ({"Cs": [1.0, -2.0]}, "positive"),
        ({"Cs": [1.0, 1.0]}, "duplicates"),
        ({"Cs": 0}, "Cs"),
        ({"cv": 1}, "k-fold|n_splits"),
        ({"cv": [(np.arange(100), [])]}, "Fold 1 has no examples to score"),
        ({"cv": [([], np.arange(100))]}, "Fold 1 has no examples to train on"),
        ({"scoring": "speed"}, "scoring|speed"),
        ({"scoring": "top_4_accuracy"}, "n_classes - 1 = 3"),
        ({"scoring": lambda *args: np.nan}, "gave nan"),
        ({"kernel": "cosine"}, "kernel"),
        ({"kernel": "precomputed"}, "square"),
        ({"kernel": lambda A, B: np.zeros((2, 3))}, "shape"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "NaN"),
        ({"kernel": lambda A, B: -A @ B.T}, "not positive"),
        ({"cache_size": 0}, "cache_size"),
        ({"tol": -1.0}, "tol"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"loss": "top_k_beta"}, "needs top_k"),
        ({"solver": object()}, "solver"),
        ({"solver": KernelSolver(working_set=0)}, "working_set"),
    ],
)
def test_bad_input_is_refused_and_the_model_stays(params, message):
    X, y = make_problem(100)
    clf = KernelMulticlassSVCCV(Cs=[0.1], random_state=0).fit(X, y)
    dual, C = clf.dual_coef_, clf.C_
    with pytest.raises(ValueError, match=message):
        clf.set_params(**params).fit(X, y)
    assert clf.dual_coef_ is dual and clf.C_ == C


def test_folds_without_a_class_are_refused():
    X, _ = make_problem(100)
    with pytest.raises(ValueError, match=r"Fold 1 has no example of the class\(es\) \[0\]"):
        KernelMulticlassSVCCV(Cs=[0.1], cv=KFold(4)).fit(X, np.repeat(np.arange(4), 25))


def test_without_refit_there_is_no_model():
    X, y = make_problem()
    clf = KernelMulticlassSVCCV(Cs=[0.1, 1.0], random_state=0).fit(X, y)
    clf.set_params(refit=False).fit(X, y)
    assert clf.C_ in (0.1, 1.0)
    for method in (clf.predict, clf.decision_function, clf.predict_top_k):
        with pytest.raises(NotFittedError):
            method(X)


def test_folds_that_do_not_converge_are_counted_where_fit_was_called():
    X, y = make_problem(120)
    clf = KernelMulticlassSVCCV(Cs=[1e-6, 100.0], cv=3, tol=1e-9, max_iter=1, refit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.set_params(early_stopping=False).fit(X, y)
    (warning,) = (one for one in caught if one.category is ConvergenceWarning)
    assert "of 6 models" in str(warning.message)
    assert warning.filename == __file__


def test_it_can_be_saved(tmp_path):
    X, y = make_problem()
    clf = KernelMulticlassSVCCV(Cs=[0.1, 1.0], cv=3, random_state=0).fit(X, y)
    polymargin.save(clf, tmp_path / "model")
    loaded = polymargin.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(loaded.scores_, clf.scores_)
