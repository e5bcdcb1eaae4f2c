"""What a fitted LinearMulticlassSVC is: the optimum of its problem, in scikit-learn's shapes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from polymargin import DualSolver, KernelMulticlassSVC, LinearMulticlassSVC
from tests.estimators import LOSS_PARAMS, loss_id, make_problem, make_sparse_problem
from tests.reference.entropic import ENTROPIC
from tests.reference.objective import Spec, dual, dual_infeasibility, primal

TIGHT = {"tol": 1e-9, "max_iter": 20_000, "random_state": 0}
CLOSE = {**TIGHT, "tol": 1e-6}
SMOOTHABLE = ("crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest")
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)


class RecordingSolver(DualSolver):
    """A solver that keeps the problem it is given."""

    def solve(self, problem, **settings):
        self.problem_ = problem
        return super().solve(problem, **settings)


@pytest.mark.parametrize("bias", [False, True], ids=["no intercept", "intercept"])
def test_features_that_never_occur_change_nothing(bias):
    X, y = make_sparse_problem()
    few = sparse.csr_array(X)
    used = np.sort(np.random.default_rng(0).choice(5000, few.shape[1], replace=False))
    many = sparse.csr_array((few.data, used[few.indices], few.indptr), shape=(len(y), 5000))
    settings = {"tol": 1e-6, "random_state": 0, "fit_intercept": bias, "store_dual": True}
    small = LinearMulticlassSVC(**settings).fit(few, y)
    large = LinearMulticlassSVC(**settings, warm_start=True).fit(many, y)
    np.testing.assert_array_equal(large.coef_[:, used], small.coef_)
    np.testing.assert_array_equal(large.intercept_, small.intercept_)
    assert np.count_nonzero(np.delete(large.coef_, used, axis=1)) == 0
    assert large.fit(many, y).n_iter_ <= small.n_iter_


# --- the objective -------------------------------------------------------------------------------


@by_loss
@pytest.mark.parametrize("scaling", [0.0, 2.5], ids=["no intercept", "intercept"])
def test_reported_objectives_are_those_of_the_model(params, scaling):
    X, y = make_problem()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    intercept = {"fit_intercept": scaling > 0, "intercept_scaling": scaling or 1.0}
    clf = LinearMulticlassSVC(**params, **intercept, **CLOSE, C=0.3, store_dual=True)
    clf.fit(X, y, sample_weight=weight)
    spec = Spec(X, y, 0.3 * weight, params["loss"], params.get("top_k"), scaling)
    a = clf.dual_coef_.T.toarray()
    assert clf.coef_.shape == (4, 8) and clf.intercept_.shape == (4,)
    assert clf.objective_ == pytest.approx(primal(spec, clf.coef_, clf.intercept_), rel=1e-9)
    assert clf.dual_objective_ == pytest.approx(dual(spec, a), rel=1e-9)
    assert dual_infeasibility(spec, a) <= 1e-9
    assert clf.dual_gap_ == pytest.approx(1 - clf.dual_objective_ / clf.objective_, abs=1e-12)
    assert clf.dual_gap_ <= clf.tol


@by_loss
def test_dual_coef_times_data_gives_coef(params):
    X, y = make_problem()
    clf = LinearMulticlassSVC(**params, **TIGHT, store_dual=True).fit(X, y)
    assert sparse.issparse(clf.dual_coef_) and clf.dual_coef_.shape == (4, len(y))
    np.testing.assert_allclose(clf.dual_coef_ @ X, clf.coef_, atol=1e-3)
    np.testing.assert_allclose(clf.dual_coef_.sum(axis=1), clf.intercept_, atol=1e-3)


def test_dual_coef_is_kept_only_on_request():
    X, y = make_problem()
    clf = LinearMulticlassSVC(store_dual=True).fit(X, y)
    assert not hasattr(clf.set_params(store_dual=False).fit(X, y), "dual_coef_")


@by_loss
def test_dense_and_sparse_data_give_the_same_optimum(params):
    X, y = make_sparse_problem()
    on_sparse = LinearMulticlassSVC(**params, **TIGHT).fit(X, y)
    on_dense = LinearMulticlassSVC(**params, **TIGHT).fit(X.toarray(), y)
    assert on_sparse.objective_ == pytest.approx(on_dense.objective_, rel=1e-8)
    np.testing.assert_allclose(on_sparse.coef_, on_dense.coef_, atol=2e-3)


def test_intercept_is_a_penalised_constant_feature():
    X, y = make_problem()
    clf = LinearMulticlassSVC(intercept_scaling=3.0, **TIGHT).fit(X, y)
    widened = np.column_stack([X, np.full(len(y), 3.0)])
    explicit = LinearMulticlassSVC(fit_intercept=False, **TIGHT).fit(widened, y)
    np.testing.assert_allclose(clf.coef_, explicit.coef_[:, :-1], atol=1e-3)
    np.testing.assert_allclose(clf.intercept_, 3.0 * explicit.coef_[:, -1], atol=1e-3)
    assert clf.objective_ == pytest.approx(explicit.objective_, rel=1e-8)
    np.testing.assert_array_equal(explicit.intercept_, np.zeros(4))


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins", "softmax"])
def test_a_dual_that_is_worse_than_none_is_not_shown(loss):
    """No gap is above 1, whenever a fit ends: a dual of zeros is feasible."""
    rng, y = np.random.default_rng(1), np.arange(60) % 3
    X = rng.standard_normal((60, 5)) + 30 * rng.standard_normal(5) + 0.5 * y[:, None]
    solver = DualSolver(acceleration=100.0, newton=False)
    clf = LinearMulticlassSVC(loss=loss, C=100.0, max_iter=3, random_state=0, solver=solver)
    clf.set_params(store_dual=True).fit(X, y)
    assert clf.history_["dual"][-1] < 0  # as passes leave it
    assert clf.dual_objective_ == 0 and clf.dual_gap_ == 1 and clf.dual_coef_.nnz == 0


# --- two classes ---------------------------------------------------------------------------------


@by_loss
def test_two_classes_have_one_row_and_a_vector_of_scores(params):
    X, y = make_problem(n_classes=2)
    clf = LinearMulticlassSVC(**params, **TIGHT, store_dual=True).fit(X, y)
    assert clf.coef_.shape == (1, 8) and clf.intercept_.shape == (1,)
    assert clf.dual_coef_.shape == (1, len(y))
    np.testing.assert_allclose(clf.dual_coef_ @ X, clf.coef_, atol=1e-3)
    scores = clf.decision_function(X)
    assert scores.shape == y.shape
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[(scores > 0).astype(int)])
    assert clf.score(X, y) > 0.8


@by_loss
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_of_two_classes_is_that_of_the_row_that_is_shown(params, seed):
    """In float32 too: nothing is rounded between the certificate and the attributes."""
    X, y = make_problem(n_classes=2, seed=seed)
    X = (20 * X + 30).astype(np.float32)
    smoothing = 0.5 if params["loss"] in SMOOTHABLE else 0.0  # then weights are not rescaled
    clf = LinearMulticlassSVC(**params, smoothing=smoothing, C=10.0, max_iter=30, random_state=0)
    clf.fit(X, y)
    coef, intercept = clf.coef_.astype(np.float64), clf.intercept_.astype(np.float64)
    half = 1.0 if params["loss"].startswith("one_vs_rest") else 0.5
    coef, intercept = np.r_[-coef, coef] * half, np.r_[-intercept, intercept] * half
    costs = np.full(len(y), 10.0)
    spec = Spec(X, y, costs, params["loss"], params.get("top_k"), 1.0, smoothing=smoothing)
    assert clf.objective_ == pytest.approx(primal(spec, coef, intercept), rel=1e-12)


@by_loss
def test_two_classes_are_the_hinge_svm(params):
    """The margin losses with C are the hinge loss with 2 C; one-vs-rest is the hinge loss."""
    if params["loss"] in ENTROPIC:
        pytest.skip("no hinge")
    X, y = make_problem(n_classes=2)
    kind = "squared_hinge" if params["loss"] == "one_vs_rest_squared" else "hinge"
    hinge = LinearSVC(loss=kind, C=0.2, tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, y)
    C = 0.2 if params["loss"].startswith("one_vs_rest") else 0.1
    clf = LinearMulticlassSVC(**params, **TIGHT, C=C).fit(X, y)
    np.testing.assert_allclose(clf.coef_, hinge.coef_, atol=1e-4)
    np.testing.assert_allclose(clf.intercept_, hinge.intercept_, atol=1e-4)


# --- labels and weights --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["pear", "apple", "fig", "plum"]),
        np.array(["pear", "apple", "fig", "plum"], dtype=object),
        np.array([10, -3, 7, 2**40]),
        np.array([4.0, 1.0, -2.0, 8.0]),
    ],
    ids=["str", "object", "int64", "float"],
)
def test_labels_of_any_type_come_back(labels):
    X, y = make_problem()
    clf = LinearMulticlassSVC(random_state=0).fit(X, labels[y])
    np.testing.assert_array_equal(clf.classes_, np.sort(labels))
    assert set(clf.predict(X)) <= set(labels)
    assert clf.score(X, labels[y]) > 0.5


def test_boolean_labels():
    X, y = make_problem(n_classes=2)
    clf = LinearMulticlassSVC(random_state=0).fit(X, y == 1)
    assert clf.predict(X).dtype == bool
    assert clf.score(X, y == 1) > 0.8


@by_loss
def test_class_weight_is_a_weight_of_the_examples(params):
    X, y = make_problem()
    names = np.array(["0", "1", "2", "3"])[y]  # text that looks like numbers must not be mixed up
    by_class = {"0": 2.0, "2": 0.25}
    of_example = np.array([by_class.get(name, 1.0) for name in names])
    clf = LinearMulticlassSVC(**params, class_weight=by_class, random_state=0).fit(X, names)
    same = LinearMulticlassSVC(**params, random_state=0).fit(X, names, sample_weight=of_example)
    np.testing.assert_array_equal(clf.coef_, same.coef_)


def test_balanced_counts_examples_with_their_weight():
    X, y = make_problem()
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    totals = np.bincount(y, weights=weight)
    explicit = dict(enumerate(weight.sum() / (4 * totals)))
    clf = LinearMulticlassSVC(class_weight="balanced", random_state=0)
    same = LinearMulticlassSVC(class_weight=explicit, random_state=0)
    clf.fit(X, y, sample_weight=weight)
    same.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(clf.coef_, same.coef_, rtol=1e-9)


@by_loss
def test_examples_and_classes_of_weight_zero_are_absent(params):
    X, y = make_problem()
    weight = (np.random.default_rng(0).random(len(y)) < 0.7).astype(float)
    weight[y == 2] = 0.0
    clf = LinearMulticlassSVC(**params, **TIGHT, store_dual=True).fit(X, y, sample_weight=weight)
    kept = weight > 0
    without = LinearMulticlassSVC(**params, **TIGHT).fit(X[kept], y[kept])
    np.testing.assert_array_equal(clf.classes_, [0, 1, 3])
    assert clf.objective_ == pytest.approx(without.objective_, rel=1e-8)
    np.testing.assert_allclose(clf.coef_, without.coef_, atol=1e-3)
    assert not clf.dual_coef_[:, ~kept].count_nonzero()


def test_a_class_weight_of_zero_removes_the_class():
    X, y = make_problem()
    clf = LinearMulticlassSVC(class_weight={1: 0.0}).fit(X, y)
    np.testing.assert_array_equal(clf.classes_, [0, 2, 3])


# --- data types and copies -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_floating_types_are_kept_and_nothing_is_copied(dtype, container):
    X, y = make_sparse_problem()
    X = container(X.toarray().astype(dtype))
    solver = RecordingSolver()
    clf = LinearMulticlassSVC(solver=solver).fit(X, y)
    seen = solver.problem_.X
    assert seen.dtype == clf.coef_.dtype == clf.intercept_.dtype == dtype
    if sparse.issparse(X):
        for name in ("data", "indices", "indptr"):
            assert np.shares_memory(getattr(seen, name), getattr(X, name))
    else:
        assert np.shares_memory(seen, X)
    assert clf.decision_function(X).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool])
def test_other_types_become_float64(dtype):
    X, y = make_problem()
    X = (4 * X).astype(dtype)
    clf = LinearMulticlassSVC(random_state=0).fit(X, y)
    assert clf.coef_.dtype == np.float64
    same = LinearMulticlassSVC(random_state=0).fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(clf.coef_, same.coef_)


@pytest.mark.parametrize("kind", ["array", "frame", "stream", "kernel"])
def test_float16_becomes_float32(kind):
    X, y = make_problem()
    half = X.astype(np.float16)
    single = half.astype(np.float32)
    if kind == "frame":
        pandas = pytest.importorskip("pandas")
        half = pandas.DataFrame(half, columns=[f"f{j}" for j in range(X.shape[1])])
        single = half.astype(np.float32)
    make = KernelMulticlassSVC if kind == "kernel" else LinearMulticlassSVC
    fit = "partial_fit" if kind == "stream" else "fit"
    clf, same = make(random_state=0), make(random_state=0)
    getattr(clf, fit)(half, y)
    getattr(same, fit)(single, y)
    scores = clf.decision_function(half)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, same.decision_function(single))


def test_float32_and_float64_agree():
    X, y = make_problem()
    single = LinearMulticlassSVC(tol=1e-4, random_state=0).fit(X.astype(np.float32), y)
    double = LinearMulticlassSVC(tol=1e-4, random_state=0).fit(X, y)
    assert single.dual_gap_ <= 1e-4
    assert single.objective_ == pytest.approx(double.objective_, rel=2e-4)


# --- stopping ------------------------------------------------------------------------------------


def test_warning_says_how_far_from_optimal_and_what_to_do():
    X, y = make_problem()
    clf = LinearMulticlassSVC(max_iter=2, tol=1e-12, C=10.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="gap") as caught:
        clf.fit(X, y)
    message = str(caught[0].message)
    assert f"{clf.dual_gap_:.2g}" in message and "aise max_iter or tol." in message
    if clf.dual_gap_ < 1:
        assert "the optimum" in message
    assert caught[0].filename == __file__
    assert clf.n_iter_ == 2


def test_a_time_limit_warns_too():
    X, y = make_problem()
    clf = LinearMulticlassSVC(solver=DualSolver(time_limit=1e-9), tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        clf.fit(X, y)
    assert np.isfinite(clf.coef_).all()


def test_converged_and_uncertified_fits_do_not_warn():
    X, y = make_problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converged = LinearMulticlassSVC().fit(X, y)
        uncertified = LinearMulticlassSVC(solver=DualSolver(certify=False)).fit(X, y)
    assert converged.dual_gap_ <= 1e-3
    assert np.isnan(uncertified.dual_gap_)
    assert uncertified.score(X, y) > 0.5


def test_history_leads_to_the_certified_model():
    X, y = make_problem()
    clf = LinearMulticlassSVC(tol=1e-6, random_state=0).fit(X, y)
    history = clf.history_
    assert set(history) >= {"pass", "time", "primal", "dual", "gap", "n_awake"}
    assert len({len(column) for column in history.values()}) == 1
    assert np.nanmin(history["gap"]) == pytest.approx(clf.dual_gap_, abs=1e-15)
    assert history["pass"][-1] == clf.n_iter_ <= clf.max_iter
    assert (np.diff(history["pass"]) >= 0).all() and (np.diff(history["time"]) >= 0).all()


def test_verbose_prints_certificates(capfd):
    X, y = make_problem()
    LinearMulticlassSVC().fit(X, y)
    assert capfd.readouterr().out == ""
    LinearMulticlassSVC(verbose=1).fit(X, y)
    assert capfd.readouterr().out != ""


# --- warm start ----------------------------------------------------------------------------------


@by_loss
@pytest.mark.parametrize("C", [0.05, 0.11, 1.0], ids=["down", "a bit up", "up"])
def test_warm_start_after_a_change_of_C_reaches_the_optimum(params, C):
    X, y = make_problem()
    clf = LinearMulticlassSVC(**params, **CLOSE, C=0.1, warm_start=True).fit(X, y)
    clf.set_params(C=C).fit(X, y)
    cold = LinearMulticlassSVC(**params, **CLOSE, C=C).fit(X, y)
    assert clf.dual_gap_ <= 1e-6
    assert clf.objective_ == pytest.approx(cold.objective_, rel=2e-6)


@pytest.mark.parametrize(
    "change", [{}, {"tol": 5e-4}, {"C": 0.11}, {"C": 0.09}], ids=["none", "tol", "C up", "C down"]
)
def test_warm_start_saves_passes(change):
    """In total: a single start may be unlucky, as the order of the visits is random."""
    X, y = make_problem(400, 20, 6)
    warm = cold = 0
    for seed in range(6):
        settings = {"C": 0.1, "tol": 1e-3, "random_state": seed}
        clf = LinearMulticlassSVC(**settings, warm_start=True).fit(X, y)
        clf.set_params(**change).fit(X, y)
        assert clf.dual_gap_ <= clf.tol
        warm += clf.n_iter_
        cold += LinearMulticlassSVC(**{**settings, **change}).fit(X, y).n_iter_
    assert warm < cold


@pytest.mark.parametrize(
    "change",
    ["rows", "features", "labels", "loss", "weights", "values", "intercept", "dtype", "top_k"],
)
def test_warm_start_from_another_problem_is_still_right(change):
    X, y = make_problem()
    weight, params = None, {"loss": "crammer_singer", "intercept_scaling": 1.0, "tol": 1e-6}
    if change == "top_k":
        params |= {"loss": "top_k_beta", "top_k": 1}
    clf = LinearMulticlassSVC(**{**CLOSE, **params}, C=0.1, warm_start=True).fit(X, y)
    if change == "rows":
        X, y = X[:100], y[:100]
    elif change == "features":
        X = X[:, :6]
    elif change == "labels":
        y = (y + 1) % 4
    elif change == "loss":
        params["loss"] = "weston_watkins"
    elif change == "weights":
        weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y)).round()
    elif change == "values":
        X = X[::-1].copy()
    elif change == "intercept":
        params["intercept_scaling"] = 10.0
    elif change == "top_k":
        params["top_k"] = 3
    else:
        X, params["tol"] = X.astype(np.float32), 1e-4
    clf.set_params(**params).fit(X, y, sample_weight=weight)
    cold = LinearMulticlassSVC(**{**CLOSE, **params}, C=0.1).fit(X, y, sample_weight=weight)
    assert clf.dual_gap_ <= clf.tol
    assert clf.objective_ == pytest.approx(cold.objective_, rel=2 * clf.tol)
    np.testing.assert_array_equal(clf.classes_, cold.classes_)


# --- predictions ---------------------------------------------------------------------------------


def test_top_k_predictions_are_the_best_classes_in_order():
    X, y = make_problem()
    names = np.array(["a", "b", "c", "d"])
    clf = LinearMulticlassSVC(loss="top_k_alpha", top_k=2, random_state=0).fit(X, names[y])
    best = clf.predict_top_k(X, k=3)
    assert best.shape == (len(y), 3)
    np.testing.assert_array_equal(best[:, 0], clf.predict(X))
    scores = np.take_along_axis(clf.decision_function(X), np.searchsorted(names, best), axis=1)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len(set(row)) == 3 for row in best)


def test_top_k_ties_are_broken_by_class_order():
    X, y = make_problem()
    clf = LinearMulticlassSVC().fit(X, y)
    clf.coef_ = np.zeros_like(clf.coef_)
    clf.intercept_ = np.array([0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(clf.predict_top_k(X[:1], k=4), [[1, 3, 0, 2]])


def test_top_k_of_two_classes():
    X, y = make_problem(n_classes=2)
    clf = LinearMulticlassSVC().fit(X, y)
    best = clf.predict_top_k(X, k=2)
    np.testing.assert_array_equal(best[:, 0], clf.predict(X))
    np.testing.assert_array_equal(best[:, 1], 1 - clf.predict(X))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sparsified_models_predict_the_same(n_classes):
    X, y = make_problem(n_classes=n_classes)
    clf = LinearMulticlassSVC().fit(X, y)
    scores = clf.decision_function(X)
    assert sparse.issparse(clf.sparsify().coef_)
    np.testing.assert_allclose(clf.decision_function(X), scores)
    np.testing.assert_allclose(clf.decision_function(sparse.csr_array(X)), scores)
    assert isinstance(clf.densify().coef_, np.ndarray)
    np.testing.assert_allclose(clf.decision_function(X), scores)
