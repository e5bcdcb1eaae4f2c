"""What workers hold: data that none of them could hold alone, and nothing once the fit is over."""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")

import dask
from dask.sizeof import sizeof
from distributed import Client, Event, LocalCluster

from polymargin.dask import DaskLinearMulticlassSVC
from polymargin.dask.keeper import NAME
from polymargin.estimators.partitioned import Chunk
from polymargin.solvers.engines.part import Part, Share
from tests.dask.test_estimator import PARAMS, chunked, cluster
from tests.dask.test_faults import disturbed
from tests.solvers.test_partitions import blobs, check_certificate

WIDTH, CLASSES = 1_000, 3


def rows_of(number: int, n: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows without a zero, as CSR; those of a class have a mean of their own."""
    rng = np.random.default_rng(number)
    y = rng.integers(CLASSES, size=n)
    means = np.random.default_rng(0).standard_normal((CLASSES, WIDTH), dtype=np.float32)
    X = rng.integers(-128, 128, (n, WIDTH), np.int8).astype(np.float32)
    X *= np.float32(1 / 64)
    for label in range(CLASSES):
        X[y == label] += np.float32(0.05) * means[label]
    columns = np.tile(np.arange(WIDTH, dtype=np.int32), n)
    pointers = np.arange(n + 1, dtype=np.int32) * WIDTH
    return sparse.csr_array((X.ravel(), columns, pointers), shape=(n, WIDTH)), y


def peak() -> float:
    """The most that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def spilled(dask_worker: Any) -> int:
    """Bytes that Dask has on the disk of this worker."""
    return int(dask_worker.data.spilled_total.disk)


def held(dask_worker: Any) -> list[int]:
    """Partitions that this worker keeps, and objects of ours that are alive at all."""
    gc.collect()
    keeper = dask_worker.plugins.get(NAME)
    ours = sum(type(one) in (Part, Chunk) for one in gc.get_objects())
    return [0 if keeper is None else len(keeper.kept), ours]


def check_freed(client: Client) -> None:
    """Dask lets go of what nobody wants in its own time."""
    deadline = time.monotonic() + 600
    while True:
        found = client.run(held)
        if all(one == [0, 0] for one in found.values()):
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def check_large_certificate(clf: DaskLinearMulticlassSVC, n_parts: int, n: int) -> None:
    """Objectives by the definition of Crammer-Singer, partition by partition, in double."""
    W, b = clf.coef_.astype(np.float64), clf.intercept_.astype(np.float64)
    primal = 0.5 * (np.sum(W**2) + b @ b)
    V, dual = np.zeros((CLASSES, WIDTH + 1)), 0.0
    for number in range(n_parts):
        X, y = rows_of(number, n)
        a = clf.dual_coef_[:, number * n : (number + 1) * n].toarray().astype(np.float64)
        X = X.toarray().astype(np.float64)
        scores, own = X @ W.T + b, np.arange(n)
        margins = 1.0 + scores - scores[own, y][:, None]
        margins[own, y] = 0.0
        primal += clf.C * margins.max(axis=1).sum()
        V += np.column_stack([a @ X, a.sum(axis=1)])
        mass = a[y, own].copy()
        dual += mass.sum()
        a[y, own] -= mass
        assert (a <= 0).all() and (mass <= clf.C * (1 + 1e-6)).all()
        np.testing.assert_allclose(a.sum(axis=0), -mass, atol=1e-6 * clf.C)
    assert clf.objective_ == pytest.approx(primal, rel=1e-5)
    assert clf.dual_objective_ == pytest.approx(dual - 0.5 * np.sum(V**2), rel=1e-5)
    assert clf.dual_gap_ <= clf.tol


def test_data_larger_than_the_memory_of_any_worker() -> None:
    """Two workers of 1.55 GB each, 1.6 GB of data: nobody dies, and no data go to disk.

    A worker holds 250 MB before there are any data, and Dask gives it no more tasks at 80 %.
    """
    limit, n_parts, n = 1.55e9, 40, 5_000
    parts = [dask.delayed(rows_of, nout=2)(number, n) for number in range(n_parts)]
    size = n_parts * n * WIDTH * 8
    assert size > limit
    made = LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=int(limit), dashboard_address=":0"
    )
    with made as local, Client(local, set_as_default=False) as client:
        before = client.run(os.getpid)
        params = {"C": 1e-4, "tol": 5e-2, "random_state": 0, "store_dual": True}
        clf = DaskLinearMulticlassSVC(**params, client=client)
        clf.fit([X for X, _ in parts], [y for _, y in parts])
        peaks, on_disk = client.run(peak), client.run(spilled)
        assert client.run(os.getpid) == before  # else the nanny has killed one
        check_freed(client)
    assert max(peaks.values()) < limit < size < sum(peaks.values())
    assert max(on_disk.values()) < 1e6  # receipts and the like
    check_large_certificate(clf, n_parts, n)


def test_dask_knows_how_large_things_are() -> None:
    X = sparse.csr_array(np.ones((100, 50)))
    n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    assert n_bytes <= sizeof(X) <= n_bytes + 1000
    share = Share(np.arange(50), np.ones((50, 40)), ())
    assert 50 * 41 * 8 <= sizeof(share) <= 50 * 41 * 8 + 1000


# --- nothing is left ------------------------------------------------------------------------------


def interrupt(parts: Any) -> None:
    raise KeyboardInterrupt


def ask_for_nonsense(parts: Any) -> None:
    parts.call("evaluate", "nonsense")


ENDS: dict[str, tuple[type[BaseException], dict[int, Callable[[Any], None]]]] = {
    "bad data": (ValueError, {}),
    "an error in a part": (ValueError, {3: ask_for_nonsense}),
    "Ctrl-C": (KeyboardInterrupt, {3: interrupt}),
}


def test_nothing_is_left_when_a_fit_has_ended() -> None:
    X, y = blobs()
    with cluster(2) as made, Client(made, set_as_default=False) as client:
        clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 4))
        check_freed(client)
        for what, (error, events) in ENDS.items():
            given = np.where(np.arange(len(X))[:, None] == 299, np.nan, X) if not events else X
            parts = chunked(given, y, 4)
            with pytest.MonkeyPatch.context() as patch:
                disturbed(patch, dict(events))
                with pytest.raises(error) as caught:
                    clf.fit(*parts)
            check_freed(client)  # while the error, and all that it knows, is still at hand
            assert caught.value is not None, what


def test_partitions_are_kept_once_while_the_fit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each round the workers have a part each of four partitions, and no data beside."""
    X, y = blobs()
    seen: list[Any] = []
    disturbed(monkeypatch, {2: lambda parts: seen.append(parts.client.run(held))})
    with cluster(2) as made, Client(made, set_as_default=False) as client:
        DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 4))
    assert sorted(seen[0].values()) == [[2, 2], [2, 2]]


# --- workers that lose what they keep -------------------------------------------------------------


def forget(parts: Any) -> None:
    """Every keeper loses everything, and lives on."""

    def drop(dask_worker: Any) -> None:
        dask_worker.plugins[NAME].kept.clear()

    parts.client.run(drop)


def test_a_partition_that_is_not_where_it_was_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = blobs()
    events: dict[int, Callable[[Any], None]] = {1: forget, 4: forget}
    disturbed(monkeypatch, events)
    with cluster(2) as made, Client(made, set_as_default=False) as client:
        clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 4))
        check_freed(client)
    assert not events
    check_certificate(clf, X, y)


def test_a_bad_partition_is_named_while_others_are_being_loaded() -> None:
    """The first one loads until the test is over; the error of the last does not wait for it."""
    X, y = blobs()
    bad = np.full((3, 12), np.nan)

    def slow(rows: Any, name: str) -> Any:
        Event(name).wait(60)
        return rows

    with cluster(2) as made, Client(made, set_as_default=False) as client:
        over = Event("over", client=client)
        parts = [dask.delayed(slow)(X, "over"), dask.delayed(bad)]
        clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
        with pytest.raises(ValueError, match=r"Partition 1: .*NaN"):
            clf.fit(parts, [y, np.array([0, 1, 2])])
        over.set()
        check_freed(client)
