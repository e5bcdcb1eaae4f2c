"""LaRankClassifier on streams, with bad input, and when it is interrupted."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from polymargin import LaRankClassifier
from tests.estimators import make_problem, needs_callbacks
from tests.reference.kernel_problem import dual_value, infeasibility

GAMMA = 0.3


def rbf(A, B):
    return rbf_kernel(A, B, gamma=GAMMA)


def assert_consistent(clf: LaRankClassifier, X: np.ndarray, y: np.ndarray) -> None:
    """The model is a feasible point whose dual value is the one reported."""
    beta = np.zeros((len(y), len(clf.classes_)))
    beta[clf.support_] = clf.dual_coef_.T
    assert infeasibility(y, beta, clf.C) <= 1e-12
    K = rbf(X, X)
    assert clf._model.machine.dual == pytest.approx(dual_value(K, y, beta), rel=1e-9)
    np.testing.assert_allclose(clf.decision_function(X), K @ beta, atol=1e-9)


# --- partial_fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 120])
def test_batches_of_any_size_are_one_stream(size):
    X, y = make_problem()
    clf = LaRankClassifier(gamma=GAMMA, random_state=0)
    for start in range(0, len(y), size):
        clf.partial_fit(X[start : start + size], y[start : start + size])
    assert clf.n_iter_ == -(-len(y) // size)
    assert_consistent(clf, X, y)
    whole = LaRankClassifier(gamma=GAMMA, random_state=0).partial_fit(X, y, classes=range(4))
    np.testing.assert_allclose(clf.support_vectors_, X[clf.support_])
    assert clf.score(X, y) == pytest.approx(whole.score(X, y), abs=0.1)


def test_partial_fit_is_one_epoch_in_the_given_order():
    X, y = make_problem()
    clf = LaRankClassifier(gamma=GAMMA, random_state=0).partial_fit(X, y)
    same = LaRankClassifier(gamma=GAMMA, random_state=0, shuffle=False).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), same.decision_function(X))


def test_classes_may_appear_later():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    order = np.argsort(y >= 5, kind="stable")  # first the digits 0 to 4, then the others
    X, y = X[order], y[order]
    clf = LaRankClassifier(gamma=0.1, C=10.0, random_state=0)
    for start in range(0, 800, 100):
        clf.partial_fit(X[start : start + 100], y[start : start + 100])
    np.testing.assert_array_equal(clf.classes_, np.arange(5))
    for start in range(800, len(y), 100):
        clf.partial_fit(X[start : start + 100], y[start : start + 100])
    np.testing.assert_array_equal(clf.classes_, np.arange(10))
    assert clf.dual_coef_.shape == (10, len(clf.support_))
    assert clf.score(X, y) > 0.97


def test_labels_that_sort_before_earlier_ones():
    X, y = make_problem()
    names = np.array(["d", "bb", "c", "a"])
    clf = LaRankClassifier(gamma=GAMMA, random_state=0)
    for code in (0, 1, 2, 3, 0, 1, 2, 3):
        clf.partial_fit(X[y == code], names[y[y == code]])
    np.testing.assert_array_equal(clf.classes_, ["a", "bb", "c", "d"])
    assert clf.score(X, names[y]) > 0.8
    of_label = np.bincount(np.searchsorted(clf.classes_, names[y[_stream(y)][clf.support_]]))
    np.testing.assert_array_equal(clf.n_support_, of_label)


def _stream(y):
    once = np.concatenate([np.flatnonzero(y == code) for code in range(4)])
    return np.concatenate([once, once])


def test_a_new_class_of_one_example():
    X, y = make_problem(n_classes=2)
    clf = LaRankClassifier(gamma=GAMMA, C=10.0, random_state=0).partial_fit(X, y)
    assert clf.decision_function(X).shape == (len(y),)
    far = np.full((1, X.shape[1]), 9.0)
    clf.partial_fit(far, [7])
    np.testing.assert_array_equal(clf.classes_, [0, 1, 7])
    np.testing.assert_array_equal(clf.predict(far), [7])
    assert clf.decision_function(X).shape == (len(y), 3)
    assert clf.score(X, y) > 0.8


def test_a_stream_may_begin_with_a_single_class():
    X, y = make_problem()
    clf = LaRankClassifier(gamma=GAMMA).partial_fit(X[y == 2], y[y == 2])
    np.testing.assert_array_equal(clf.predict(X[:5]), [2] * 5)
    assert len(clf.support_) == 0
    assert clf.partial_fit(X, y).score(X, y) > 0.7


def test_classes_can_be_announced():
    X, y = make_problem()
    clf = LaRankClassifier().partial_fit(X[:50], y[:50], classes=[0, 1, 2, 3, 9])
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2, 3, 9])
    assert clf.decision_function(X).shape == (len(y), 5)
    assert not clf.dual_coef_[4].any() or (clf.dual_coef_[4] <= 0).all()


def test_partial_fit_goes_on_after_fit():
    X, y = make_problem(400)
    clf = LaRankClassifier(gamma=GAMMA, random_state=0).fit(X[:200], y[:200])
    clf.partial_fit(X[200:], y[200:])
    assert_consistent(clf, X, y)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_pickled_stream_goes_on_as_if_nothing_had_been(container):
    X, y = make_problem(400)
    clf = LaRankClassifier(gamma=GAMMA, random_state=0, operations=("optimize",))
    clf.partial_fit(container(X[:200]), y[:200])
    again = pickle.loads(pickle.dumps(clf))
    assert again.n_operations_ == clf.n_operations_
    for one in (clf, again):
        one.partial_fit(container(X[200:]), y[200:])
    assert_consistent(again, X, y)
    assert again.score(container(X), y) == pytest.approx(clf.score(container(X), y), abs=0.05)


def test_only_support_patterns_are_kept():
    X, y = make_problem(2000, 8, 3)
    clf = LaRankClassifier(gamma=GAMMA, C=10.0, random_state=0)
    for start in range(0, len(y), 100):
        clf.partial_fit(X[start : start + 100], y[start : start + 100])
    patterns = clf._model.machine.patterns
    with pytest.raises(ValueError, match="not in the batch"):
        patterns.source.example_rows(np.array([len(y) - 1]), np.zeros(1, np.int32))
    assert len(clf.support_) <= len(patterns) <= 1.25 * len(clf.support_) + 40 < len(y)
    assert len(clf.support_) < 0.8 * len(y)


@pytest.mark.parametrize("first", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_later_batches_may_have_another_layout_and_type(first):
    X, y = make_problem()
    clf = LaRankClassifier(gamma=GAMMA, random_state=0).partial_fit(first(X[:40]), y[:40])
    clf.partial_fit(sparse.csr_array(X[40:80]), y[40:80])
    clf.partial_fit(X[80:].astype(np.float32), y[80:])
    assert sparse.issparse(clf.support_vectors_) == (first is not np.asarray)
    assert clf.support_vectors_.dtype == np.float64
    assert clf.score(X, y) > 0.7


def test_fit_starts_afresh():
    X, y = make_problem()
    clf = LaRankClassifier(random_state=0).partial_fit(X[:, :3], y)
    fresh = LaRankClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.fit(X, y).dual_coef_, fresh.dual_coef_)
    assert clf.n_iter_ == 1


# --- bad input -----------------------------------------------------------------------------------


def test_partial_fit_refuses_what_does_not_go_with_earlier_batches():
    X, y = make_problem()
    clf = LaRankClassifier().partial_fit(X, y)
    before = clf.decision_function(X)
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="one type"):
        clf.partial_fit(X, y.astype(str))
    np.testing.assert_array_equal(clf.decision_function(X), before)


def test_partial_fit_refuses_precomputed_kernels():
    X, y = make_problem()
    with pytest.raises(ValueError, match="partial_fit cannot be used"):
        LaRankClassifier(kernel="precomputed").partial_fit(rbf(X, X), y)


def test_a_precomputed_kernel_is_a_square_matrix():
    X, y = make_problem()
    with pytest.raises(ValueError, match="square"):
        LaRankClassifier(kernel="precomputed").fit(X, y)
    clf = LaRankClassifier(kernel="precomputed").fit(rbf(X, X), y)
    with pytest.raises(ValueError, match="features"):
        clf.predict(rbf(X, X[:5]))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        LaRankClassifier(kernel="precomputed").fit(sparse.csr_array(rbf(X, X)), y)


@pytest.mark.parametrize(
    ("broken", "error", "message"),
    [
        (lambda K: np.full_like(K, np.nan), ValueError, "NaN"),
        (lambda K: np.full_like(K, np.inf), ValueError, "infinity"),
        (lambda K: K[:, :-1], ValueError, "shape"),
        (lambda K: K.ravel(), ValueError, "shape"),
        (lambda K: K.astype(str), ValueError, "not numbers"),
        (lambda K: 1 / 0, ZeroDivisionError, "division"),
    ],
    ids=["nan", "inf", "columns", "flat", "text", "raises"],
)
@pytest.mark.parametrize("good_calls", [0, 60])
def test_a_broken_kernel_is_named_and_leaves_the_model_alone(broken, error, message, good_calls):
    X, y = make_problem()
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        K = rbf(A, B)
        return K if calls <= good_calls else broken(K)

    with pytest.raises(error, match=message):
        LaRankClassifier(kernel=kernel, random_state=0).fit(X, y)
    clf = LaRankClassifier(kernel=rbf, random_state=0).partial_fit(X, y)
    calls = 0
    clf._model.machine.patterns.function.kernel = kernel
    with pytest.raises(error, match=message):
        clf.partial_fit(X + 0.01, y)
    assert_consistent(clf, np.vstack([X, X + 0.01]), np.r_[y, y])


def test_kernel_values_that_overflow_are_an_error():
    X, y = make_problem()
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match="scale the features"),
    ):
        LaRankClassifier(kernel="poly", degree=300, gamma=10.0).fit(1e3 * X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(value):
    X, y = make_problem()
    clf = LaRankClassifier().fit(X, y)
    X[3, 2] = value
    for use in (lambda: clf.fit(X, y), lambda: clf.partial_fit(X, y), lambda: clf.predict(X)):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            use()


def test_one_class_is_refused_by_fit():
    X, y = make_problem()
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        LaRankClassifier().fit(X, np.ones_like(y))


def test_broken_sparse_input_is_refused():
    X, y = make_problem()
    clf = LaRankClassifier().fit(sparse.csr_array(X), y)
    broken = sparse.csr_array(X)
    broken.indices[0] = 10**6
    for use in (lambda: clf.fit(broken, y), lambda: clf.predict(broken)):
        with pytest.raises(ValueError, match="Sparse input"):
            use()


def test_predictions_before_fit_are_refused():
    X, _ = make_problem()
    for method in ("predict", "decision_function", "predict_top_k"):
        with pytest.raises(NotFittedError):
            getattr(LaRankClassifier(), method)(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 0.0),
        ("C", np.inf),
        ("kernel", "gauss"),
        ("gamma", -1.0),
        ("n_epochs", 0),
        ("tol", -1.0),
        ("tol", "gap"),
        ("schedule", "fixed"),
        ("operations", ("process_new",)),
        ("operations", "optimize"),
        ("tau", -1e-3),
        ("kappa", 1.0),
        ("eta", 0.5),
        ("cache_size", 0),
        ("n_jobs", 1.5),
    ],
)
def test_wrong_parameters_are_named(name, value):
    X, y = make_problem()
    with pytest.raises(ValueError, match=name):
        LaRankClassifier(**{name: value}).fit(X, y)


# --- Ctrl-C --------------------------------------------------------------------------------------


def interrupting_kernel(at: int):
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return rbf(A, B)

    return kernel


@pytest.mark.parametrize("at", [1, 2, 50, 200])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_interrupt_leaves_a_usable_model(at, method):
    X, y = make_problem()
    clf = LaRankClassifier(kernel=interrupting_kernel(at), random_state=0)
    with pytest.raises(KeyboardInterrupt):
        getattr(clf, method)(X, y)
    assert_consistent(clf, X, y) if method == "fit" or at > 20 else clf.predict(X)
    assert clf.partial_fit(X, y).score(X, y) > 0.7


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill cannot send SIGINT on Windows")
def test_ctrl_c_stops_a_long_fit():
    X, y = make_problem(2000, 20, 6)
    clf = LaRankClassifier(kernel="rbf", gamma=GAMMA, C=1.0, n_epochs=10**6, random_state=0)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    timer.join()
    assert_consistent(clf, X, y)


@needs_callbacks
def test_a_callback_can_stop_the_fit():
    class StopAt:
        def setup(self, estimator, context):
            self.seen = 0

        def on_fit_task_begin(self, estimator, context):
            return None

        def on_fit_task_end(self, estimator, context):
            self.seen += context.task_name == "pass"
            return self.seen == 3

        def teardown(self, estimator, context):
            return None

    X, y = make_problem()
    clf = LaRankClassifier(n_epochs=10).set_callbacks(StopAt()).fit(X, y)
    assert clf.n_iter_ == 3
    assert clf.score(X, y) > 0.7


# --- threads -------------------------------------------------------------------------------------


def test_a_classifier_that_is_being_trained_lets_other_threads_wait():
    X, y = make_problem()
    entered, go_on = threading.Event(), threading.Event()

    def kernel(A, B):
        if threading.current_thread() is trainer:
            entered.set()
            assert go_on.wait(60)
        return rbf(A, B)

    trainer = None
    clf = LaRankClassifier(kernel=kernel, random_state=0).partial_fit(X, y)
    trainer = threading.Thread(target=clf.partial_fit, args=(X + 0.01, y))
    trainer.start()
    assert entered.wait(60)
    machine = clf._model.machine
    uses = (
        lambda: clf.partial_fit(X + 0.02, y),
        lambda: machine.model(),
        lambda: clf.support_vectors_,
        lambda: clf.predict(X),
    )
    ended = []
    waiting = [threading.Thread(target=lambda u=use: (u(), ended.append(u))) for use in uses]
    try:
        for refused in (machine.clear_cache, machine.counts, lambda: machine.dual):
            with pytest.raises(RuntimeError, match="is being trained"):
                refused()
        for thread in waiting:
            thread.start()
        assert not ended
    finally:
        go_on.set()
        for thread in [trainer, *waiting]:
            thread.join()
    assert len(ended) == len(uses)
    assert_consistent(clf, np.vstack([X, X + 0.01, X + 0.02]), np.r_[y, y, y])
    assert clf.n_iter_ == 3


def test_a_kernel_cannot_use_the_machine_that_asks_it():
    X, y = make_problem()

    def kernel(A, B):
        if hasattr(clf, "_model"):
            pickle.dumps(clf._model.machine)
        return rbf(A, B)

    clf = LaRankClassifier(kernel=kernel, random_state=0)
    clf.partial_fit(X, y)
    with pytest.raises(RuntimeError, match="is being trained"):
        clf.partial_fit(X + 0.01, y)


def test_training_with_a_built_in_kernel_leaves_the_interpreter_to_others():
    """The machine can be seen at work only while it works without the GIL."""
    X, y = make_problem(2500, 20, 6)
    clf = LaRankClassifier(gamma=GAMMA, random_state=0).partial_fit(X[:10], y[:10])
    training = threading.Thread(target=clf.partial_fit, args=(X[10:], y[10:]))
    training.start()
    seen = False
    while training.is_alive():
        try:
            clf._model.machine.dual  # noqa: B018
        except RuntimeError:
            seen = True
    assert seen
    assert_consistent(clf, X, y)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_threads_that_share_a_classifier_do_no_harm(container):
    X, y = make_problem(300, 8, 4)
    clf = LaRankClassifier(gamma=GAMMA, random_state=0).partial_fit(container(X), y)
    errors = []

    def use(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            rows = rng.choice(300, 40)
            try:
                match rng.integers(4):
                    case 0:
                        pickle.loads(pickle.dumps(clf)).predict(container(X))
                    case 1:
                        clf._model.machine.model()
                    case _:
                        clf.partial_fit(container(X[rows]), y[rows])
            except RuntimeError as error:
                if "is being trained" not in str(error):
                    errors.append(error)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    clf.partial_fit(container(X), y)
    assert clf.score(container(X), y) > 0.7


@pytest.mark.parametrize(
    "changes", [{"C": 2.0}, {"gamma": 0.1}, {"kernel": "linear"}, {"operations": ("optimize",)}]
)
def test_parameters_of_the_machine_must_not_change_along_a_stream(changes):
    X, y = make_problem(60)
    clf = LaRankClassifier(random_state=0).partial_fit(X[:30], y[:30])
    before = clf.decision_function(X)
    clf.set_params(**changes)
    with pytest.raises(ValueError, match=next(iter(changes))):
        clf.partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(clf.decision_function(X) if "C" in changes else before, before)
    clf.set_params(**{name: LaRankClassifier().get_params()[name] for name in changes})
    clf.partial_fit(X[30:], y[30:])
    whole = LaRankClassifier(random_state=0).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(clf.decision_function(X), whole.decision_function(X))


def test_parameters_of_fit_alone_may_change_along_a_stream():
    X, y = make_problem(60)
    clf = LaRankClassifier(random_state=0).partial_fit(X[:30], y[:30])
    clf.set_params(tol=1e-3, n_epochs=7, verbose=0, n_jobs=1, random_state=5)
    assert clf.partial_fit(X[30:], y[30:]).n_iter_ == 2
