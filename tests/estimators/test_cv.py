"""C by cross-validation: the choice of a grid search, from shared data, in threads."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer, top_k_accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import (
    DualSolver,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    RegularizationPathDisplay,
)
from polymargin.estimators._search import FoldStep, has_peaked, search
from tests.estimators import (
    LOSS_PARAMS,
    loss_id,
    make_problem,
    make_sparse_problem,
    needs_callbacks,
)

GRID = [0.003, 0.01, 0.03, 0.1, 0.3]
EXACT = {"tol": 1e-8, "max_iter": 20_000, "random_state": 0}
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)


@parametrize_with_checks([LinearMulticlassSVCCV(Cs=[0.001, 0.01], cv=3, tol=1e-10)])
def test_every_check_passes(estimator: Any, check: Any) -> None:
    check(estimator)


def grid_search(X, y, scoring=None, weight=None, **params):
    model = LinearMulticlassSVC(**params)
    search = GridSearchCV(model, {"C": GRID}, scoring=scoring, cv=StratifiedKFold(5))
    if weight is None:
        return search.fit(X, y)
    with config_context(enable_metadata_routing=True):  # without it, scores have weights since 1.7
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        return search.fit(X, y, sample_weight=weight)


def assert_same_choice(clf, searched):
    """The scores of a grid search, and its choice unless means are all but equal."""
    means = searched.cv_results_["mean_test_score"]
    np.testing.assert_allclose(clf.scores_.mean(axis=0), means, atol=4e-3)  # one example of 300
    chosen = float(means[list(clf.Cs_).index(clf.C_)])
    assert searched.best_params_["C"] == clf.C_ or means.max() - chosen < 1e-3


# --- the choice ----------------------------------------------------------------------------------


@by_loss
def test_choice_and_scores_are_those_of_a_grid_search(params):
    X, y = make_problem(300)
    X = sparse.csr_array(X) if params["loss"] == "weston_watkins" else X
    clf = LinearMulticlassSVCCV(Cs=GRID, early_stopping=False, **params, **EXACT).fit(X, y)
    assert_same_choice(clf, grid_search(X, y, **params, **EXACT))
    assert (clf.dual_gaps_ <= EXACT["tol"]).all()
    assert clf.best_score_ == clf.scores_.mean(axis=0).max()


def test_weights_are_those_of_a_grid_search():
    """In training and in scoring; balanced classes are those of each training part."""
    X, y = make_problem(300)
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    weight[::5] = 0.0
    params = {"class_weight": "balanced", **EXACT}
    clf = LinearMulticlassSVCCV(Cs=GRID, early_stopping=False, **params).fit(X, y, weight)
    assert_same_choice(clf, grid_search(X, y, weight=weight, **params))


def test_refit_is_the_fit_with_the_chosen_c():
    X, y = make_problem(200)
    clf = LinearMulticlassSVCCV(Cs=GRID, random_state=3, store_dual=True).fit(X, y)
    same = LinearMulticlassSVC(C=clf.C_, random_state=3, store_dual=True).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, same.coef_)
    np.testing.assert_array_equal(clf.intercept_, same.intercept_)
    np.testing.assert_array_equal(clf.dual_coef_.toarray(), same.dual_coef_.toarray())
    np.testing.assert_array_equal(clf.predict_top_k(X, 2), same.predict_top_k(X, 2))
    assert clf.dual_gap_ == same.dual_gap_ <= clf.tol
    assert clf.n_iter_ == same.n_iter_


def test_threads_change_nothing():
    X, y = make_sparse_problem(300)
    one = LinearMulticlassSVCCV(Cs=GRID, random_state=0).fit(X, y)
    for early_stopping in (True, False):
        two = LinearMulticlassSVCCV(
            Cs=GRID, random_state=0, n_jobs=3, early_stopping=early_stopping
        ).fit(X, y)
        tried = ~np.isnan(one.scores_)
        np.testing.assert_array_equal(two.scores_[tried], one.scores_[tried])
        np.testing.assert_array_equal(two.dual_gaps_[tried], one.dual_gaps_[tried])


def test_repeated_rows_of_a_fold_count_as_often():
    X, y = make_problem(120)
    train = np.concatenate([np.arange(80), np.arange(40)])
    splits = [(train, np.arange(80, 120)), (np.arange(40, 120), np.arange(40))]
    clf = LinearMulticlassSVCCV(Cs=[0.1], cv=splits, **EXACT).fit(X, y)
    model = LinearMulticlassSVC(C=0.1, **EXACT).fit(X[train], y[train])
    assert clf.scores_[0, 0] == pytest.approx(model.score(X[80:], y[80:]), abs=0.03)


def test_boolean_folds_are_understood():
    X, y = make_problem(120)
    half = np.arange(120) % 2 == 0
    clf = LinearMulticlassSVCCV(Cs=[0.1], cv=[(half, ~half), (~half, half)], **EXACT).fit(X, y)
    same = LinearMulticlassSVCCV(Cs=[0.1], cv=PredefinedSplit((~half).astype(int)), **EXACT).fit(
        X, y
    )
    np.testing.assert_allclose(np.sort(clf.scores_[:, 0]), np.sort(same.scores_[:, 0]), atol=0.02)


# --- no copies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_folds_share_x_and_never_visit_what_they_hold_out(container, monkeypatch):
    from polymargin.solvers.state import State

    X, y = make_problem(150)
    X = container(X)
    seen: list[tuple[Any, set[int]]] = []
    sweep, begin = State.sweep, State.__init__

    def watched_init(self, problem, *args):
        begin(self, problem, *args)
        seen.append((problem, set()))
        self.visits = seen[-1][1]

    def watched_sweep(self, order, *args, **kwargs):
        self.visits.update(order.tolist())
        return sweep(self, order, *args, **kwargs)

    monkeypatch.setattr(State, "__init__", watched_init)
    monkeypatch.setattr(State, "sweep", watched_sweep)
    LinearMulticlassSVCCV(Cs=[0.1, 1.0], refit=False).fit(X, y)
    assert len(seen) == 5  # one engine per fold, for all values of C
    shared = {id(problem.X) for problem, _ in seen}
    assert len(shared) == 1
    kept = seen[0][0].X
    assert np.shares_memory(
        kept.data if sparse.issparse(X) else kept, X.data if sparse.issparse(X) else X
    )
    for (_, visits), (train, _) in zip(seen, StratifiedKFold(5).split(X, y), strict=True):
        assert visits == set(train.tolist())


# --- early stopping ------------------------------------------------------------------------------


def test_a_peak_is_one_that_folds_agree_on():
    up = np.array([[0.1, 0.2, 0.3], [0.1, 0.25, 0.35]])
    assert not has_peaked(up)
    assert not has_peaked(up[:, :1])
    falls = np.array([[0.5, 0.4], [0.5, 0.41], [0.51, 0.4]])
    assert has_peaked(falls)
    unsure = np.array([[0.5, 0.6], [0.5, 0.3], [0.5, 0.55]])
    assert not has_peaked(unsure)
    twice = np.array([[0.5, 0.48, 0.47], [0.5, 0.495, 0.49], [0.5, 0.5, 0.495]])
    assert not has_peaked(twice[:, :2])
    assert has_peaked(twice)
    assert not has_peaked(np.array([[0.5, 0.1, 0.1]]))  # one fold has no error
    assert not has_peaked(np.full((3, 4), 0.5))  # equal is not worse


def test_early_stopping_leaves_the_largest_values_out():
    X, y = make_problem()

    def peak(estimator, X, y):
        return -abs(np.log10(estimator.C) + 2)

    clf = LinearMulticlassSVCCV(Cs=GRID, scoring=peak, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.scores_[:, :3], [[np.log10(0.3), 0, -np.log10(3)]] * 5)
    assert np.isnan(clf.scores_[:, 3:]).all()
    assert np.isnan(clf.dual_gaps_[:, 3:]).all()
    assert clf.C_ == 0.01
    clf.set_params(early_stopping=False).fit(X, y)
    assert not np.isnan(clf.scores_).any()
    assert clf.C_ == 0.01


# --- scoring -------------------------------------------------------------------------------------


def test_top_k_accuracy_by_name_and_by_scorer():
    X, y = make_problem(200)
    named = LinearMulticlassSVCCV(Cs=GRID, scoring="top_2_accuracy", random_state=0).fit(X, y)
    scorer = make_scorer(top_k_accuracy_score, k=2, response_method="decision_function")
    same = LinearMulticlassSVCCV(Cs=GRID, scoring=scorer, random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.scores_, same.scores_)
    assert named.C_ == same.C_
    hits = (named.predict_top_k(X, 2) == y[:, None]).any(axis=1)
    assert named.score(X, y) == pytest.approx(hits.mean())
    weight = np.arange(len(y), dtype=float)
    assert named.score(X, y, weight) == pytest.approx(np.average(hits, weights=weight))


def test_any_scorer():
    X, y = make_problem(200)

    def wrong(estimator, X, y):
        return -np.mean(estimator.predict(X) != y)

    ours = LinearMulticlassSVCCV(Cs=GRID, scoring=wrong, random_state=0)
    plain = LinearMulticlassSVCCV(Cs=GRID, random_state=0).fit(X, y, np.ones(len(y)))
    np.testing.assert_allclose(ours.fit(X, y, np.ones(len(y))).scores_, plain.scores_ - 1)
    assert ours.score(X, y) == pytest.approx(plain.score(X, y) - 1)
    f1 = LinearMulticlassSVCCV(Cs=GRID, scoring="f1_macro", **EXACT, early_stopping=False).fit(X, y)
    assert_same_choice(f1, grid_search(X, y, "f1_macro", **EXACT))


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("top_0_accuracy", "at least 1"),
        ("top_4_accuracy", "n_classes - 1 = 3"),
        ("speed", "scoring|speed"),
        (lambda *args: np.nan, "gave nan"),
    ],
    ids=["top_0", "top_4", "unknown", "nan"],
)
def test_bad_scorers_are_refused(scoring, message):
    X, y = make_problem()
    with pytest.raises(ValueError, match=message):
        LinearMulticlassSVCCV(Cs=[0.1], scoring=scoring).fit(X, y)


# --- groups and routing --------------------------------------------------------------------------


def test_groups_go_to_the_splitter():
    X, y = make_problem(200)
    groups = np.arange(200) % 10
    clf = LinearMulticlassSVCCV(Cs=[0.1], cv=GroupKFold(4), **EXACT).fit(X, y, groups=groups)
    splits = list(GroupKFold(4).split(X, y, groups))
    same = LinearMulticlassSVCCV(Cs=[0.1], cv=splits, **EXACT).fit(X, y)
    np.testing.assert_array_equal(clf.scores_, same.scores_)
    with pytest.raises(ValueError, match="groups"):
        LinearMulticlassSVCCV(Cs=[0.1], cv=GroupKFold(4)).fit(X, y)
    with pytest.raises(ValueError, match="prices"):
        LinearMulticlassSVCCV(Cs=[0.1]).fit(X, y, prices=groups)


def test_metadata_are_routed():
    X, y = make_problem(200)
    groups, weight = np.arange(200) % 10, np.arange(200, dtype=float)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        clf = LinearMulticlassSVCCV(Cs=GRID, cv=GroupKFold(4), scoring=scorer, random_state=0)
        clf.set_fit_request(sample_weight=True)
        clf.fit(X, y, sample_weight=weight, groups=groups)
        weighted = clf.score(X, y, sample_weight=weight)
    plain = LinearMulticlassSVCCV(Cs=GRID, cv=GroupKFold(4), random_state=0)
    plain.fit(X, y, weight, groups=groups)
    np.testing.assert_array_equal(clf.scores_, plain.scores_)
    assert weighted == pytest.approx(np.average(clf.predict(X) == y, weights=weight))


# --- progress and Ctrl-C -------------------------------------------------------------------------


class Watcher:
    """A callback that counts tasks and may ask to stop."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.names: list[str] = []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.names.append(context.task_name)
        return self.names.count("fold and C") == self.stop_after

    def teardown(self, estimator, context):
        pass


@needs_callbacks
def test_callbacks_see_every_fold_and_c():
    X, y = make_problem()
    watcher = Watcher()
    clf = LinearMulticlassSVCCV(Cs=[0.01, 0.1], cv=3, n_jobs=2).set_callbacks(watcher).fit(X, y)
    assert watcher.names == ["fold and C"] * 6 + ["search", "refit", "fit"]
    assert clf.scores_.shape == (3, 2)


@needs_callbacks
def test_a_callback_ends_the_search():
    X, y = make_problem()
    clf = LinearMulticlassSVCCV(Cs=GRID, cv=3).set_callbacks(Watcher(stop_after=4)).fit(X, y)
    assert not np.isnan(clf.scores_[:, :2]).any()
    assert np.isnan(clf.scores_[:, 2:]).all()
    assert clf.C_ in GRID[:2]
    assert clf.dual_gap_ <= clf.tol


def test_verbose_prints_a_line_per_fold_and_c(capsys):
    X, y = make_problem()
    LinearMulticlassSVCCV(Cs=[0.01, 0.1], cv=3, verbose=1, refit=False).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("fold" in line and "score" in line and "gap" in line for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ctrl_c_in_the_search_leaves_the_estimator_as_it_was(n_jobs):
    X, y = make_problem(2000, n_features=40, seed=1)
    clf = LinearMulticlassSVCCV(Cs=[0.1], cv=3, n_jobs=n_jobs, random_state=0).fit(X[:100], y[:100])
    before = {name: value for name, value in vars(clf).items() if name.endswith("_")}
    clf.set_params(Cs=[1.0, 100.0, 1000.0], tol=1e-12, max_iter=10**9)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    timer.join()
    assert {name for name in vars(clf) if name.endswith("_")} == set(before)
    for name, value in before.items():
        assert getattr(clf, name) is value, name
    assert threading.active_count() <= 2


class InterruptedRefit(DualSolver):
    """A solver for which Ctrl-C comes in the third pass of a fit, not in the search."""

    def solve(self, problem, **options):
        def interrupt(record):
            if record["pass"] == 3:
                raise KeyboardInterrupt

        return super().solve(problem, **{**options, "progress": interrupt})


def test_ctrl_c_in_the_refit_keeps_the_model_so_far():
    X, y = make_problem()
    clf = LinearMulticlassSVCCV(
        Cs=[0.1, 1.0], tol=1e-4, max_iter=5000, random_state=0, solver=InterruptedRefit()
    )
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.C_ in (0.1, 1.0)
    assert clf.dual_gap_ > clf.tol
    assert clf.score(X, y) > 0.35  # of four classes: it has learned something


def test_errors_in_a_thread_stop_the_others():
    class Broken:
        stopped = False

        def __len__(self):
            return 3

        def stop(self):
            self.stopped = True

        def path(self, fold):
            yield FoldStep(0.5, 0.0, 1, "converged")
            if fold == 1:
                raise ZeroDivisionError("in fold 1")
            yield FoldStep(0.5, 0.0, 1, "converged")

    folds = Broken()
    with pytest.raises(ZeroDivisionError):
        search(folds, 2, n_threads=2, early_stopping=True, report=lambda *args: False)
    assert folds.stopped


# --- bad input -----------------------------------------------------------------------------------


def test_folds_without_a_class_are_refused():
    X, y = make_problem(100)
    order = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match=r"Fold 1 has no example of the class\(es\) \[0\]"):
        LinearMulticlassSVCCV(Cs=[0.1], cv=KFold(4)).fit(X[order], np.repeat(np.arange(4), 25))
    rare = y.copy()
    rare[0] = 99
    with (
        pytest.warns(UserWarning, match="least populated"),
        pytest.raises(ValueError, match=r"99.*stratified"),
    ):
        LinearMulticlassSVCCV(Cs=[0.1]).fit(X, rare)
    weight = np.ones(100)
    weight[np.flatnonzero(y == 2)[1:]] = 0.0
    with pytest.raises(ValueError, match=r"class\(es\) \[2\]"):
        LinearMulticlassSVCCV(Cs=[0.1]).fit(X, y, weight)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": []}, "empty"),
        ({"Cs": [1.0, -2.0]}, "positive"),
        ({"Cs": [1.0, 1.0]}, "duplicates"),
        ({"Cs": 0}, "Cs"),
        ({"Cs": "many"}, "Cs"),
        ({"cv": 1}, "k-fold|n_splits"),
        ({"cv": [(np.arange(100), [])]}, "Fold 1 has no examples to score"),
        ({"cv": [([], np.arange(100))]}, "Fold 1 has no examples to train on"),
        ({"tol": -1.0}, "tol"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"loss": "top_k_beta"}, "needs top_k"),
        ({"solver": "none of ours"}, "solver"),
    ],
)
def test_bad_input_is_refused_and_the_model_stays(params, message):
    X, y = make_problem(100)
    clf = LinearMulticlassSVCCV(Cs=[0.1], random_state=0).fit(X, y)
    coef, C = clf.coef_, clf.C_
    with pytest.raises(ValueError, match=message):
        clf.set_params(**params).fit(X, y)
    assert clf.coef_ is coef and clf.C_ == C


def test_without_refit_there_is_no_model():
    X, y = make_problem()
    clf = LinearMulticlassSVCCV(Cs=[0.1, 1.0], random_state=0).fit(X, y)
    clf.set_params(refit=False).fit(X, y)
    assert clf.C_ in (0.1, 1.0)
    for method in (clf.predict, clf.decision_function, clf.predict_top_k):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(NotFittedError):
        clf.score(X, y)
    assert clone(clf).refit is False


def test_folds_that_do_not_converge_are_counted():
    X, y = make_problem()
    clf = LinearMulticlassSVCCV(
        Cs=[1e-6, 10.0], cv=3, tol=1e-6, max_iter=3, refit=False, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"\d of 6 models") as caught:
        clf.fit(X, y)
    unfinished = int((clf.dual_gaps_ > clf.tol).sum())
    assert unfinished >= 3 and f" {unfinished} of 6 models" in str(caught[0].message)


def test_the_scores_can_be_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = make_problem()
    clf = LinearMulticlassSVCCV(Cs=GRID, cv=3, random_state=0).fit(X, y)
    display = RegularizationPathDisplay.from_cv(clf, name="folds")
    Cs, values = display.line_.get_data()
    tried = ~np.isnan(clf.scores_).any(axis=0)
    np.testing.assert_array_equal(Cs, clf.Cs_[tried])
    np.testing.assert_allclose(values, clf.scores_[:, tried].mean(axis=0))
    assert display.best == clf.C_
