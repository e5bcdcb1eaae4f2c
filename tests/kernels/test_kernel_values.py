"""Kernel values in blocks, against scikit-learn's and against exact exponentials."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from polymargin._kernels import kernels
from polymargin.kernel_functions import KernelFunction, TrainingKernel, resolve_gamma
from polymargin.solvers.row_cache import MemberGram, RowCache

FUNCTIONS = [
    ("linear", {}),
    ("rbf", {"gamma": 0.2}),
    ("poly", {"gamma": 0.3, "coef0": 1.0, "degree": 3}),
    ("sigmoid", {"gamma": 0.1, "coef0": 0.2}),
]


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_exponentials_have_all_their_digits(dtype, accuracy):
    x = np.r_[0.0, np.logspace(-9, 1.9, 20_001), np.linspace(0, 80, 20_001)].astype(dtype)
    K = np.zeros((1, len(x)), dtype)
    kernels.rbf_from_products(K, np.zeros(1, dtype), x, 1.0)
    expected = np.exp(-x.astype(np.longdouble))
    assert K[0, 0] == 1.0
    assert np.max(np.abs(K[0] - expected) / expected) < accuracy
    kernels.rbf_from_products(K, np.zeros(1, dtype), np.full(len(x), 1e30, dtype), 1.0)
    assert 0 <= K.max() < 1e-30


@pytest.mark.parametrize(("name", "settings"), FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_are_those_of_scikit_learn(name, settings, dtype):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((20, 7)).astype(dtype), rng.standard_normal((31, 7)).astype(dtype)
    expected = pairwise_kernels(A.astype(float), B.astype(float), metric=name, **settings)
    function = KernelFunction(name, **settings)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12}
    for rows, columns in ((A, B), (sparse.csr_array(A), sparse.csr_array(B))):
        K = function.block(rows, columns)
        assert K.dtype == dtype
        np.testing.assert_allclose(K, expected, **close)
        own = function.block(rows, rows)
        np.testing.assert_allclose(function.diagonal(rows), np.diagonal(own), rtol=1e-4)


def test_gamma_is_that_of_scikit_learn():
    X = np.random.default_rng(0).standard_normal((30, 4)) * [1, 2, 0, 3]
    assert resolve_gamma("scale", X) == pytest.approx(1 / (4 * X.var()))
    assert resolve_gamma("scale", sparse.csr_array(X)) == pytest.approx(1 / (4 * X.var()))
    assert resolve_gamma("auto", X) == 0.25
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0


@pytest.mark.parametrize("slots", [0, 1, 5, 100])
def test_cached_rows_are_the_rows(slots):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    cache = RowCache(kernel, slots * 40 * 8)
    whole = kernel.block(np.arange(40))
    for _ in range(60):
        chosen = rng.choice(40, size=rng.integers(1, 12), replace=False)
        np.testing.assert_allclose(cache.rows(chosen), whole[chosen], rtol=1e-13)
    np.testing.assert_allclose(cache.rows(np.arange(40)), whole, rtol=1e-14)
    assert cache.n_evaluations == 40 * 40 if slots == 100 else cache.n_evaluations > 40 * 40


def test_the_members_gram_matrix_follows_its_members():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    whole = kernel.block(np.arange(60))
    gram = MemberGram(kernel)
    for _ in range(40):
        wanted = rng.choice(60, size=rng.integers(1, 25), replace=False)
        gram.change_to(wanted, 30)
        assert set(wanted) <= set(gram.members)
        assert len(gram.members) == len(set(gram.members)) <= 30
        m = len(gram.members)
        expected = whole[np.ix_(gram.members, gram.members)]
        np.testing.assert_allclose(gram.matrix[:m, :m], expected, rtol=1e-13)
