"""DaskLinearMulticlassSVC: collections of all kinds, clusters of any size."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")

import dask
import dask.array as da
from distributed import Client, LocalCluster

from polymargin import LinearMulticlassSVC
from polymargin.dask import DaskLinearMulticlassSVC
from tests.solvers.test_partitions import blobs, check_certificate, fitted, source

PARAMS: dict[str, Any] = {"C": 0.1, "tol": 1e-2, "random_state": 0, "store_dual": True}


def cluster(n: int) -> LocalCluster:
    return LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")


@pytest.fixture(scope="module")
def four() -> Iterator[Client]:
    with cluster(4) as workers, Client(workers, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def threads() -> Iterator[Client]:
    made = LocalCluster(n_workers=2, processes=False, dashboard_address=":0")
    with made as workers, Client(workers, set_as_default=False) as client:
        yield client


def chunked(X: Any, y: np.ndarray, n_parts: int) -> tuple[list[Any], list[Any]]:
    """Delayed partitions, cut as `source` does it."""
    chunks = source(X, y, n_parts).chunks
    return [dask.delayed(one.X) for one in chunks], [dask.delayed(one.y) for one in chunks]


def test_probabilities_are_lazy(threads: Client) -> None:
    X, y = blobs(n=240)
    arrays = da.from_array(X, chunks=(60, 12)), da.from_array(y, chunks=60)
    clf = DaskLinearMulticlassSVC(**PARAMS, loss="softmax", client=threads).fit(*arrays)
    for method in ("predict_proba", "predict_log_proba"):
        lazy = getattr(clf, method)(arrays[0])
        assert isinstance(lazy, da.Array) and lazy.shape == (240, 4)
        now = getattr(clf.to_local(), method)(X)
        np.testing.assert_allclose(lazy.compute(), now, atol=1e-12)
        np.testing.assert_array_equal(getattr(clf, method)(X), now)
    assert not hasattr(DaskLinearMulticlassSVC(), "predict_proba")


def test_costs_between_classes(threads: Client) -> None:
    X, y = blobs(n=240)
    costs = np.random.default_rng(0).uniform(0.2, 3.0, (4, 4)) * (1 - np.eye(4))
    by_label = {(i, j): costs[i, j] for i in range(4) for j in range(4) if i != j}
    arrays = da.from_array(X, chunks=(60, 12)), da.from_array(y, chunks=60)
    local = LinearMulticlassSVC(C=0.1, tol=1e-5, random_state=0, cost_matrix=costs).fit(X, y)
    tight = PARAMS | {"tol": 1e-3}
    for given in (costs, by_label):
        clf = DaskLinearMulticlassSVC(**tight, cost_matrix=given, client=threads).fit(*arrays)
        assert clf.objective_ == pytest.approx(local.objective_, rel=2e-3)
        assert clf.dual_objective_ == pytest.approx(local.objective_, rel=2e-3)
    with pytest.raises(ValueError, match="cannot take costs"):
        DaskLinearMulticlassSVC(loss="one_vs_rest", cost_matrix=costs, client=threads).fit(*arrays)


# --- data of all kinds ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_every_kind_of_collection_gives_the_model_of_its_partitions(threads: Client) -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = blobs(n=240)
    weight = np.random.default_rng(0).uniform(0.5, 2, 240)
    coef, sparse_coef = (
        fitted(source(one, y, 4, weight), **PARAMS, top_k=None).coef_
        for one in (X, sparse.csr_array(X))
    )
    arrays = da.from_array(X, chunks=(60, 5)), da.from_array(y, chunks=90)
    unknown = [da.concatenate(list(one.blocks)) for one in (da.from_array(X, chunks=(60, 12)),)]
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    frames = dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)
    parts = chunked(X, y, 4)
    sparse_X = da.from_array(X, chunks=(60, 12)).map_blocks(sparse.csr_array)
    cases = [
        (*arrays, da.from_array(weight, chunks=60)),
        (unknown[0], y, weight),
        (*frames, dd.from_pandas(pd.Series(weight), npartitions=4)),
        (*parts, [weight[m * 60 : (m + 1) * 60] for m in range(4)]),
        (sparse_X, arrays[1], weight),
    ]
    for X_, y_, weight_ in cases:
        clf = DaskLinearMulticlassSVC(**PARAMS, client=threads).fit(X_, y_, weight_)
        expected = sparse_coef if X_ is sparse_X else coef
        np.testing.assert_allclose(clf.coef_, expected, rtol=1e-6, atol=1e-9)
        local = clf.to_local()
        assert type(local) is LinearMulticlassSVC
        given = frame if hasattr(local, "feature_names_in_") else X
        for lazy, now in (
            (clf.predict(X_), local.predict(given)),
            (clf.decision_function(X_), local.decision_function(given)),
            (clf.predict_top_k(X_, k=2), local.predict_top_k(given, k=2)),
        ):
            found = dask.compute(lazy)[0]
            found = np.concatenate(found) if isinstance(found, list) else np.asarray(found)
            if now.dtype.kind == "f":  # sums of other lengths
                np.testing.assert_allclose(found, now, atol=1e-12)
            else:
                np.testing.assert_array_equal(found, now)
    assert list(cases and clf.predict(X)) == list(local.predict(X))  # rows that are here
    clf.fit(*frames)
    assert list(clf.feature_names_in_) == list(frame.columns)


def test_unknown_chunk_sizes_and_empty_partitions(threads: Client) -> None:
    X, y = blobs(n=240)
    rows, labels = da.from_array(X, chunks=(60, 12)), da.from_array(y, chunks=60)
    chosen = da.from_array(np.arange(240) >= 60, chunks=60)  # the first partition is empty
    clf = DaskLinearMulticlassSVC(**PARAMS, client=threads).fit(rows[chosen], labels[chosen])
    check_certificate(clf, X[60:], y[60:])
    assert len(clf.predict(rows[chosen]).compute()) == 180
    with pytest.raises(ValueError, match="chunk sizes are unknown"):
        clf.fit(rows[chosen], y)


def test_errors_name_the_partition_and_say_what_to_do(threads: Client) -> None:
    X, y = blobs()
    clf = DaskLinearMulticlassSVC(**PARAMS, client=threads)
    wrong = X.copy()
    wrong[-1, 0] = np.nan
    with pytest.raises(ValueError, match=r"Partition 9: .*NaN"):
        clf.fit(*chunked(wrong, y, 10))
    with pytest.raises(TypeError, match="use LinearMulticlassSVC"):
        clf.fit(X, y)
    rows, labels = chunked(X, y, 4)
    with pytest.raises(ValueError, match="X has 4 partitions, but y has 3"):
        clf.fit(rows, labels[:3])

    def unreadable() -> None:
        raise RuntimeError("no such disk")

    with pytest.raises(RuntimeError, match="Partition 2 cannot be computed: no such disk"):
        clf.fit([*rows[:2], dask.delayed(unreadable)(), rows[3]], labels)


def test_clone_pickle_parameters_and_the_embedded_cluster(threads: Client) -> None:
    clf = DaskLinearMulticlassSVC(**PARAMS, client=threads)
    assert clone(clf).client is threads and clone(clf).get_params() == clf.get_params()
    theirs, ours = clf.get_params(), LinearMulticlassSVC().get_params()
    assert set(theirs) == {*ours, "client"}
    X, y = blobs()
    clf.set_params(client=None).fit(*chunked(X, y, 3))
    check_certificate(clf, X, y)
    again = pickle.loads(pickle.dumps(clf.set_params(client=threads)))
    assert again.client is None
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))


def test_nothing_imports_dask_unless_asked() -> None:
    code = "import polymargin.cli, sys; assert not {'dask', 'distributed'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- clusters ------------------------------------------------------------------------------------


def test_the_same_bits_on_two_and_on_four_workers_and_in_one_process(four: Client) -> None:
    X, y = blobs()
    here = fitted(source(X, y, 9), **PARAMS, top_k=None)
    there = DaskLinearMulticlassSVC(**PARAMS, client=four).fit(*chunked(X, y, 9))
    with cluster(2) as two, Client(two, set_as_default=False) as client:
        on_two = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 9))
    for one in (there, on_two):
        np.testing.assert_array_equal(one.coef_, here.coef_)
        assert one.dual_objective_ == here.dual_objective_
    check_certificate(there, X, y)


def test_fits_at_the_same_time(four: Client) -> None:
    X, y = blobs()
    alone = fitted(source(X, y, 5), **PARAMS, top_k=None).coef_
    found: list[np.ndarray] = []

    def fit() -> None:
        clf = DaskLinearMulticlassSVC(**PARAMS, client=four).fit(*chunked(X, y, 5))
        found.append(clf.coef_)

    running = [threading.Thread(target=fit) for _ in range(3)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert len(found) == 3 and all(np.array_equal(coef, alone) for coef in found)
