"""What a worker keeps of a fit: its partitions, out of Dask's sight.

Dask holds the results of tasks. It weighs them, copies them, and writes them to disk where memory
is short; a compiled engine would come and go like that in every round. So a worker keeps its
partitions in a `Keeper`, a plugin of the worker, and Dask holds a `Receipt` of each: the result of
the task that took it over. While the receipt lies in the worker's memory, the partition does.
When Dask lets go of the receipt, because the fit has ended or failed, or its client is gone, the
partition goes as well, and the data that it was made of.

A worker may be asked for what it does not keep: it was restarted, or the receipt is a copy. Then
the task fails with `NotKeptError`, and the client has the partition taken over anew.
"""

from __future__ import annotations

import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dask.typing import Key
from distributed import WorkerPlugin, get_worker
from distributed.utils import sync
from scipy import sparse

from polymargin.dask import sizes
from polymargin.estimators.partitioned import Chunk, Summary, checked_chunk, summary_of
from polymargin.solvers.engines.part import Part

NAME = "polymargin-keeper"
FREED = ("released", "forgotten")

sizes.register()


class NotKeptError(RuntimeError):
    """A partition that is not where it was thought to be."""


class Receipt(NamedTuple):
    """That a worker keeps a partition."""

    key: Key  # of the task that took it over
    birth: str  # another one whenever that task is run
    address: str
    summary: Summary


@dataclass
class Kept:
    """A partition: its data, later the part that works on them; None: it was let go."""

    value: Chunk | Part | None
    lock: threading.Lock = field(default_factory=threading.Lock)  # who gave up may ask again


class Keeper(WorkerPlugin):
    """The partitions of a worker, by the keys of their receipts."""

    def __init__(self) -> None:
        self.kept: dict[Key, Kept] = {}

    def transition(self, key: Key, start: str, finish: str, **_: Any) -> None:
        """Called by the worker for every change of a task's state."""
        if finish in FREED:
            self._free(key)

    def teardown(self, worker: Any) -> None:
        """Called by the worker at its end."""
        for key in list(self.kept):
            self._free(key)

    def _free(self, key: Key) -> None:
        kept = self.kept.pop(key, None)
        if kept is not None:
            kept.value = None  # errors that are still held may know it


def keeper() -> Keeper:
    """That of the worker that runs this task."""
    worker: Any = get_worker()

    async def add() -> None:  # where the worker looks at its plugins
        if NAME not in worker.plugins:
            await worker.plugin_add(Keeper(), name=NAME)

    if NAME not in worker.plugins:
        sync(worker.loop, add)
    found: Keeper = worker.plugins[NAME]
    return found


# --- tasks ---------------------------------------------------------------------------------------


def take(number: int, X: Any, y: Any, weight: Any) -> Receipt:
    """Keep a partition's data."""
    chunk = checked_chunk(number, X, y, weight)
    summary, worker = summary_of(chunk), get_worker()
    key = worker.get_current_task()
    keeper().kept[key] = Kept(chunk)
    return Receipt(key, uuid.uuid4().hex, worker.address, summary)


def begin(receipt: Receipt, make: Callable[[Chunk], Part], dual: sparse.csr_array | None) -> Key:
    """Make the part, unless that is done, with this dual, if one is given."""
    kept = _found(receipt.key)
    with kept.lock, _forgetful():
        if isinstance(kept.value, Chunk):
            kept.value = make(kept.value)
        if dual is not None:
            _part(kept).set_dual(dual)
    return receipt.key


def ask(key: Key, method: str, *arguments: Any) -> Any:
    """What a method of the part gives."""
    kept = _found(key)
    with kept.lock, _forgetful():
        return getattr(_part(kept), method)(*arguments)


def _found(key: Key) -> Kept:
    kept = keeper().kept.get(key)
    if kept is None:
        raise NotKeptError(f"{get_worker().address} does not keep {key!r}.")
    return kept


def _part(kept: Kept) -> Part:
    if not isinstance(kept.value, Part):  # let go, or taken over anew and not begun
        raise NotKeptError("The partition is not there.")
    return kept.value


@contextmanager
def _forgetful() -> Iterator[None]:
    """Errors, which Dask holds, forget the calls that led to them, and so the data."""
    try:
        yield
    except Exception as error:
        traceback.clear_frames(error.__traceback__)
        raise
