"""What a fitted LaRankClassifier is: a point of the Crammer-Singer dual, the optimum with tol."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import LaRankClassifier, LinearMulticlassSVC
from polymargin.kernel_functions import KernelFunction
from polymargin.solvers.kernel_scores import kernel_scores
from tests.estimators import make_problem, make_sparse_problem
from tests.reference.kernel_problem import (
    dual_optimum,
    dual_value,
    infeasibility,
    primal_value,
    process_new_only,
)

TIGHT = {"tol": 1e-8, "n_epochs": 20_000, "random_state": 0}
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
}
by_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def gram(X, kernel):
    params = {name: value for name, value in kernel.items() if name != "kernel"}
    return pairwise_kernels(X, metric=kernel["kernel"], **params)


def full_beta(clf: LaRankClassifier, n: int) -> np.ndarray:
    beta = np.zeros((n, len(clf.dual_coef_)))
    beta[clf.support_] = clf.dual_coef_.T
    return beta


@parametrize_with_checks([LaRankClassifier(), LaRankClassifier(tol=1e-6)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- the problem that is solved ------------------------------------------------------------------


@by_kernel
@pytest.mark.parametrize("C", [0.1, 5.0])
def test_the_dual_is_that_of_a_qp_solver(kernel, C):
    X, y = make_problem(40, 4, 3)
    clf = LaRankClassifier(C=C, **kernel, **TIGHT).fit(X, y)
    K = gram(X, kernel)
    beta = full_beta(clf, len(y))
    assert infeasibility(y, beta, C) <= 1e-12 * C
    assert clf.dual_objective_ == pytest.approx(dual_optimum(K, y, C), rel=1e-6)
    assert clf.dual_objective_ == pytest.approx(dual_value(K, y, beta), rel=1e-9)
    assert clf.objective_ == pytest.approx(primal_value(K, y, beta, C), rel=1e-9)
    assert clf.dual_gap_ == pytest.approx(1 - clf.dual_objective_ / clf.objective_)
    assert clf.dual_gap_ <= 1e-8


@pytest.mark.parametrize("schedule", ["deterministic", "adaptive"])
@pytest.mark.parametrize("operations", [("process_old",), ("process_old", "optimize")])
def test_every_set_of_operations_with_process_old_reaches_the_optimum(schedule, operations):
    X, y = make_problem(40, 4, 3)
    clf = LaRankClassifier(**KERNELS["rbf"], **TIGHT, schedule=schedule, operations=operations)
    expected = dual_optimum(gram(X, KERNELS["rbf"]), y, 1.0)
    assert clf.fit(X, y).dual_objective_ == pytest.approx(expected, rel=1e-6)


def test_the_linear_kernel_gives_the_linear_model():
    X, y = make_problem()
    clf = LaRankClassifier(kernel="linear", **TIGHT).fit(X, y)
    linear = LinearMulticlassSVC(fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    assert clf.objective_ == pytest.approx(linear.objective_, rel=1e-7)
    np.testing.assert_allclose(clf.decision_function(X), linear.decision_function(X), atol=1e-2)


def test_two_classes_are_the_hinge_svm_without_intercept():
    """Their dual with C is that of the hinge loss with 2 C; a centred kernel has no intercept."""
    X, y = make_problem(n_classes=2)
    clf = LaRankClassifier(kernel="linear", C=0.1, **TIGHT).fit(X, y)
    linear = LinearMulticlassSVC(fit_intercept=False, C=0.1, tol=1e-10, max_iter=100_000).fit(X, y)
    scores = clf.decision_function(X)
    assert scores.shape == y.shape and clf.dual_coef_.shape == (1, len(clf.support_))
    np.testing.assert_allclose(scores, linear.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[(scores > 0).astype(int)])


def test_one_pass_of_process_new_is_algorithm_2():
    X, y = make_problem()
    clf = LaRankClassifier(**KERNELS["rbf"], C=0.4, operations=(), shuffle=False).fit(X, y)
    K = gram(X, KERNELS["rbf"])
    beta = process_new_only(K, y, np.arange(len(y)), 0.4, clf.tau)
    np.testing.assert_allclose(full_beta(clf, len(y)), beta, atol=1e-12)
    assert clf.dual_objective_ == pytest.approx(dual_value(K, y, beta))
    assert clf.n_operations_["process_new"] == clf.n_argmax_ == len(y)
    assert clf.n_operations_["process_old"] == clf.n_operations_["optimize"] == 0


def test_rows_of_zeros_are_solved():
    """Without curvature, a step goes to the bound; such examples add C to both objectives."""
    X, y = make_problem(40, 4, 3)
    X[::5] = 0.0
    clf = LaRankClassifier(kernel="linear", **TIGHT).fit(X, y)
    expected = dual_optimum(gram(X, KERNELS["linear"]), y, 1.0)
    assert clf.dual_objective_ == pytest.approx(expected, rel=1e-6)
    assert clf.dual_gap_ <= 1e-8


def test_an_epoch_of_support_patterns_alone_is_not_wasted():
    """Contradictory labels make every example a support pattern: nothing is new any more."""
    X, _ = make_problem(40, 4, 3)
    X, y = np.vstack([X, X]), np.arange(80) % 3
    clf = LaRankClassifier(gamma=0.3, tol=1e-6, random_state=0).fit(X, y)
    assert clf.n_iter_ < 200


def test_operations_after_new_examples_increase_the_dual():
    X, y = make_problem(400, 8, 4)
    duals = [
        np.mean(
            [
                LaRankClassifier(operations=names, random_state=seed).fit(X, y).dual_objective_
                for seed in range(3)
            ]
        )
        for names in [(), ("optimize",), ("process_old", "optimize")]
    ]
    assert duals[0] < min(duals[1:])


# --- kernels -------------------------------------------------------------------------------------


@by_kernel
def test_precomputed_and_callable_kernels_are_the_same(kernel):
    X, y = make_problem()
    K = gram(X, kernel)
    named = LaRankClassifier(**kernel)
    given = LaRankClassifier(kernel="precomputed")
    called = LaRankClassifier(kernel=lambda A, B: pairwise_kernels(A, B, **_metric(kernel)))
    for settings, atol in (({"operations": (), "random_state": 0}, 1e-9), (TIGHT, 2e-3)):
        scores = named.set_params(**settings).fit(X, y).decision_function(X)
        atol *= np.abs(scores).max()
        for other, Z in ((given, K), (called, X)):
            other.set_params(**settings).fit(Z, y)
            np.testing.assert_allclose(other.decision_function(Z), scores, atol=atol)
        for clf in (named, given, called):
            clf.set_params(operations=("process_old", "optimize"))


def _metric(kernel):
    return {"metric" if name == "kernel" else name: value for name, value in kernel.items()}


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_is_that_of_svc(gamma):
    X, y = make_problem()
    clf = LaRankClassifier(gamma=gamma).fit(X, y)
    assert clf.gamma_ == pytest.approx(SVC(gamma=gamma).fit(X, y)._gamma)


@by_kernel
def test_sparse_and_dense_rows_are_the_same(kernel):
    X, y = make_sparse_problem()
    settings = {"C": 10.0, "tol": 1e-7, "n_epochs": 5000, "random_state": 0}
    on_sparse = LaRankClassifier(**kernel, **settings).fit(X, y)
    on_dense = LaRankClassifier(**kernel, **settings).fit(X.toarray(), y)
    assert sparse.issparse(on_sparse.support_vectors_)
    assert on_sparse.objective_ == pytest.approx(on_dense.objective_, rel=1e-6)
    np.testing.assert_allclose(
        on_sparse.decision_function(X), on_dense.decision_function(X.toarray()), atol=5e-3
    )
    assert (X[on_sparse.support_] != on_sparse.support_vectors_).nnz == 0


def test_a_callable_sees_sparse_rows():
    X, y = make_sparse_problem()
    clf = LaRankClassifier(kernel=lambda A, B: (A @ B.T).toarray(), random_state=0).fit(X, y)
    same = LaRankClassifier(kernel="linear", random_state=0).fit(X, y)
    assert clf.score(X, y) == pytest.approx(same.score(X, y), abs=0.1)


def test_float32_is_kept_and_agrees():
    X, y = make_problem()
    settings = {"tol": 1e-4, "n_epochs": 1000, "random_state": 0}
    single = LaRankClassifier(**settings).fit(X.astype(np.float32), y)
    double = LaRankClassifier(**settings).fit(X, y)
    for array in (single.dual_coef_, single.support_vectors_, single.decision_function(X)):
        assert array.dtype == np.float32
    assert single.dual_objective_ == pytest.approx(double.dual_objective_, rel=1e-3)


# --- cache, counts, reproducibility --------------------------------------------------------------


@pytest.mark.parametrize("cache_size", [1e-6, 0.02, 0.1])
def test_a_small_cache_costs_evaluations_but_not_accuracy(cache_size):
    X, y = make_problem(300, 8, 4)
    settings = {"tol": 1e-6, "n_epochs": 5000, "random_state": 0}
    large = LaRankClassifier(**settings).fit(X, y)
    small = LaRankClassifier(**settings, cache_size=cache_size).fit(X, y)
    assert small.n_kernel_evaluations_ > large.n_kernel_evaluations_
    assert small._model.machine._machine.cache_bytes == 0  # after fit
    assert small.dual_objective_ == pytest.approx(large.dual_objective_, rel=1e-5)


@pytest.mark.parametrize("cache_size", [1e-6, 0.02, 0.1, 10])
def test_the_cache_stays_within_its_size(cache_size):
    """Or has one row, if even that is too much."""
    X, y = make_problem(300, 8, 4)
    clf = LaRankClassifier(cache_size=cache_size, random_state=0)
    for start in range(0, 300, 50):
        clf.partial_fit(X[start : start + 50], y[start : start + 50])
        used = clf._model.machine._machine.cache_bytes
        assert 0 < used <= max(1e6 * cache_size, 8 * 1.2 * len(X) + 200)


def test_the_same_seed_gives_the_same_model():
    X, y = make_problem()
    first, second = (LaRankClassifier(random_state=3, n_epochs=2).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert first.n_operations_ == second.n_operations_
    other = LaRankClassifier(random_state=4, n_epochs=2).fit(X, y)
    assert not np.array_equal(first.support_, other.support_)


def test_kernel_evaluations_are_those_that_are_made():
    X, y = make_problem()
    made = []

    def kernel(A, B):
        made.append((A.shape[0], B.shape[0]))
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))

    clf = LaRankClassifier(kernel=kernel, random_state=0).fit(X, y)
    assert clf.n_kernel_evaluations_ + clf.n_operations_["process_new_steps"] == sum(
        a * b for a, b in made
    )  # and one k(x, x) for every new pattern
    assert clf.n_gap_kernel_evaluations_ == 0
    clf.set_params(tol="C").fit(X, y)
    assert clf.n_gap_kernel_evaluations_ > 0


def test_a_large_cache_computes_every_kernel_value_once():
    """The kernel is symmetric: a pattern's values with later ones are in their rows."""
    X, y = make_problem()
    number = {x.tobytes(): i for i, x in enumerate(X)}
    pairs = []

    def kernel(A, B):
        pairs.extend(frozenset((number[a.tobytes()], number[b.tobytes()])) for a in A for b in B)
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))

    clf = LaRankClassifier(kernel=kernel, random_state=0).fit(X, y)
    assert clf.n_operations_["process_old"] > 10
    assert len(pairs) == len(set(pairs))


def test_rows_of_several_examples_are_computed_at_once():
    X, y = make_problem(400, 8, 4)
    rows = []

    def kernel(A, B):
        rows.append(A.shape[0])
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))

    LaRankClassifier(kernel=kernel, random_state=0).fit(X, y)
    assert max(rows) > 30
    rows.clear()
    LaRankClassifier(kernel=kernel, random_state=0, cache_size=1e-4).fit(X, y)
    assert max(rows) == 1  # there is no room for more


@pytest.mark.parametrize("kernel", ["rbf", rbf_kernel], ids=["compiled", "called"])
def test_gradients_stay_right_when_slots_are_renumbered(kernel):
    """Rows that were computed ahead hold values by slot."""
    X, y = make_problem(1500, 8, 4)
    clf = LaRankClassifier(C=0.5, kernel=kernel, gamma=1 / 8, tol=1e-9, n_epochs=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    made = clf.n_operations_["process_new_steps"]
    assert made - len(clf._model.machine.patterns) > made / 8 + 10  # more than a single time
    assert clf._model.machine.dual == pytest.approx(clf.dual_objective_, rel=1e-9)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])


def test_removed_patterns_are_forgotten():
    X, y = make_problem(400, 8, 4)
    clf = LaRankClassifier(C=0.5, random_state=0).fit(X, y)
    beta = full_beta(clf, len(y))
    assert clf.n_operations_["process_new_steps"] > len(clf.support_)
    assert (np.abs(beta[clf.support_]).sum(axis=1) > 0).all()
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    np.testing.assert_array_equal(clf.n_support_, np.bincount(y[clf.support_]))
    assert len(set(clf.support_)) == len(clf.support_)


# --- stopping ------------------------------------------------------------------------------------


def test_tol_C_is_a_gap_below_C():
    X, y = make_problem(400, 8, 4)
    clf = LaRankClassifier(tol="C", C=2.0, random_state=0).fit(X, y)
    assert 0 <= clf.objective_ - clf.dual_objective_ <= 2.0


def test_without_tol_there_is_no_gap():
    X, y = make_problem()
    clf = LaRankClassifier(n_epochs=3).fit(X, y)
    assert clf.n_iter_ == 3 and np.isnan(clf.dual_gap_) and np.isnan(clf.objective_)


def test_a_gap_that_is_not_reached_is_warned_of():
    X, y = make_problem()
    with pytest.warns(ConvergenceWarning, match="n_epochs") as caught:
        clf = LaRankClassifier(tol=1e-12, n_epochs=2).fit(X, y)
    assert caught[0].filename == __file__
    assert clf.n_iter_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.set_params(tol=1e-3, n_epochs=None).fit(X, y)


def test_verbose_prints_a_line_per_epoch(capsys):
    X, y = make_problem()
    LaRankClassifier(n_epochs=2, verbose=1).fit(X, y)
    assert capsys.readouterr().out.count("support patterns") == 2


# --- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_threads_do_not_change_scores(monkeypatch, dtype):
    X, y = make_problem(300, 8, 4)
    X = X.astype(dtype)
    clf = LaRankClassifier().fit(X, y)
    K = pairwise_kernels(X, clf.support_vectors_, metric="rbf", gamma=clf.gamma_)
    monkeypatch.setattr("polymargin.solvers.kernel_scores.SUPPORT_AT_ONCE", 7)
    monkeypatch.setattr("polymargin.solvers.kernel_scores.BLOCK_BYTES", 1000)
    for n_jobs in (None, 2):
        scores = clf.set_params(n_jobs=n_jobs).decision_function(X)
        assert scores.dtype == dtype
        np.testing.assert_allclose(scores, K @ clf.dual_coef_.T, atol=1e-4)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_predictions_need_no_matrix_of_all_kernel_values(n_jobs):
    rng = np.random.default_rng(0)
    X, support = rng.random((20_000, 3)), rng.random((3000, 3))
    function = KernelFunction("rbf", gamma=1.0)
    tracemalloc.start()
    kernel_scores(function, X, support, rng.random((2, 3000)), n_jobs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 8 * X.shape[0] * len(support)


def test_top_k_predictions_are_the_best_classes_in_order():
    X, y = make_problem()
    names = np.array(["a", "b", "c", "d"])
    clf = LaRankClassifier(random_state=0).fit(X, names[y])
    best = clf.predict_top_k(X, k=3)
    np.testing.assert_array_equal(best[:, 0], clf.predict(X))
    scores = np.take_along_axis(clf.decision_function(X), np.searchsorted(names, best), axis=1)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_clones_and_pickles():
    X, y = make_problem()
    clf = LaRankClassifier(random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    assert not hasattr(clone(clf), "dual_coef_")


def test_a_pickle_does_not_mix_up_the_support_vectors():
    """Pickling renumbers the slots, also of a model that was asked for some of its arrays."""
    X, y = make_problem(400, 8, 4)
    clf = LaRankClassifier(C=0.5, random_state=0).fit(X, y)
    assert len(clf._model.machine.patterns) > len(clf.support_)
    again = pickle.loads(pickle.dumps(clf))
    for one in (clf, again):
        np.testing.assert_array_equal(one.support_vectors_, X[clf.support_])


# --- real data -----------------------------------------------------------------------------------


def test_one_pass_over_usps_is_nearly_as_good_as_the_optimum(load_data):
    X, y, X_test, y_test = load_data("usps", np.float32)
    X, X_test = (X[:2000] + 1) / 2, (X_test + 1) / 2
    settings = {"C": 10.0, "gamma": 0.025, "random_state": 0}
    once = LaRankClassifier(**settings).fit(X, y[:2000])
    final = LaRankClassifier(**settings, tol=1e-3).fit(X, y[:2000])
    svc = SVC(C=10.0, gamma=0.025).fit(X, y[:2000])
    assert final.score(X_test, y_test) == pytest.approx(svc.score(X_test, y_test), abs=0.01)
    assert once.score(X_test, y_test) == pytest.approx(final.score(X_test, y_test), abs=0.01)
    assert once.n_kernel_evaluations_ < final.n_kernel_evaluations_ / 1.3
