"""Kernel values in blocks, against scikit-learn's and against exact exponentials."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from polymargin import kernel_functions
from polymargin.core import core
from polymargin.kernel_functions import (
    DenseKernel,
    KernelFunction,
    TrainingKernel,
    resolve_gamma,
    training_kernel,
)
from polymargin.solvers.engines.row_cache import MemberGram, RowCache

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
    kernel = core.Kernel("rbf", gamma=1.0, degree=3.0, coef0=0.0)
    core.values_from_products(kernel, K, np.zeros(1, dtype), x)
    expected = np.exp(-x.astype(np.longdouble))
    assert K[0, 0] == 1.0
    assert np.max(np.abs(K[0] - expected) / expected) < accuracy
    core.values_from_products(kernel, K, np.zeros(1, dtype), np.full(len(x), 1e30, dtype))
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
def test_products_with_cached_rows_are_those_with_the_rows(slots):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    whole = kernel.block(np.arange(40), np.arange(40))
    columns = np.arange(0, 40, 2)
    cache = RowCache(kernel, columns, slots * 20 * 8)
    for _ in range(60):
        chosen = rng.choice(40, size=rng.integers(1, 12), replace=False)
        positions = rng.choice(20, size=rng.integers(1, 20), replace=False)
        coef = rng.standard_normal((len(chosen), 3))
        expected = whole[np.ix_(columns[positions], chosen)] @ coef
        found = cache.times(chosen, coef, positions)
        np.testing.assert_allclose(found[positions], expected, rtol=1e-11)


def test_a_cache_with_fewer_columns_keeps_its_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    whole = kernel.block(np.arange(90), np.arange(90))
    columns, every = np.arange(90), np.arange(90)
    cache = RowCache(kernel, columns, 70 * 90 * 8)
    coef = rng.standard_normal((90, 3))
    cache.times(every[:70], coef[:70], columns)
    for width in (61, 40, 7):
        stay = np.sort(rng.choice(len(columns), width, replace=False))
        cache.narrow(stay)
        columns = columns[stay]
        before = kernel.n_evaluations
        found = cache.times(every[:70], coef[:70], np.arange(width))
        assert kernel.n_evaluations == before
        np.testing.assert_allclose(found, whole[columns, :70] @ coef[:70], rtol=1e-11)
    before = kernel.n_evaluations
    found = cache.times(every, coef, np.arange(7))  # there is room for more rows now
    assert kernel.n_evaluations - before == 20 * 7
    np.testing.assert_allclose(found, whole[columns] @ coef, rtol=1e-11)


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 17, 2), (130, 256, 5), (600, 300, 3), (7, 1000, 26)]
)
@pytest.mark.parametrize("part", [0.0, 0.1, 1.0])
def test_sparse_products_are_dense_products(shape, part, dtype, accuracy):
    rng = np.random.default_rng(3)
    rows, columns, sums = shape
    K = rng.standard_normal((rows, columns + 5)).astype(dtype)
    coef = rng.standard_normal((rows, sums)) * (rng.random((rows, sums)) < part)
    coef = coef.astype(dtype)
    out = np.ones((columns, sums))
    core.add_product(K, coef, out)
    expected = 1 + K[:, :columns].T.astype(float) @ coef
    np.testing.assert_allclose(out, expected, atol=accuracy)
    out = np.ones((columns, sums))
    kernel_functions.add_product(K, coef, out, threads=3)
    np.testing.assert_allclose(out, expected, atol=accuracy)
    half = columns // 2
    out = np.ones((columns - half, sums))
    core.add_product(K, coef, out, half)
    np.testing.assert_allclose(out, expected[half:], atol=accuracy)


@pytest.mark.parametrize(
    "shapes", [((3, 4), (2, 2), (4, 2)), ((3, 4), (3, 2), (5, 2)), ((3, 4), (3, 2), (4, 3))]
)
def test_products_of_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ValueError, match="do not fit"):
        core.add_product(*(np.zeros(shape) for shape in shapes))


def test_rows_in_use_stay_in_the_cache():
    X = np.random.default_rng(0).standard_normal((40, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    every = np.arange(40)
    cache = RowCache(kernel, every, 15 * 40 * 8)
    coef = np.ones((20, 1))
    cache.times(every[:20], coef, every)
    before = kernel.n_evaluations
    cache.times(every[:20], coef, every)
    assert kernel.n_evaluations - before == 5 * 40  # those that found no place
    cache.times(every[20:], coef, every)
    before = kernel.n_evaluations
    cache.times(every[20:35], coef[:15], every)
    assert kernel.n_evaluations == before  # they took the places of those not wanted any more


def test_free_places_are_taken_first():
    X = np.random.default_rng(0).standard_normal((40, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    every = np.arange(40)
    cache = RowCache(kernel, every, 15 * 40 * 8)
    for i in range(13):
        cache.times(every[i : i + 1], np.ones((1, 1)), every)
    before = kernel.n_evaluations
    cache.times(every[5:13], np.ones((8, 1)), every)
    assert kernel.n_evaluations == before
    cache.times(every[20:24], np.ones((4, 1)), every)  # two free places, two of others
    before = kernel.n_evaluations
    cache.times(every[2:13], np.ones((11, 1)), every)
    assert kernel.n_evaluations == before


@pytest.mark.parametrize("kind", ["dense", "compiled", "sparse", "precomputed", "callable"])
def test_tiles_cover_the_whole_product(kind, monkeypatch):
    monkeypatch.setattr(kernel_functions, "TILE", 4)
    rng = np.random.default_rng(2)
    X = rng.standard_normal((17, 4))
    whole = rbf_kernel(X, gamma=0.2)
    kernel = {
        "dense": lambda: TrainingKernel(X, KernelFunction("rbf", gamma=0.2)),
        "compiled": lambda: DenseKernel(X, KernelFunction("rbf", gamma=0.2), threads=2),
        "sparse": lambda: TrainingKernel(sparse.csr_array(X), KernelFunction("rbf", gamma=0.2)),
        "precomputed": lambda: TrainingKernel(whole, None),
        "callable": lambda: TrainingKernel(X, KernelFunction(partial(rbf_kernel, gamma=0.2))),
    }[kind]()
    rows, columns = rng.permutation(17)[:11], rng.permutation(17)[:9]
    coef = rng.standard_normal((11, 3))
    np.testing.assert_allclose(
        kernel.block(rows, columns), whole[np.ix_(rows, columns)], rtol=1e-12
    )
    expected = whole[np.ix_(columns, rows)] @ coef
    np.testing.assert_allclose(kernel.times(columns, rows, coef), expected, rtol=1e-11)
    assert kernel.n_evaluations == 2 * 11 * 9


def test_the_members_gram_matrix_follows_its_members():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 5))
    kernel = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    whole = kernel.block(np.arange(60), np.arange(60))
    gram = MemberGram(kernel)
    for _ in range(40):
        wanted = rng.choice(60, size=rng.integers(1, 25), replace=False)
        gram.change_to(wanted, 30)
        assert set(wanted) <= set(gram.members)
        assert len(gram.members) == len(set(gram.members)) <= 30
        m = len(gram.members)
        expected = whole[np.ix_(gram.members, gram.members)]
        np.testing.assert_allclose(gram.matrix[:m, :m], expected, rtol=1e-13)


def exact_block(A, B, name, settings):
    """Kernel values in extended precision."""
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    if name == "rbf":
        distance = ((A[:, None] - B[None]) ** 2).sum(axis=2)
        return np.exp(-settings["gamma"] * distance)
    inner = A @ B.T
    if name == "linear":
        return inner
    inner = settings["gamma"] * inner + settings["coef0"]
    return np.tanh(inner) if name == "sigmoid" else inner ** settings["degree"]


SHAPES = [(1, 1, 1), (3, 40, 0), (5, 17, 7), (513, 30, 3), (30, 530, 9), (70, 90, 300)]


@pytest.mark.parametrize(("name", "settings"), FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_kernel_values_of_picked_rows(name, settings, shape, dtype):
    rng = np.random.default_rng(0)
    m, n, d = shape
    X = (rng.standard_normal((60, d)) / max(1, d) ** 0.5).astype(dtype)
    rows, columns = rng.integers(60, size=m), rng.integers(60, size=n)  # also the same twice
    expected = exact_block(X[rows], X[columns], name, settings)
    kernel = DenseKernel(X, KernelFunction(name, **settings))
    room = np.full((2 * m, n + 3), np.nan, dtype)
    places = rng.permutation(2 * m)[:m]
    kernel.block(rows, columns, out=room, places=places)
    close = 3e-6 if dtype == np.float32 else 2e-14
    np.testing.assert_allclose(room[places, :n], expected.astype(float), rtol=0, atol=close)
    room[places, :n] = np.nan
    assert np.isnan(room).all()  # nothing else was written
    for part in (0.2, 1.0):  # few factors that are not zero, many
        coef = rng.standard_normal((m, 5)) * (rng.random((m, 5)) < part)
        out = np.ones((n, 5))
        kernel.add_times(columns, rows, coef, out, np.arange(n)[::-1].copy())
        sums = 1 + expected.T @ coef
        np.testing.assert_allclose(out[::-1], sums.astype(float), rtol=0, atol=m * close)
    assert kernel.n_evaluations == 3 * m * n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_compiled_kernel_value_does_not_depend_on_its_neighbours(dtype):
    X = np.random.default_rng(0).standard_normal((700, 300)).astype(dtype)
    kernel = DenseKernel(X, KernelFunction("rbf", gamma=0.01), threads=2)
    every = np.arange(700)
    whole = kernel.block(every, every)
    np.testing.assert_array_equal(whole, whole.T)
    for some in (np.array([699]), np.arange(3, 650, 7)):
        np.testing.assert_array_equal(kernel.block(every, some), whole[:, some])
        np.testing.assert_array_equal(kernel.block(some, every), whole[some])


def test_compiled_kernel_values_refuse_what_does_not_fit():
    X = np.zeros((4, 3))
    norms, two = np.zeros(4), np.arange(2)
    kernel = core.Kernel("rbf", gamma=1.0, degree=3.0, coef0=0.0)

    def values(rows=two, columns=two, out=(2, 2), places=two, first=0, Z=X, z_norms=norms):
        room = np.zeros(out)
        core.kernel_values(
            kernel, X, norms, rows, Z, z_norms, columns, out=room, places=places, first=first
        )

    values()
    for wrong in (
        {"rows": np.array([0, 4])},
        {"columns": np.array([-1, 0])},
        {"places": np.array([0, 2])},
        {"places": np.arange(1)},
        {"first": 1},
        {"out": (2, 1)},
        {"Z": np.zeros((4, 2))},
        {"z_norms": np.zeros(3)},
    ):
        with pytest.raises(ValueError, match=r"."):
            values(**wrong)
    with pytest.raises(ValueError, match="unknown kernel"):
        core.Kernel("rbff", gamma=1.0, degree=3.0, coef0=0.0)
    with pytest.raises(ValueError, match="coef and out"):
        core.add_kernel_sums(
            kernel, X, norms, two, np.zeros((2, 3)), X, norms, two, out=np.zeros((2, 2)), places=two
        )


def test_dense_rows_with_a_kernel_of_our_own_are_compiled_where_vectors_are_wide():
    X, rbf = np.zeros((3, 2)), KernelFunction("rbf")
    wide = core.vector_bytes >= kernel_functions.WIDE_VECTORS
    assert isinstance(training_kernel(X, rbf), DenseKernel) == wide
    for other in (
        training_kernel(sparse.csr_array(X), rbf),
        training_kernel(X, KernelFunction(rbf_kernel)),
        training_kernel(X, None),
    ):
        assert type(other) is TrainingKernel
