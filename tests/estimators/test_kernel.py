"""KernelMulticlassSVC: the optimum of its problem for every loss and kernel, in bounded memory."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import KernelMulticlassSVC, KernelSolver, LinearMulticlassSVC
from polymargin.kernel_functions import KernelFunction, training_kernel
from polymargin.solvers.engines import kernel as solver_module
from tests.estimators import LOSS_PARAMS, loss_id, make_problem, make_sparse_problem
from tests.estimators.test_conformance import run_at_the_default_tolerance
from tests.reference.objective import Spec, primal
from tests.reference.whole_problem import optimum

TIGHT = {"tol": 1e-8, "random_state": 0}
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "poly", "gamma": 0.2, "coef0": 1.0, "degree": 2},
    {"kernel": "sigmoid", "gamma": 1e-3, "coef0": 0.0},  # larger ones are not positive here
]
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)
by_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])


def gram(X, kernel, Z=None):
    settings = {k: v for k, v in kernel.items() if k != "kernel"}
    return pairwise_kernels(X, Z, metric=kernel["kernel"], **settings)


def features(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


@by_loss
@by_kernel
@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
def test_the_dual_is_that_of_a_qp_solver(params, kernel, weights):
    X, y = make_problem(30, 4, 3)
    weight = np.random.default_rng(0).uniform(0.2, 2, 30) if weights else np.ones(30)
    weight[:2] = 0 if weights else 1
    top_k = 2 if "top_k" in params else None
    clf = KernelMulticlassSVC(**{**params, "top_k": top_k}, **kernel, **TIGHT, C=0.7)
    clf.fit(X, y, sample_weight=weight)
    spec = Spec(features(gram(X, kernel)), y, 0.7 * weight, params["loss"], top_k, 0.0, 3)
    best = optimum(spec)
    assert clf.dual_objective_ == pytest.approx(best, rel=1e-6)
    assert clf.objective_ == pytest.approx(best, rel=1e-6)


@by_loss
@pytest.mark.parametrize("solver", [None, KernelSolver(working_set=1), KernelSolver(working_set=7)])
def test_working_sets_of_any_size_reach_the_same_optimum(params, solver):
    X, y = make_problem(80)
    settings = {**params, "kernel": "rbf", "C": 2.0, "tol": 1e-5, "random_state": 0}
    reference = KernelMulticlassSVC(**{**settings, "tol": 1e-8}).fit(X, y)
    clf = KernelMulticlassSVC(**settings, solver=solver, max_iter=200_000).fit(X, y)
    assert clf.dual_gap_ <= 1e-5
    assert clf.objective_ <= reference.objective_ * (1 + 2e-5)


@by_loss
@pytest.mark.parametrize("n", [150, 700], ids=["one neighbourhood", "several neighbourhoods"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_linear_kernel_gives_the_linear_optimum(params, dtype, n):
    X, y = make_problem(n)
    X = X.astype(dtype)
    tol = 1e-6 if dtype == np.float64 else 1e-4
    linear = LinearMulticlassSVC(
        **params, fit_intercept=False, tol=1e-7, max_iter=100_000, random_state=0
    ).fit(X.astype(float), y)
    assert linear.dual_gap_ <= 1e-7
    clf = KernelMulticlassSVC(**params, kernel="linear", tol=tol, random_state=0).fit(X, y)
    assert clf.objective_ <= linear.objective_ * (1 + 2 * tol)
    assert clf.dual_objective_ <= linear.objective_ * (1 + tol)
    assert clf.decision_function(X).dtype == dtype
    # the objective is strongly convex: ||W - W*||^2 <= 2 gap P for both
    radius = np.sqrt(2 * tol * clf.objective_) + np.sqrt(2e-7 * clf.objective_)
    difference = clf.decision_function(X) - linear.decision_function(X.astype(float))
    assert np.abs(difference).max() <= 1.01 * radius * np.linalg.norm(X, axis=1).max()


@by_kernel
def test_the_reported_objective_is_that_of_the_predictions(kernel):
    X, y = make_problem(90)
    clf = KernelMulticlassSVC(**kernel, C=0.5, tol=1e-6).fit(X, y)
    a = np.zeros((90, 4))
    a[clf.support_] = clf.dual_coef_.T
    norm = np.sum(a * (gram(X, kernel) @ a))
    scores = clf.decision_function(X)
    own = scores[np.arange(90), y][:, None]
    h = 1 + scores - own
    h[np.arange(90), y] = 0
    value = 0.5 * norm + 0.5 * np.maximum(h.max(axis=1), 0).sum()
    assert clf.objective_ == pytest.approx(value, rel=1e-9)
    assert clf.dual_objective_ == pytest.approx(
        sum(a[i, y[i]] for i in range(90)) - 0.5 * norm, rel=1e-9
    )


@by_loss
def test_a_precomputed_kernel_equals_computing_it(params):
    X, y = make_problem(100)
    Z, _ = make_problem(40, seed=1)
    kernel = KERNELS[1]
    computed = KernelMulticlassSVC(**params, **kernel, **TIGHT).fit(X, y)
    given = KernelMulticlassSVC(**params, kernel="precomputed", **TIGHT).fit(gram(X, kernel), y)
    called = KernelMulticlassSVC(**params, kernel=lambda A, B: gram(A, kernel, B), **TIGHT).fit(
        X, y
    )
    for other, rows in ((given, gram(Z, kernel, X)), (called, Z)):
        assert other.dual_objective_ == pytest.approx(computed.dual_objective_, rel=1e-7)
        np.testing.assert_allclose(
            other.decision_function(rows), computed.decision_function(Z), atol=1e-4
        )


@by_kernel
def test_sparse_and_dense_data_agree(kernel):
    X, y = make_sparse_problem()
    first = KernelMulticlassSVC(**kernel, **TIGHT).fit(X, y)
    second = KernelMulticlassSVC(**kernel, **TIGHT).fit(X.toarray(), y)
    assert sparse.issparse(first.support_vectors_)
    assert first.dual_objective_ == pytest.approx(second.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(X), atol=1e-3)


def test_fitted_attributes_have_the_promised_shapes():
    X, y = make_problem(120)
    labels = np.array(["a", "b", "c", "d"])[y]
    clf = KernelMulticlassSVC(C=0.3, random_state=0).fit(X, labels)
    m = len(clf.support_)
    assert clf.dual_coef_.shape == (4, m)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    np.testing.assert_array_equal(
        clf.n_support_, [np.sum(labels[clf.support_] == c) for c in clf.classes_]
    )
    np.testing.assert_allclose(clf.dual_coef_.sum(axis=0), 0, atol=1e-12)
    assert clf.predict_top_k(X, 2).shape == (120, 2)
    np.testing.assert_array_equal(clf.predict_top_k(X, 1).ravel(), clf.predict(X))
    binary = KernelMulticlassSVC().fit(X, y > 1)
    assert binary.dual_coef_.shape == (1, len(binary.support_))
    assert binary.decision_function(X).shape == (120,)


def test_shrinking_does_not_change_the_optimum(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 4
    X = rng.standard_normal((400, 6)) + 4 * rng.standard_normal((4, 6))[y]
    X[:40] += 2 * rng.standard_normal((40, 6))
    monkeypatch.setattr(solver_module, "IDLE_ROUNDS", 1)
    monkeypatch.setattr(solver_module, "NEW_EXAMPLES", 20)
    settings = {"C": 5.0, "gamma": 0.5, "tol": 1e-6, "random_state": 0}
    clf = KernelMulticlassSVC(**settings).fit(X, y)
    assert min(clf.history_["n_awake"]) < 400  # it did shrink
    other = KernelMulticlassSVC(**settings, solver=KernelSolver(shrinking=False)).fit(X, y)
    assert set(other.history_["n_awake"]) == {400}
    assert clf.dual_objective_ == pytest.approx(other.dual_objective_, rel=2e-6)
    assert clf.dual_gap_ <= 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_shrinking_does_not_keep_a_slow_problem_from_its_tolerance(seed):
    X, y = make_problem(150)  # a kernel of rank 8
    clf = KernelMulticlassSVC(
        loss="top_k_beta", top_k=1, kernel="linear", tol=1e-8, random_state=seed
    ).fit(X, y)
    assert clf.dual_gap_ <= 1e-8
    assert clf.n_iter_ < 1000


def test_a_tiny_cache_changes_the_time_only():
    X, y = make_problem(300)
    settings = {"C": 3.0, "tol": 1e-5, "random_state": 0, "max_iter": 100_000}
    large = KernelMulticlassSVC(**settings).fit(X, y)
    small = KernelMulticlassSVC(**settings, cache_size=0.01).fit(X, y)
    assert small.n_kernel_evaluations_ > 2 * large.n_kernel_evaluations_
    assert small.dual_objective_ == pytest.approx(large.dual_objective_, rel=2e-5)


def test_a_warm_start_saves_work_also_after_another_C():
    X, y = make_problem(300)
    clf = KernelMulticlassSVC(C=1.0, warm_start=True, random_state=0, tol=1e-4).fit(X, y)
    again = clf.fit(X, y).n_iter_
    assert again == 0
    clf.set_params(C=1.1).fit(X, y)
    cold = KernelMulticlassSVC(C=1.1, random_state=0, tol=1e-4).fit(X, y)
    assert clf.n_iter_ < cold.n_iter_
    assert clf.objective_ == pytest.approx(cold.objective_, rel=2e-4)


def test_the_same_seed_gives_the_same_model():
    X, y = make_problem(200)
    models = [KernelMulticlassSVC(random_state=3).fit(X, y).dual_coef_ for _ in range(2)]
    np.testing.assert_array_equal(*models)


def test_it_can_be_cloned_and_searched():
    X, y = make_problem(100)
    clf = KernelMulticlassSVC(solver=KernelSolver(inner_stop=0.2))
    assert clone(clf).get_params()["solver__inner_stop"] == 0.2
    search = GridSearchCV(clf, {"C": [0.1, 1.0], "gamma": ["scale", 0.1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


# --- limits and interrupts ------------------------------------------------------------------------


def test_an_interrupt_leaves_a_usable_model():
    X, y = make_problem(200)
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        if len(calls) == 240:  # the diagonal takes 200 calls
            signal.raise_signal(signal.SIGINT)
        return gram(A, KERNELS[1], B)

    clf = KernelMulticlassSVC(
        kernel=kernel, random_state=0, tol=1e-9, cache_size=0.02, C=10.0, max_iter=10_000
    )
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.score(X, y) > 0.3
    a = np.zeros((200, 4))
    a[clf.support_] = clf.dual_coef_.T
    K = gram(X, KERNELS[1])
    dual = a[np.arange(200), y].sum() - 0.5 * np.sum(a * (K @ a))
    assert clf.dual_objective_ == pytest.approx(dual, rel=1e-8)


def test_limits_warn():
    X, y = make_problem(300)
    with pytest.warns(ConvergenceWarning, match="max_iter after 1 working sets"):
        KernelMulticlassSVC(max_iter=1, tol=1e-6, C=10).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        KernelMulticlassSVC(tol=0.0, solver=KernelSolver(time_limit=1e-6)).fit(X, y)


def test_a_tolerance_beyond_the_precision_ends_with_a_warning():
    X, y = make_problem(200)
    clf = KernelMulticlassSVC(tol=1e-14, C=10, random_state=0)
    with pytest.warns(ConvergenceWarning, match="precision of its kernel values"):
        clf.fit(X.astype(np.float32), y)
    assert clf.dual_gap_ < 1e-4


def test_a_set_of_one_is_a_set_of_one():
    X, y = make_problem(60)
    visited = []

    def kernel(A, B):
        visited.append((len(A), len(B)))
        return gram(A, KERNELS[1], B)

    solver = KernelSolver(working_set=1, shrinking=False)
    KernelMulticlassSVC(kernel=kernel, solver=solver, tol=1e-2).fit(X, y)
    assert max(rows for rows, _ in visited) == 1
    assert {columns for _, columns in visited} == {1, 60}  # its own Gram matrix, and rows


def test_small_sets_compute_a_row_once_when_there_is_room():
    X, y = make_problem(400)
    clf = KernelMulticlassSVC(solver=KernelSolver(working_set=1), tol=1e-2).fit(X, y)
    assert clf.n_iter_ > 400
    assert clf.dual_gap_ <= 1e-2
    assert clf.n_kernel_evaluations_ < 1.5 * len(X) ** 2  # all pairs, and a check at the end


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.zeros((2, 3)), "shape"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN"),
        (lambda A, B: np.full((len(A), len(B)), "a"), "dtype"),
        (lambda A, B: 1 / 0, "division"),
    ],
)
def test_a_bad_callable_is_reported(kernel, message):
    X, y = make_problem(40)
    with pytest.raises((ValueError, ZeroDivisionError), match=message):
        KernelMulticlassSVC(kernel=kernel).fit(X, y)


def test_a_gram_matrix_must_be_square_symmetric_and_positive():
    X, y = make_problem(40)
    K = gram(X, KERNELS[1])
    with pytest.raises(ValueError, match="square"):
        KernelMulticlassSVC(kernel="precomputed").fit(K[:, :30], y)
    with pytest.raises(ValueError, match="symmetric"):
        KernelMulticlassSVC(kernel="precomputed").fit(K + np.triu(np.ones_like(K)), y)
    with pytest.raises(ValueError, match="not positive"):
        KernelMulticlassSVC(kernel="precomputed").fit(-K, y)
    rng = np.random.default_rng(0)
    indefinite = rng.standard_normal((40, 40))
    indefinite = indefinite + indefinite.T
    np.fill_diagonal(indefinite, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises((ValueError, ConvergenceWarning)):
            KernelMulticlassSVC(kernel="precomputed", C=10, max_iter=200).fit(indefinite, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "cosine"}, "kernel"),
        ({"gamma": -1.0}, "gamma"),
        ({"C": 0.0}, "C"),
        ({"cache_size": 0}, "cache_size"),
        ({"loss": "top_k_beta", "top_k": 4}, "top_k"),
        ({"solver": KernelSolver(working_set=0)}, "working_set"),
        ({"solver": KernelSolver(inner_stop=1.0)}, "inner_stop"),
        ({"solver": KernelSolver(inner_passes=0)}, "inner_passes"),
        ({"solver": KernelSolver(time_limit=-1)}, "time_limit"),
        ({"solver": KernelSolver(restricted="walrus")}, "newton"),
    ],
)
def test_bad_parameters_are_refused(settings, message):
    X, y = make_problem(40)
    with pytest.raises(ValueError, match=message):
        KernelMulticlassSVC(**settings).fit(X, y)


def test_an_all_zero_row_costs_its_constant_loss():
    X, y = make_problem(50)
    X[4] = 0
    clf = KernelMulticlassSVC(kernel="linear", tol=1e-7).fit(X, y)
    spec = Spec(X, y, np.ones(50), "crammer_singer", None, 0.0, 4)
    W = np.zeros((4, X.shape[1]))
    W += clf.dual_coef_ @ clf.support_vectors_
    assert clf.objective_ == pytest.approx(primal(spec, W, np.zeros(4)), rel=1e-9)


# --- scikit-learn's own checks --------------------------------------------------------------------


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_sample_weight_equivalence_on_dense_data,
        estimator_checks.check_sample_weight_equivalence_on_sparse_data,
    ],
)
def test_weights_equal_repetitions_at_a_tight_tolerance(check):
    # gamma="scale" depends on which rows are repeated
    check("KernelMulticlassSVC", KernelMulticlassSVC(tol=1e-10, gamma=0.1))


@parametrize_with_checks([KernelMulticlassSVC(**params) for params in LOSS_PARAMS])
def test_checks_pass_at_the_default_tolerance(estimator, check, request):
    run_at_the_default_tolerance(check, estimator, request)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid"])
def test_threads_of_kernel_values_change_no_bit(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2600, 5))  # several tiles
    function = KernelFunction(kernel, gamma=0.3, coef0=0.5)
    rows, columns = rng.permutation(2600)[:700], rng.permutation(2600)
    coef = rng.standard_normal((700, 3)) * (rng.random((700, 3)) < 0.5)
    one, three = training_kernel(X, function), training_kernel(X, function, threads=3)
    assert one.block(rows, columns).tobytes() == three.block(rows, columns).tobytes()
    assert one.times(columns, rows, coef).tobytes() == three.times(columns, rows, coef).tobytes()
    assert one.n_evaluations == three.n_evaluations == 2 * 700 * 2600


def test_a_fit_on_threads_is_the_same_fit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    params = {"gamma": 0.5, "random_state": 0, "cache_size": 1}
    alone = KernelMulticlassSVC(**params).fit(X, y)
    shared = KernelMulticlassSVC(**params, n_jobs=3).fit(X, y)
    assert alone.dual_coef_.tobytes() == shared.dual_coef_.tobytes()
    assert alone.dual_gap_ == shared.dual_gap_
