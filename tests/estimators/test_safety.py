"""Bad input gives a clear error, odd but legal input the right model, and Ctrl-C a usable one."""

from __future__ import annotations

import os
import signal
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from polymargin import DualSolver, LinearMulticlassSVC
from polymargin.solvers.state import State
from tests.estimators import (
    LOSS_PARAMS,
    loss_id,
    make_problem,
    make_sparse_problem,
    needs_callbacks,
)
from tests.reference.objective import Spec, dual, primal

TIGHT = {"tol": 1e-9, "max_iter": 20_000, "random_state": 0}
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)
CONTAINERS = {"dense": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_array}
by_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)


# --- values --------------------------------------------------------------------------------------


@by_container
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(container, value):
    X, y = make_problem()
    X[3, 2] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LinearMulticlassSVC().fit(container(X), y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_in_predictions(value):
    X, y = make_problem()
    clf = LinearMulticlassSVC().fit(X, y)
    X[3, 2] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        clf.predict(X)


@by_container
def test_rows_whose_norm_overflows_are_refused(container):
    X, y = make_problem()
    with pytest.raises(ValueError, match="scale"):
        LinearMulticlassSVC().fit(container(1e200 * X), y)


@by_container
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_tiny_and_huge_features_are_solved(container, scale):
    """Without an intercept, a change of units with C to match is the same problem."""
    X, y = make_problem()
    settings = {"fit_intercept": False, "tol": 1e-6, "max_iter": 20_000, "random_state": 0}
    clf = LinearMulticlassSVC(C=0.1 * scale**-2, **settings).fit(container(scale * X), y)
    same = LinearMulticlassSVC(C=0.1, **settings).fit(container(X), y)
    scores = clf.decision_function(container(scale * X))
    np.testing.assert_allclose(scores, same.decision_function(X), atol=1e-2)


# --- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 5), (0, 0), (5, 0)])
@by_container
def test_empty_input_is_refused(container, shape):
    with pytest.raises(ValueError, match=r"0 sample|0 feature"):
        LinearMulticlassSVC().fit(container(np.empty(shape)), np.arange(shape[0]))


@pytest.mark.parametrize(
    "X", [np.arange(6.0), sparse.coo_array(np.arange(6.0)), 3.0], ids=["dense", "sparse", "scalar"]
)
def test_input_that_is_not_a_matrix_is_refused(X):
    with pytest.raises(ValueError, match="2D"):
        LinearMulticlassSVC().fit(X, [0, 1, 0, 1, 0, 1])


def test_three_dimensions_are_refused():
    with pytest.raises(ValueError, match="dim 3"):
        LinearMulticlassSVC().fit(np.zeros((4, 2, 2)), [0, 1, 0, 1])


@by_container
def test_mismatched_lengths_are_refused(container):
    X, y = make_problem()
    with pytest.raises(ValueError, match="inconsistent"):
        LinearMulticlassSVC().fit(container(X), y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        LinearMulticlassSVC().fit(container(X), y, sample_weight=np.ones(len(y) - 1))


@by_container
def test_another_number_of_features_is_refused_in_predictions(container):
    X, y = make_problem()
    clf = LinearMulticlassSVC().fit(container(X), y)
    with pytest.raises(ValueError, match="features"):
        clf.predict(container(X[:, :-1]))


def test_predictions_before_fit_are_refused():
    X, _ = make_problem()
    for method in ("predict", "decision_function", "predict_top_k"):
        with pytest.raises(NotFittedError):
            getattr(LinearMulticlassSVC(), method)(X)


@pytest.mark.parametrize("k", [0, -1, 5, 1.5, None])
def test_predict_top_k_needs_a_number_of_classes(k):
    X, y = make_problem()
    with pytest.raises(ValueError, match="from 1 to n_classes = 4"):
        LinearMulticlassSVC().fit(X, y).predict_top_k(X, k=k)


# --- labels and weights --------------------------------------------------------------------------


@by_loss
def test_one_class_is_refused(params):
    X, y = make_problem()
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        LinearMulticlassSVC(**params).fit(X, np.ones_like(y))
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        LinearMulticlassSVC(**params).fit(X, y, sample_weight=(y == 1).astype(float))


def test_targets_that_are_no_classes_are_refused():
    X, y = make_problem()
    with pytest.raises(ValueError, match="Unknown label type"):
        LinearMulticlassSVC().fit(X, y + 0.5)
    with pytest.raises(ValueError, match="1d array"):
        LinearMulticlassSVC().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="NaN"):
        LinearMulticlassSVC().fit(X, np.where(y == 0, np.nan, y))


def test_weights_must_be_weights():
    X, y = make_problem()
    weight = np.ones(len(y))
    weight[0] = -1e-9
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        LinearMulticlassSVC().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="non-zero"):
        LinearMulticlassSVC().fit(X, y, sample_weight=np.zeros(len(y)))
    for value in (np.nan, np.inf):
        weight[0] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            LinearMulticlassSVC().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: -1.0}, "not negative"),
        ({0: np.nan}, "finite"),
        ({0: np.inf}, "finite"),
        ({"zero": 2.0}, "not in class_weight"),
        ({0: 0.0, 1: 0.0, 2: 0.0}, "needs at least 2 classes"),
        ("unbalanced", "class_weight"),
    ],
    ids=str,
)
def test_class_weights_must_be_weights(class_weight, message):
    X, y = make_problem()
    with pytest.raises(ValueError, match=message):
        LinearMulticlassSVC(class_weight=class_weight).fit(X, y)


def test_weights_that_overflow_are_refused():
    X, y = make_problem()
    with pytest.raises(ValueError, match="overflow"):
        LinearMulticlassSVC(C=1e300).fit(X, y, sample_weight=np.full(len(y), 1e300))


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("C", value) for value in (0, -1.0, np.inf, np.nan, "1")),
        ("loss", "hinge"),
        ("top_k", 0),
        ("top_k", 1.5),
        ("tol", -1e-3),
        ("tol", np.nan),
        ("max_iter", 0),
        ("intercept_scaling", 0.0),
        ("intercept_scaling", np.inf),
        ("n_jobs", 0),
        ("n_jobs", 1.5),
        ("solver", "newton"),
    ],
)
def test_wrong_parameters_are_named(name, value):
    X, y = make_problem()
    with pytest.raises(ValueError, match=name):
        LinearMulticlassSVC(**{name: value}).fit(X, y)


@pytest.mark.parametrize("loss", ["top_k_alpha", "top_k_beta"])
def test_top_k_must_be_given_and_fit_the_classes(loss):
    X, y = make_problem()
    with pytest.raises(ValueError, match="needs top_k"):
        LinearMulticlassSVC(loss=loss).fit(X, y)
    for top_k in (4, 100):
        with pytest.raises(ValueError, match="at most 3"):
            LinearMulticlassSVC(loss=loss, top_k=top_k).fit(X, y)
    assert LinearMulticlassSVC(loss=loss, top_k=3).fit(X, y).dual_gap_ <= 1e-3


def test_top_k_has_no_effect_on_the_other_losses():
    X, y = make_problem()
    with_k = LinearMulticlassSVC(top_k=50, random_state=0).fit(X, y)
    without = LinearMulticlassSVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(with_k.coef_, without.coef_)


# --- sparse structure ----------------------------------------------------------------------------


def _broken(X: sparse.csr_array, array: str, position: int, value: int) -> sparse.csr_array:
    X = X.copy()
    getattr(X, array)[position] = value
    return X


@pytest.mark.parametrize(
    ("array", "position", "value"),
    [
        ("indices", 0, 10**6),
        ("indices", 5, 60),
        ("indices", -1, -1),
        ("indptr", 0, 1),
        ("indptr", 0, -4),
        ("indptr", 10, 10**6),
        ("indptr", 10, -1),
        ("indptr", -1, 10**6),
        ("indptr", -1, 0),
    ],
)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_index_arrays_that_point_outside_are_refused(array, position, value, index_type, layout):
    X, y = make_sparse_problem()
    clf = LinearMulticlassSVC().fit(X, y)
    X = X.asformat(layout)
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    value = 150 if (layout, value) == ("csc", 60) else value
    X = _broken(X, array, position, value)
    for use in (lambda: LinearMulticlassSVC().fit(X, y), lambda: clf.predict(X)):
        with pytest.raises(ValueError, match="Sparse input"):
            use()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("value", [-1, 10**6])
def test_coordinates_that_point_outside_are_refused(axis, value):
    X, y = make_sparse_problem()
    X = X.tocoo()
    X.coords[axis][7] = value
    with pytest.raises(ValueError, match="Sparse input"):
        LinearMulticlassSVC().fit(X, y)


@pytest.mark.parametrize("array", ["data", "indices", "indptr"])
def test_index_arrays_that_are_too_short_are_refused(array):
    X, y = make_sparse_problem()
    setattr(X, array, getattr(X, array)[:-3])
    with pytest.raises(ValueError, match="Sparse input"):
        LinearMulticlassSVC().fit(X, y)


def test_index_arrays_of_floats_are_refused():
    X, y = make_sparse_problem()
    X.indices = X.indices.astype(float)
    with pytest.raises(ValueError, match="integers"):
        LinearMulticlassSVC().fit(X, y)


def _shuffled_with_duplicates(X: sparse.csr_array) -> sparse.csr_array:
    """Split every entry into eight, and reverse each row."""
    rows = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    order = np.concatenate([np.arange(start, stop)[::-1].repeat(8) for start, stop in rows])
    return sparse.csr_array((X.data[order] / 8, X.indices[order], 8 * X.indptr), shape=X.shape)


@pytest.mark.parametrize("flagged", [False, True], ids=["", "wrongly flagged as canonical"])
def test_unsorted_and_duplicate_indices_are_merged_in_a_copy(flagged):
    X, y = make_sparse_problem()
    messy = _shuffled_with_duplicates(X)
    before = messy.copy()
    if flagged:
        messy.has_sorted_indices = messy.has_canonical_format = True
    clf = LinearMulticlassSVC(**TIGHT).fit(messy, y)
    same = LinearMulticlassSVC(**TIGHT).fit(X, y)
    np.testing.assert_allclose(clf.coef_, same.coef_, atol=1e-3)
    assert clf.objective_ == pytest.approx(same.objective_, rel=1e-8)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(messy, name), getattr(before, name))


def test_duplicates_whose_sum_overflows_are_refused():
    X = sparse.csr_array(([1e308, 1e308, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    with pytest.raises(ValueError, match="duplicate"):
        LinearMulticlassSVC().fit(X, [0, 1])


def test_explicit_zeros_change_nothing():
    X, y = make_sparse_problem()
    with_zeros = X.copy()
    with_zeros.data[::3] = 0.0
    without = with_zeros.copy()
    without.eliminate_zeros()
    clf = LinearMulticlassSVC(**TIGHT).fit(with_zeros, y)
    same = LinearMulticlassSVC(**TIGHT).fit(without, y)
    np.testing.assert_allclose(clf.coef_, same.coef_, atol=1e-6)


@by_loss
@by_container
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_of_zeros_are_legal(params, container, fit_intercept):
    X, y = make_problem()
    X[::4] = 0.0
    clf = LinearMulticlassSVC(**params, **TIGHT, C=0.1, store_dual=True)
    clf.set_params(fit_intercept=fit_intercept).fit(container(X), y)
    c = np.full(len(y), 0.1)
    spec = Spec(X, y, c, params["loss"], params.get("top_k"), float(fit_intercept))
    assert clf.dual_gap_ <= 1e-9
    assert clf.objective_ == pytest.approx(primal(spec, clf.coef_, clf.intercept_), rel=1e-9)
    assert clf.dual_objective_ == pytest.approx(dual(spec, clf.dual_coef_.T), rel=1e-9)


@by_loss
@by_container
def test_data_of_zeros_alone_give_the_zero_model(params, container):
    _, y = make_problem()
    clf = LinearMulticlassSVC(**params, fit_intercept=False)
    clf.fit(container(np.zeros((len(y), 3))), y)
    assert not clf.coef_.any()
    assert clf.dual_gap_ <= 1e-9


@by_container
def test_fit_changes_no_input(container):
    X, y = make_problem()
    X, weight = container(X), np.full(len(y), 0.5)
    inputs = [weight, y, *([X.data, X.indices, X.indptr] if sparse.issparse(X) else [X])]
    before = [array.copy() for array in inputs]
    for array in inputs:
        array.flags.writeable = False
    LinearMulticlassSVC().fit(X, y, sample_weight=weight).predict(X)
    for array, old in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, old)


# --- Ctrl-C --------------------------------------------------------------------------------------


class InterruptAt:
    """A callback that does what Ctrl-C does, after some passes."""

    def __init__(self, n_passes: int) -> None:
        self.n_passes = n_passes

    def setup(self, estimator, context):
        self.seen = 0

    def on_fit_task_begin(self, estimator, context):
        return None

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.seen += 1
            if self.seen == self.n_passes:
                raise KeyboardInterrupt

    def teardown(self, estimator, context):
        return None


def assert_usable_and_certified(clf: LinearMulticlassSVC, X: np.ndarray, y: np.ndarray) -> None:
    """Check the model an interrupted fit leaves behind."""
    C, scaling = clf.C, clf.intercept_scaling
    spec = Spec(X, y, np.full(len(y), C), clf.loss, clf.top_k, scaling)
    assert clf.objective_ == pytest.approx(primal(spec, clf.coef_, clf.intercept_), rel=1e-9)
    assert clf.dual_objective_ == pytest.approx(dual(spec, clf.dual_coef_.T), rel=1e-9)
    assert np.isfinite(clf.dual_gap_)
    assert clf.predict(X).shape == y.shape


@needs_callbacks
@by_loss
@pytest.mark.parametrize("n_passes", [1, 3, 25])
def test_an_interrupt_leaves_the_best_certified_model(params, n_passes):
    X, y = make_problem()
    clf = LinearMulticlassSVC(**params, tol=0.0, store_dual=True, random_state=0, C=10.0)
    with pytest.raises(KeyboardInterrupt):
        clf.set_callbacks(InterruptAt(n_passes)).fit(X, y)
    assert clf.n_iter_ == n_passes
    assert_usable_and_certified(clf, X, y)


@needs_callbacks
def test_an_interrupted_fit_can_go_on():
    """In total over some seeds: what is left to do is less than everything."""
    X, y = make_problem()
    resumed = whole = 0
    for seed in range(6):
        settings = {"tol": 1e-5, "max_iter": 20_000, "random_state": seed}
        n_passes = LinearMulticlassSVC(**settings).fit(X, y).n_iter_
        clf = LinearMulticlassSVC(warm_start=True, **settings)
        with pytest.raises(KeyboardInterrupt):
            clf.set_callbacks(InterruptAt(n_passes // 2)).fit(X, y)
        clf.set_callbacks().fit(X, y)
        assert clf.dual_gap_ <= 1e-5
        resumed += clf.n_iter_
        whole += n_passes
    assert resumed < whole


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill cannot send SIGINT on Windows")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_a_long_fit(n_jobs):
    X, y = make_problem(3000, 60, 10)
    clf = LinearMulticlassSVC(C=1e4, tol=0.0, max_iter=10**9, store_dual=True, n_jobs=n_jobs)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    timer.join()
    assert_usable_and_certified(clf, X, y)


def test_an_interrupt_in_the_middle_of_a_pass(monkeypatch):
    """Before the first certificate, with weights that moved since their norm was computed."""
    X, y = make_problem(300, 10, 4)
    sweep, calls = State.sweep, []

    def interrupted(self, order, *args, **kwargs):
        calls.append(len(order))
        if len(calls) < 3:
            return sweep(self, order, *args, **kwargs)
        sweep(self, order[: len(order) // 2], *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(State, "sweep", interrupted)
    clf = LinearMulticlassSVC(C=1e4, tol=0.0, store_dual=True)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert_usable_and_certified(clf, X, y)


@needs_callbacks
def test_an_error_in_a_callback_is_not_swallowed():
    class Failing(InterruptAt):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("broken callback")

    X, y = make_problem()
    with pytest.raises(RuntimeError, match="broken callback"):
        LinearMulticlassSVC().set_callbacks(Failing(1)).fit(X, y)


@needs_callbacks
def test_a_solver_keeps_nothing_of_an_interrupted_fit():
    X, y = make_problem()
    solver = DualSolver()
    clf = LinearMulticlassSVC(solver=solver, tol=1e-6, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        clf.set_callbacks(InterruptAt(2)).fit(X, y)
    clf.set_callbacks().fit(X, y)
    fresh = LinearMulticlassSVC(tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, fresh.coef_)
