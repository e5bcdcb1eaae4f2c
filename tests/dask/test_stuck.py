"""Workers that stop taking tasks, or are gone when their results are fetched: no fit hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")

import dask
from distributed import Client, Event, LocalCluster
from distributed.core import Status

from polymargin.dask import DaskLinearMulticlassSVC, workers
from tests.dask.test_estimator import PARAMS, chunked, cluster
from tests.dask.test_faults import disturbed
from tests.solvers.test_partitions import blobs, check_certificate, source

HANGS = 90.0  # seconds


def until(happens: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + HANGS
    while not happens():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Training:
    """A fit in a thread, which can be waited for."""

    def __init__(self, clf: DaskLinearMulticlassSVC, *parts: Any) -> None:
        self.error: BaseException | None = None
        self._given = clf, parts
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        clf, parts = self._given
        try:
            clf.fit(*parts)
        except BaseException as error:
            self.error = error

    def wait(self) -> None:
        self._thread.join(HANGS)
        assert not self._thread.is_alive(), "the fit hangs"
        if self.error is not None:
            raise self.error


# --- paused --------------------------------------------------------------------------------------


@pytest.fixture
def two() -> Iterator[Client]:
    """Two workers of one thread, whose memory nobody watches, and no stealing of tasks."""
    with dask.config.set({"distributed.scheduler.work-stealing": False}):
        made = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            memory_limit=0,
            dashboard_address=":0",
        )
        with made as local, Client(local, set_as_default=False) as client:
            yield client


def pause(dask_worker: Any) -> None:
    dask_worker.status = Status.paused


@pytest.mark.parametrize("where", ["anywhere", "in the memory of that worker"])
def test_partitions_assigned_to_a_worker_that_pauses_go_to_another(
    where: str, two: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask leaves a paused worker what it was assigned to before, for as long as it pauses."""
    monkeypatch.setattr(workers, "PAUSE", 1.0)
    X, y = blobs()
    first = sorted(two.scheduler_info()["workers"])[0]
    rows, labels = chunked(X, y, 4)
    if where != "anywhere":
        chunks = source(X, y, 4).chunks
        rows = two.scatter([one.X for one in chunks], workers=[first], hash=False)
    go_on = Event("go on", client=two)
    busy = two.submit(lambda: Event("go on").wait(HANGS), workers=[first], pure=False)
    until(lambda: busy.key in two.processing()[first], "the worker is not busy")
    clf = DaskLinearMulticlassSVC(**PARAMS, client=two)
    training = Training(clf, rows, labels)
    until(lambda: len(two.processing()[first]) > 1, "nothing was assigned to the worker")
    two.run(pause, workers=[first])
    go_on.set()
    training.wait()
    check_certificate(clf, X, y)
    assert two.scheduler_info()["workers"][first]["status"] == "paused"  # as long as the fit


def test_weights_left_with_a_worker_that_pauses_are_sent_anew(
    two: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round begins while all are busy; the worker that was to have the weights first pauses."""
    monkeypatch.setattr(workers, "PAUSE", 1.0)
    X, y = blobs()
    go_on, paused = Event("go on", client=two), []

    def assigned() -> list[str]:
        return [name for name, keys in two.processing().items() if "_itself" in str(keys)]

    def watch() -> None:
        until(assigned, "no weights were sent")
        paused.extend(assigned())
        two.run(pause, workers=paused)
        go_on.set()

    def keep_busy(parts: Any) -> None:
        for name in two.scheduler_info()["workers"]:
            one = two.submit(lambda: Event("go on").wait(HANGS), workers=[name], pure=False)
            until(lambda one=one, name=name: one.key in two.processing()[name], "no worker is busy")
            busy.append(one)
        threading.Thread(target=watch).start()

    busy: list[Any] = []
    disturbed(monkeypatch, {3: keep_busy})
    clf = DaskLinearMulticlassSVC(**PARAMS, client=two)
    Training(clf, *chunked(X, y, 4)).wait()
    assert len(paused) == 1
    check_certificate(clf, X, y)


# --- gone, with what is being fetched ------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 4])
def test_a_home_that_is_lost_while_its_results_are_fetched(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First of receipts, then of rounds. Dask would wait for that worker to come back."""
    X, y = blobs()
    with cluster(2) as made, Client(made, set_as_default=False) as client:
        pids = client.run(os.getpid)
        gather, calls = client.gather, []

        async def gathered(futures: Any) -> Any:
            calls.append(len(futures))
            if len(calls) == number:
                home, pid = sorted(pids.items())[0]
                os.kill(pid, signal.SIGKILL)
                while home in (await client.scheduler.identity())["workers"]:
                    await asyncio.sleep(0.02)
            return await gather(futures, asynchronous=True)

        monkeypatch.setattr(client, "gather", lambda futures, asynchronous: gathered(futures))
        clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
        Training(clf, *chunked(X, y, 4)).wait()
        monkeypatch.undo()
    assert len(calls) > number
    check_certificate(clf, X, y)
    assert np.isfinite(clf.coef_).all()
