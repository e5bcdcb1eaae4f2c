"""Rows on disk: every pass visits whom it should, on the rows they have, in bounded memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from polymargin.data import PER_EXAMPLE, BlockRows, as_rows
from polymargin.files import DataFileError, Dataset, StoredMatrix, write_directory
from polymargin.losses import get_loss
from polymargin.problem import Problem
from polymargin.solvers.state import State


def stored(folder: Path, X) -> StoredMatrix:
    write_directory(Dataset(X=X), folder / "data")
    return StoredMatrix(folder / "data", X.shape, dense=isinstance(X, np.ndarray))


def memory_for(X, blocks: float) -> float:
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    return PER_EXAMPLE * X.shape[0] + blocks * (size / 20 + 8 * X.shape[0])


def some(n=400, d=30, dense=False, dtype=np.float64, seed=0):
    X = sparse.random(n, d, 0.3, format="csr", rng=np.random.default_rng(seed), dtype=dtype)
    return X.toarray() if dense else sparse.csr_array(X)


@pytest.fixture(params=[(False, np.float64), (False, np.float32), (True, np.float64)])
def X(request):
    dense, dtype = request.param
    return some(dense=dense, dtype=dtype)


def test_norms_and_rows_are_those_of_the_matrix(tmp_path, X):
    rows = BlockRows(stored(tmp_path, X), memory_for(X, 4), 20)
    np.testing.assert_array_equal(rows.squared_norms, as_rows(X).squared_norms)
    chosen = np.array([3, 399, 0, 3])
    difference = rows.take(chosen) - X[chosen]
    assert not (difference.nnz if sparse.issparse(difference) else difference.any())
    blocks = [part.matrix for part in rows.partitions()]
    whole = sparse.vstack(blocks).toarray() if sparse.issparse(X) else np.vstack(blocks)
    np.testing.assert_array_equal(whole, X.toarray() if sparse.issparse(X) else X)
    assert len(blocks) >= 15


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(1, 30), st.integers(0, 2**31), st.data())
def test_a_pass_visits_those_chosen_once_or_leaves_runs_out(
    tmp_path_factory, n, blocks, seed, data
):
    X = some(n, seed=seed)
    folder = tmp_path_factory.mktemp("rows")
    rows = BlockRows(stored(folder, X), 2 * memory_for(X, 20) + 1e5, blocks)
    rng = np.random.default_rng(seed)
    worth = rng.random(n)
    for _ in range(6):
        chosen = np.flatnonzero(rng.random(n) < data.draw(st.sampled_from([0.05, 0.5, 1.0])))
        order = rows.arranged(chosen, rng)
        assert len(np.unique(order.order)) == len(order.order)
        assert np.isin(order.order, chosen).all()
        if len(chosen) == n:
            assert len(order.order) == n
        assert len(chosen) == 0 or len(order.order) > 0
        parts = [piece.order for piece in rows.pieces(order, worth)]
        np.testing.assert_array_equal(np.concatenate([*parts, chosen[:0]]), order.order)
    parts = [piece.order for piece in rows.pieces(None, worth)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(n))


def test_sweeps_on_pieces_are_those_on_the_matrix(tmp_path, X):
    """The same order gives the same weights, whichever rows the engine holds meanwhile."""
    y = np.random.default_rng(1).integers(4, size=X.shape[0]).astype(np.int32)
    c = np.random.default_rng(2).random(X.shape[0]) + 0.1
    rows = BlockRows(stored(tmp_path, X), memory_for(X, 12), 20)
    problems = [Problem(one, y, c, get_loss("crammer_singer", None), 4, 1.0) for one in (rows, X)]
    ours, whole = (State(problem) for problem in problems)
    rng = np.random.default_rng(0)
    for _ in range(9):
        chosen = np.flatnonzero(rng.random(X.shape[0]) < 0.7)
        order = rows.arranged(chosen, rng)
        for part in ours.pieces(order):
            ours.sweep(part)
        whole.sweep(order.order)
        np.testing.assert_array_equal(ours.W, whole.W)
        np.testing.assert_array_equal(ours.evaluate(ours.W), whole.evaluate(whole.W))
        np.testing.assert_allclose(ours.rebuild(), whole.rebuild(), rtol=0, atol=1e-12)
    assert rows.state_dict()["kept"].size > 0


def test_what_stays_is_visited_without_reading(tmp_path):
    X = some(20_000)
    rows = BlockRows(stored(tmp_path, X), memory_for(X, 8), 20)
    worth = np.zeros(20_000)
    worth[::50] = 1.0
    rng = np.random.default_rng(0)
    for _ in range(9):
        for _ in rows.pieces(rows.arranged(np.arange(20_000), rng), worth):
            pass
    kept = rows.state_dict()["kept"]
    np.testing.assert_array_equal(kept, np.arange(0, 20_000, 50))
    before = rows.bytes_read
    order = rows.arranged(kept, rng)
    pieces = list(rows.pieces(order, worth))
    assert rows.bytes_read == before
    assert sorted(order.order) == kept.tolist()
    assert all(piece.examples.size == kept.size for piece in pieces)
    # a few others are not worth reading their runs, half of them are
    few = np.concatenate([kept, [7]])
    assert sorted(rows.arranged(few, rng).order) == kept.tolist()
    assert len(rows.arranged(np.arange(0, 20_000, 2), rng).order) == 10_000


def test_sorted_data_are_mixed_in_every_block(tmp_path):
    X = some(4000)
    label = np.arange(4000) // 400
    rows = BlockRows(stored(tmp_path, X), memory_for(X, 4), 20)
    order = rows.arranged(np.arange(4000), np.random.default_rng(0))
    for piece in rows.pieces(order, np.zeros(4000)):
        assert len(np.unique(label[piece.order])) >= 7


def test_too_little_memory_is_refused_with_what_is_needed(tmp_path):
    X = some()
    with pytest.raises(ValueError, match=r"memory_limit=0.01 MB is too small: 400 examples need"):
        BlockRows(stored(tmp_path, X), 1e4)


def test_values_that_are_no_numbers_are_named_by_their_rows(tmp_path):
    X = some(dense=True)
    X[333, 3] = np.nan
    with pytest.raises(
        DataFileError, match=r"data: rows (\d+) to (\d+): X has values that are NaN"
    ):
        BlockRows(stored(tmp_path, X), memory_for(X, 4), 20)


def test_columns_out_of_order_are_refused(tmp_path):
    matrix = stored(tmp_path, some())
    indices = np.load(tmp_path / "data" / "indices.npy")
    np.save(tmp_path / "data" / "indices.npy", indices[::-1])
    matrix = StoredMatrix(tmp_path / "data", matrix.shape, dense=False)
    with pytest.raises(DataFileError, match="columns out of order"):
        BlockRows(matrix, memory_for(some(), 4), 20)


def test_data_that_change_are_an_error(tmp_path):
    X = some()
    rows = BlockRows(stored(tmp_path, X), memory_for(X, 4), 20)
    path = tmp_path / "data" / "data.npy"
    os.utime(path, (0, 0))
    with pytest.raises(DataFileError, match=r"rows \d+ and others: data.npy has changed"):
        list(rows.pieces(None, np.zeros(400)))


def test_files_that_do_not_fit_together_are_refused(tmp_path):
    stored(tmp_path, some())
    path = tmp_path / "data" / "data.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataFileError, match=r"data.npy is damaged"):
        StoredMatrix(tmp_path / "data", (400, 30), dense=False)
    np.save(path, np.zeros(3))
    with pytest.raises(DataFileError, match="not the matrix"):
        StoredMatrix(tmp_path / "data", (400, 30), dense=False)
