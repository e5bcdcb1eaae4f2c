"""The kernel values of LaRank's support patterns, computed in C++, against NumPy in double."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from polymargin import LaRankClassifier
from polymargin.kernel_functions import KernelFunction
from polymargin.solvers.engines.patterns import CalledPatterns, PrecomputedPatterns, VectorPatterns
from tests.estimators import make_problem

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.4, "degree": 3.0, "coef0": 1.0},
    "sigmoid": {"gamma": 0.2, "coef0": -0.3},
}
by_kernel = pytest.mark.parametrize("kernel", KERNELS)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
by_layout = pytest.mark.parametrize("layout", ["dense", "csr", "csr of int64"])


def laid_out(X, layout):
    if layout == "dense":
        return np.ascontiguousarray(X)
    X = sparse.csr_array(X)
    if layout == "csr of int64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def make_rows(n, d, dtype, seed=0):
    """Half of the entries are zero, and so is every ninth row."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5) / np.sqrt(d)
    X[::9] = 0.0
    return X.astype(dtype)


def exact(kernel, A, B):
    return pairwise_kernels(A.astype(float), B.astype(float), metric=kernel, **KERNELS[kernel])


def slots(*numbers):
    return np.array(numbers, dtype=np.int32)


def assert_rows(store, kernel, X, columns):
    """Rows of few and of many examples, and of patterns, with all slots and with some."""
    close = (
        {"rtol": 1e-5, "atol": 2e-6} if X.dtype == np.float32 else {"rtol": 1e-13, "atol": 1e-14}
    )
    rng = np.random.default_rng(1)
    n = len(columns)
    source = store.source
    for chosen in (np.arange(n), rng.permutation(n), rng.permutation(n)[: n // 3], np.arange(0)):
        chosen = chosen.astype(np.int32)
        for m in (1, 3, 9, 17, 64):
            examples = rng.choice(len(X), m, replace=False)
            K = source.example_rows(examples, chosen)
            assert K.dtype == X.dtype
            np.testing.assert_allclose(
                K, exact(kernel, X[examples], X[columns])[:, chosen], **close
            )
        slot = int(rng.integers(n))
        row = source.pattern_row(slot, chosen)
        expected = exact(kernel, X[columns[[slot]]], X[columns])[0, chosen]
        np.testing.assert_allclose(row, expected, **close)


@by_kernel
@by_layout
@by_dtype
@pytest.mark.parametrize("d", [1, 7, 33, 300])
def test_rows_are_those_of_numpy_while_patterns_come_and_go(kernel, layout, dtype, d):
    X = make_rows(700, d, dtype)
    store = VectorPatterns(
        KernelFunction(kernel, **KERNELS[kernel]), d, dtype, is_sparse=layout != "dense"
    )
    store.lend(laid_out(X, layout), 0)
    store.source.append(np.arange(40))
    assert_rows(store, kernel, X, np.arange(40))
    store.source.append(np.arange(100, 690))
    columns = np.r_[:40, 100:690]
    assert_rows(store, kernel, X, columns)
    kept = np.sort(np.random.default_rng(0).permutation(len(columns))[:83]).astype(np.int32)
    store.source.keep(kept)
    columns = columns[kept]
    assert_rows(store, kernel, X, columns)
    store.source.append(np.arange(50, 60))
    columns = np.r_[columns, 50:60]
    assert_rows(store, kernel, X, columns)
    found = store.vectors(slots(92, 0, 5))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(found, X[columns[[92, 0, 5]]])
    store.source.keep(slots())
    assert len(store) == 0 and store.vectors(slots()).shape == (0, d)


@by_layout
def test_later_batches_have_later_numbers(layout):
    X = make_rows(60, 5, np.float64)
    store = VectorPatterns(KernelFunction("linear"), 5, X.dtype, layout != "dense")
    store.lend(laid_out(X[:30], layout), 0)
    store.source.append(np.arange(1, 30, 2))
    store.give_back()
    store.lend(laid_out(X[30:], layout), 30)
    store.source.append(np.arange(31, 60, 2))
    K = store.source.example_rows(np.array([30, 58]), np.arange(30, dtype=np.int32))
    np.testing.assert_allclose(K, X[[30, 58]] @ X[1::2].T, atol=1e-14)
    with pytest.raises(ValueError, match="not in the batch"):
        store.source.example_rows(np.array([29]), slots(0))
    with pytest.raises(ValueError, match="not in the batch"):
        store.source.append(np.array([60]))


def test_unknown_slots_and_kernels_are_refused():
    X = make_rows(9, 4, np.float32)
    store = VectorPatterns(KernelFunction("rbf"), 4, X.dtype, False)
    store.lend(X, 0)
    store.source.append(np.arange(5))
    for use in (
        lambda: store.source.example_rows(np.array([0]), slots(5)),
        lambda: store.source.pattern_row(-1, slots(0)),
        lambda: store.vectors(slots(-1)),
        lambda: store.source.keep(slots(0, 7)),
    ):
        with pytest.raises(ValueError, match="no such slot"):
            use()
    with pytest.raises(ValueError, match="must increase"):
        store.source.keep(slots(2, 1))
    with pytest.raises(ValueError, match="columns"):
        store.lend(X[:, :3].copy(), 0)
    with pytest.raises(ValueError, match="unknown kernel"):
        VectorPatterns(KernelFunction("cosine"), 4, X.dtype, False)


@by_layout
def test_a_batch_is_kept_only_while_it_is_lent(layout):
    X = laid_out(make_rows(20, 6, np.float64), layout)
    values = X if layout == "dense" else X.data
    before = sys.getrefcount(values)
    store = VectorPatterns(KernelFunction("rbf"), 6, np.float64, layout != "dense")
    store.lend(X, 0)
    assert sys.getrefcount(values) > before
    store.give_back()
    assert sys.getrefcount(values) == before


@by_dtype
def test_gram_matrices_are_read(dtype):
    K = np.random.default_rng(0).standard_normal((30, 30)).astype(dtype)
    store = PrecomputedPatterns(dtype)
    store.lend(K, 0)
    store.source.append(np.array([4, 7, 29, 0]))
    store.source.keep(slots(1, 2, 3))
    found = store.source.example_rows(np.array([3, 28]), slots(2, 0))
    np.testing.assert_array_equal(found, K[[3, 28]][:, [0, 7]])
    np.testing.assert_array_equal(store.source.pattern_row(1, slots(0, 1)), K[29, [7, 29]])
    assert store.columns.tolist() == [7, 29, 0] and store.n_evaluations == 6
    with pytest.raises(ValueError, match="square"):
        store.lend(K[:5], 0)
    with pytest.raises(ValueError, match="not in the Gram matrix"):
        store.lend(K[:9, :9].copy(), 0)


def test_values_are_counted_as_they_are_computed():
    """From three quarters of the slots on, all are."""
    X = make_rows(60, 4, np.float64)
    stores = [
        VectorPatterns(KernelFunction("rbf", gamma=0.3), 4, X.dtype, False),
        CalledPatterns(KernelFunction(lambda A, B: A @ B.T), 4, X.dtype, False),
    ]
    for store in stores:
        store.lend(X, 0)
        for i in range(40):
            store.source.append(i if isinstance(store, CalledPatterns) else np.array([i]))
        store.source.example_rows(np.array([50, 41, 3]), np.arange(29, dtype=np.int32))
        assert store.n_evaluations == 3 * 29
        store.source.pattern_row(9, np.arange(30, dtype=np.int32))
        assert store.n_evaluations == 3 * 29 + 40


# --- extremes ------------------------------------------------------------------------------------


@by_dtype
@by_layout
def test_tiny_values_have_all_their_digits(dtype, layout):
    """The hyperbolic tangent of small numbers included."""
    X = make_rows(50, 6, dtype) * dtype(1e-6)
    for kernel in ("linear", "sigmoid"):
        function = KernelFunction(kernel, gamma=1.0, coef0=0.0)
        store = VectorPatterns(function, 6, dtype, layout != "dense")
        store.lend(laid_out(X, layout), 0)
        store.source.append(np.arange(40))
        K = store.source.example_rows(np.arange(50), np.arange(40, dtype=np.int32))
        expected = X.astype(float) @ X[:40].astype(float).T
        scale = np.linalg.norm(X.astype(float), axis=1)
        error = np.abs(K - expected) / np.maximum(np.outer(scale, scale[:40]), 1e-300)
        assert error.max() < 10 * np.finfo(dtype).eps


@by_dtype
def test_the_hyperbolic_tangent_is_that_of_numpy(dtype):
    x = np.r_[0.0, np.logspace(-12, 3, 4001), -np.logspace(-12, 3, 4001)].astype(dtype)[:, None]
    store = VectorPatterns(KernelFunction("sigmoid", gamma=1.0, coef0=0.0), 1, dtype, False)
    store.lend(np.vstack([x, np.ones((1, 1), dtype)]), 0)
    store.source.append(np.arange(len(x)))
    found = store.source.example_rows(np.array([len(x)]), np.arange(len(x), dtype=np.int32))[0]
    np.testing.assert_allclose(
        found, np.tanh(x.ravel().astype(float)), rtol=6 * np.finfo(dtype).eps
    )


@pytest.mark.parametrize("degree", [0.0, 1.0, 2.0, 5.0, 32.0, 33.0, 2.5])
@by_dtype
def test_powers_are_those_of_numpy(degree, dtype):
    x = np.linspace(0.1, 2.0, 700).astype(dtype)[:, None]
    function = KernelFunction("poly", gamma=1.0, coef0=0.0, degree=degree)
    store = VectorPatterns(function, 1, dtype, False)
    store.lend(np.vstack([x, np.ones((1, 1), dtype)]), 0)
    store.source.append(np.arange(len(x)))
    found = store.source.example_rows(np.array([len(x)]), np.arange(len(x), dtype=np.int32))[0]
    expected = x.ravel().astype(float) ** degree
    np.testing.assert_allclose(found, expected, rtol=(2 + degree) * np.finfo(dtype).eps)


@by_layout
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_values_that_overflow_are_an_error(kernel, layout):
    """Squares of 1e20 are infinite in float32, their differences not numbers."""
    X, y = make_problem()
    X = laid_out((X * 1e20).astype(np.float32), layout)
    with pytest.raises(ValueError, match="NaN or infinite: scale the features"):
        LaRankClassifier(kernel=kernel, gamma=0.1, random_state=0).fit(X, y)


def test_a_pattern_whose_value_with_itself_overflows_is_not_taken():
    X = np.array([[1.0, 1.0], [1e200, 1e200]])
    store = VectorPatterns(KernelFunction("linear"), 2, X.dtype, False)
    store.lend(X, 0)
    store.source.append(np.array([0]))
    with pytest.raises(ValueError, match="scale the features"):
        store.source.append(np.array([1]))
    assert len(store) == 1
    np.testing.assert_array_equal(store.source.pattern_row(0, slots(0)), [2.0])
