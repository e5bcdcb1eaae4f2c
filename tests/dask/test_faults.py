"""Workers, clients and schedulers that die during a fit: real processes, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")

import dask
from distributed import Client, LocalCluster

from polymargin import Checkpoint, DualSolver
from polymargin.dask import DaskLinearMulticlassSVC, estimator, workers
from polymargin.solvers.engines.partitions import PartitionEngine
from tests.dask.test_estimator import PARAMS, chunked, cluster
from tests.solvers.test_partitions import blobs, check_certificate, source


def disturbed(monkeypatch: pytest.MonkeyPatch, events: dict[int, Callable[[Any], None]]) -> None:
    """Let something happen when a round is about to begin."""

    class Disturbed(workers.DaskSource):
        rounds = 0

        def total(self, method: str, *arguments: Any) -> Any:
            self.rounds += method != "held"
            if method != "held" and self.rounds in events:
                events.pop(self.rounds)(self)
            return super().total(method, *arguments)

    monkeypatch.setattr(estimator, "DaskSource", Disturbed)


def kill(n: int) -> Callable[[Any], None]:
    def now(parts: Any) -> None:
        homes = sorted(set(parts._homes))[:n]
        for pid in parts.client.run(os.getpid, workers=homes).values():
            os.kill(pid, 9)

    return now


def retire(parts: Any) -> None:
    home = sorted(set(parts._homes))[0]
    threading.Thread(target=parts.client.retire_workers, args=([home],)).start()


def widen(parts: Any) -> None:
    parts.client.cluster.scale(5)


EVENTS: dict[str, Callable[[], dict[int, Callable[[Any], None]]]] = {
    **{f"one killed in round {n}": (lambda n=n: {n: kill(1)}) for n in (1, 2, 5, 10)},  # type: ignore[misc]
    **{f"two killed in round {n}": (lambda n=n: {n: kill(2)}) for n in (1, 5, 10)},  # type: ignore[misc]
    "retired in round 3": lambda: {3: retire},
    "added in round 4": lambda: {4: widen},
    "killed twice, retired, added": lambda: {2: kill(1), 5: retire, 7: widen, 10: kill(1)},
}
ALWAYS = {  # the others are slow
    ("one killed in round 1", "sparse"),
    ("two killed in round 5", "dense"),
    ("killed twice, retired, added", "sparse"),
}


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        pytest.param(what, kind, marks=[] if (what, kind) in ALWAYS else pytest.mark.slow)
        for what in EVENTS
        for kind in ("sparse", "dense")
    ],
)
def test_a_worker_that_dies_costs_rounds_only(
    what: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Local passes (sparse) and Newton rounds (dense); the certificate is that of NumPy."""
    X, y = blobs()
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0)) if kind == "sparse" else X
    events = EVENTS[what]()
    disturbed(monkeypatch, events)
    with cluster(4) as made, Client(made, set_as_default=False) as client:
        clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 8))
    assert not events
    check_certificate(clf, X, y, rtol=1e-9)


def test_data_that_cannot_be_had_again_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs()
    chunks = source(X, y, 4).chunks
    rows, labels = [one.X for one in chunks], [one.y for one in chunks]
    disturbed(monkeypatch, {3: kill(2)})
    with cluster(2) as made, Client(made, set_as_default=False) as client:
        clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
        with pytest.raises(RuntimeError, match=r"Partition . is lost"):
            clf.fit(client.scatter(rows, hash=False), labels)


def test_a_client_that_is_killed_goes_on_from_its_checkpoint(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = blobs()
    path = tmp_path / "fit"

    class KilledError(BaseException):
        pass

    def die(parts: Any) -> None:
        raise KilledError

    disturbed(monkeypatch, {20: die})
    place = Checkpoint(path, every=None, passes=4)
    clf = DaskLinearMulticlassSVC(**PARAMS | {"tol": 1e-4}, checkpoint=place)
    with pytest.raises(KilledError):
        clf.fit(*chunked(X, y, 4))
    assert path.exists()
    clf.fit(*chunked(X, y, 4))
    assert clf.history_["pass"][-1] > 16
    check_certificate(clf, X, y)


def test_no_workers_is_an_error_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 1.0)
    X, y = blobs()
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as none,
        Client(none) as client,
        pytest.raises(ConnectionError, match="no Dask worker"),
    ):
        DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 4))


LONG = PARAMS | {"tol": 1e-3, "max_iter": 10_000, "solver": DualSolver(newton=False)}
CLIENT = """
import sys
from distributed import Client
from polymargin import Checkpoint
from polymargin.dask import DaskLinearMulticlassSVC
from tests.dask.test_faults import LONG, blobs, chunked
place = Checkpoint(sys.argv[2], every=None, passes=4)
with Client(sys.argv[1]) as client:
    DaskLinearMulticlassSVC(**LONG, client=client, checkpoint=place).fit(*chunked(*blobs(), 4))
"""


def test_a_client_killed_with_its_process_goes_on_in_another(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed (-9) once there is a checkpoint; the workers live on, and so does the scheduler."""
    X, y = blobs()
    path = tmp_path / "fit"
    loaded = []
    load = PartitionEngine.load_state_dict
    monkeypatch.setattr(
        PartitionEngine, "load_state_dict", lambda *known: loaded.append(load(*known))
    )
    with cluster(2) as made, Client(made, set_as_default=False) as client:
        command = [sys.executable, "-c", CLIENT, made.scheduler_address, str(path)]
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 600
        while not path.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL  # it had not ended by itself
        place = Checkpoint(path, every=None, passes=4)
        clf = DaskLinearMulticlassSVC(**LONG, client=client, checkpoint=place)
        clf.fit(*chunked(X, y, 4))
    assert len(loaded) == 1 and clf.n_iter_ > 4
    check_certificate(clf, X, y)


def started(module: str, file: Any, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(file)]
    return subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL)


@pytest.mark.slow  # Dask's client tries for a minute to find its scheduler again
def test_a_scheduler_that_dies_is_an_error_and_no_hang(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 2.0)
    X, y = blobs()
    file, path = tmp_path / "scheduler", tmp_path / "fit"
    scheduler = started("dask_scheduler", file, "--port", "0", "--no-dashboard")
    worker = started("dask_worker", file, "--no-dashboard", "--nanny-port", "0")
    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
            Client(scheduler_file=str(file), timeout=300, set_as_default=False) as client,
        ):
            client.wait_for_workers(1, timeout=300)
            disturbed(monkeypatch, {9: lambda parts: scheduler.kill()})
            place = Checkpoint(path, every=None, passes=4)
            clf = DaskLinearMulticlassSVC(**LONG, client=client, checkpoint=place)
            with pytest.raises(ConnectionError, match=r"scheduler is gone|no Dask worker"):
                clf.fit(*chunked(X, y, 4))
        assert path.exists()  # to go on from
    finally:
        for process in (scheduler, worker):
            process.terminate()
            process.wait()
