"""Rows: what is wrong is found at the door, what is right is not copied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polymargin.data import CsrRows, DenseRows, as_rows

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_index = pytest.mark.parametrize("index", [np.int32, np.int64])


def csr(dtype=np.float64, index=np.int32, n=9, d=12, density=0.4, seed=0):
    X = sparse.random_array(
        (n, d), density=density, random_state=np.random.RandomState(seed)
    ).tocsr()
    X = sparse.csr_array(X.astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    X.sort_indices()
    return X


@every_dtype
@every_index
def test_csr_and_dense_rows_agree(dtype, index):
    X = csr(dtype, index)
    sparse_rows, dense_rows = as_rows(X), as_rows(X.toarray())
    assert isinstance(sparse_rows, CsrRows) and isinstance(dense_rows, DenseRows)
    assert (sparse_rows.n, sparse_rows.d) == (dense_rows.n, dense_rows.d) == X.shape
    expected = (X.toarray().astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(sparse_rows.squared_norms, expected, rtol=1e-14)
    np.testing.assert_allclose(dense_rows.squared_norms, expected, rtol=1e-14)


@every_dtype
def test_sound_data_are_not_copied(dtype):
    X = csr(dtype)
    rows = as_rows(X)
    assert np.shares_memory(rows.matrix.data, X.data)
    assert np.shares_memory(rows.matrix.indices, X.indices)
    dense = X.toarray()
    assert as_rows(dense).matrix is dense
    assert as_rows(rows) is rows


def test_unsorted_and_repeated_entries_are_merged_in_a_copy():
    data, indices, indptr = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), [0, 3, 4]
    X = sparse.csr_array((data, indices, np.array(indptr)), shape=(2, 3))
    rows = as_rows(X)
    np.testing.assert_array_equal(rows.matrix.toarray(), [[2.0, 0.0, 5.0], [0.0, 8.0, 0.0]])
    np.testing.assert_array_equal(rows.squared_norms, [29.0, 64.0])
    np.testing.assert_array_equal(X.indices, indices)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda X: X.indices.__setitem__(0, 99), "outside"),
        (lambda X: X.indices.__setitem__(0, -1), "outside"),
        (lambda X: X.indptr.__setitem__(1, 10**6), "indptr"),
        (lambda X: X.indptr.__setitem__(0, 1), "start at 0"),
        (lambda X: X.data.__setitem__(0, np.nan), "NaN"),
        (lambda X: X.data.__setitem__(0, np.inf), "infinite"),
        (lambda X: X.data.__setitem__(0, 1e200), "overflow"),
    ],
)
def test_what_is_broken_is_refused(break_it, message):
    X = csr()
    break_it(X)
    with pytest.raises(ValueError, match=message):
        as_rows(X)


def test_dense_values_are_looked_at_too():
    X = np.ones((3, 2))
    X[1, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        as_rows(X)
    with pytest.raises(ValueError, match="overflow"):
        as_rows(np.full((3, 2), 1e180))
    with pytest.raises(ValueError, match="float32 or float64"):
        as_rows(np.ones((3, 2), int))
    with pytest.raises(ValueError, match="CSR"):
        as_rows(sparse.coo_array(np.eye(3)))


@given(
    d=st.integers(1, 40),
    used=st.sets(st.integers(0, 39), min_size=1),
    index=st.sampled_from([np.int32, np.int64]),
)
def test_features_that_do_not_occur_are_left_out(d, used, index):
    used = np.array(sorted(f for f in used if f < d), dtype=np.int64)
    if len(used) == 0:
        return
    dense = np.zeros((len(used), d))
    dense[np.arange(len(used)), used] = 1.0 + np.arange(len(used))
    X = sparse.csr_array(dense)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rows = as_rows(X)
    compiled, features = rows.layout(weights_per_feature=10**6)
    if len(used) == d:
        assert features is None and compiled is rows.compiled
    else:
        np.testing.assert_array_equal(features, used)
        assert compiled.d == len(used) and compiled.n == len(used)
        assert rows.layout(10**6)[0] is compiled


def test_the_digest_is_that_of_the_values():
    X = csr()
    other = X.copy()
    assert as_rows(X).digest() == as_rows(other).digest()
    other.data[0] += 1
    assert as_rows(X).digest() != as_rows(other).digest()
    assert as_rows(X.toarray()).digest() != as_rows(other.toarray()).digest()


def test_rows_taken_out_are_those_rows():
    X = csr()
    chosen = np.array([3, 1, 3])
    np.testing.assert_array_equal(as_rows(X).take(chosen).toarray(), X.toarray()[chosen])
    np.testing.assert_array_equal(as_rows(X.toarray()).take(chosen), X.toarray()[chosen])
