"""Partitions in the memory of Dask workers.

Every partition is a `Part`, the result of a task: Dask holds it, and frees it when nobody asks for
it any more. What is asked of it runs as a task pinned to the worker that has it, its home. W is
the result of a task too, and goes from worker to worker (`Client.scatter` hangs when a worker dies
meanwhile); the shares are added up by tasks, in groups that depend on the order of the partitions
alone.

A home that is gone, or about to, is noticed while we wait. Its partitions move: to where Dask has
copied them (a worker that retires in peace), or they are made anew from their data, which Dask
computes again, and from the dual that was kept last, or none. A part that was made anew, copied
or read back from disk says so by its version, so no certificate can be wrong about it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import dask
from dask.delayed import Delayed
from distributed import CancelledError, Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError
from scipy import sparse

from polymargin.estimators.partitioned import Chunk, Source, Summary, checked_chunk, summary_of
from polymargin.solvers.engines.part import Part, Share, add_up
from polymargin.solvers.engines.partitions import Duals, in_groups

LOOK_EVERY = 0.5  # seconds between looks at who is there
PATIENCE = 60.0  # seconds without any worker, or any scheduler, before giving up
COMING = ("pending", "lost")  # what is lost with a worker is computed again where that can be done
GONE = ("error", "cancelled")
MOST_LOSSES = 10  # of one partition
OF_DASK = (
    CommClosedError,
    KilledWorker,
    OSError,
    TimeoutError,
    CancelledError,
)  # of Dask, not of the data


class PartitionLostError(RuntimeError):
    """A partition that cannot be had any more."""


def _begin(make: Callable[[Chunk], Part], chunk: Chunk, dual: sparse.csr_array | None) -> Part:
    part = make(chunk)
    if dual is not None:
        part.set_dual(dual)
    return part


def _itself(value: Any) -> Any:
    return value


def _ask(part: Part, method: str, *arguments: Any) -> Any:
    return getattr(part, method)(*arguments)


class DaskSource(Source):
    """Partitions on the workers of a client."""

    def __init__(self, client: Client, parts: Sequence[tuple[Any, Any, Any]]) -> None:
        self.client = client
        self.n = len(parts)
        self._data: list[Future] = []
        for number, part in enumerate(parts):
            given = client.compute([one for one in part if isinstance(one, Delayed)])
            futures = [given.pop(0) if isinstance(one, Delayed) else one for one in part]
            self._data.append(client.submit(checked_chunk, number, *futures, pure=False))
        self._parts: list[Future] = []
        self._homes: list[str] = []
        self._losses: Counter[int] = Counter()
        self._snapshot: Sequence[sparse.csr_array | None] = [None] * self.n
        self._make: Callable[[Chunk], Part] | None = None

    # --- before and after ------------------------------------------------------------------------

    def look(self) -> list[Summary]:
        """What there is in each."""
        futures = [self.client.submit(summary_of, chunk, pure=False) for chunk in self._data]
        self._wait(futures, self._homeless)
        for number, future in enumerate(futures):
            if future.status != "finished":
                self._give_up(number, future)
        return list(self.client.gather(futures))

    def hold(self, make: Callable[[Chunk], Part]) -> None:
        """Make the parts where their data are."""
        self._make = make
        have = self.client.who_has(self._data)
        there = self._running()
        self._homes, self._parts = [""] * self.n, [*self._data]
        for number, chunk in enumerate(self._data):
            homes = sorted(set(have.get(chunk.key, ())) & there)
            self._settle(number, homes[0] if homes else self._least_busy(there))

    def close(self) -> None:
        """Let go of everything."""
        self._parts, self._data = [], []

    # --- what is asked of the parts --------------------------------------------------------------

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """What a method of every `Part` gives, in their order."""
        return list(self._asked(method, arguments, lambda futures: futures))

    def total(self, method: str, *arguments: Any) -> Share:
        """The sum of the shares that a method of every `Part` gives."""
        shape: tuple[int, int] = self._make.keywords["common"].shape  # type: ignore[union-attr]

        def summed(futures: list[Future]) -> Future:
            def add(group: list[Future], shape: tuple[int, int]) -> Future:
                return self.client.submit(add_up, group, shape, pure=False)

            return in_groups(futures, add, shape)

        share: Share = self._asked(method, arguments, summed)
        return share

    def set_duals(self, duals: Duals) -> None:
        """Give every partition a dual, also to begin from when it is lost."""
        self.keep(duals)
        there = self._running()
        for number, home in enumerate(self._homes):
            self._settle(number, home if home in there else self._least_busy(there))

    def keep(self, duals: Duals) -> None:
        """Duals to begin from where a partition is lost."""
        self._snapshot = duals

    def _asked(
        self, method: str, arguments: Sequence[Any], join: Callable[[list[Future]], Any]
    ) -> Any:
        """Ask all parts, and again those that are lost meanwhile, until `join` is had."""
        futures: list[Future | None] = [None] * self.n
        sent: list[Any] | None = None
        while True:
            try:
                if sent is None:
                    sent = [self._sent(one) for one in arguments]
                for number in range(self.n):
                    if futures[number] is None:
                        futures[number] = self.client.submit(
                            _ask, self._parts[number], method, *sent,
                            workers=[self._homes[number]], pure=False,
                        )  # fmt: skip
                joined = join(futures)  # type: ignore[arg-type]
                roots = joined if isinstance(joined, list) else [joined]
                self._wait([*roots, *futures], self._homeless)  # type: ignore[list-item]
                lost = self._homeless() | self._failed(futures)
                if not lost and all(root.status == "finished" for root in roots):
                    return self.client.gather(joined)
                if not lost:
                    sent, lost = None, set(range(self.n))  # what was sent was lost, or a sum
            except OF_DASK as error:
                lost = self._after(error)
                sent = None
            for number in lost:
                futures[number] = None
            for number in lost & self._homeless() | {m for m in lost if self._is_gone(m)}:
                self._move(number)

    def _sent(self, value: Any) -> Any:
        """An array as the result of a task, which Dask can have again; numbers go as they are."""
        if not hasattr(value, "nbytes"):
            return value
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(_itself, value, pure=False)

    # --- who is there ----------------------------------------------------------------------------

    def _running(self) -> set[str]:
        """The workers that take tasks; waits for one."""
        began = time.monotonic()
        while True:
            try:
                info = self.client.scheduler_info(n_workers=-1).get("workers", {})
                there = {name for name, one in info.items() if one["status"] == "running"}
            except (OSError, TimeoutError, RuntimeError):
                there = set()
            if self.client.status not in ("running", "connecting"):
                raise ConnectionError(
                    "The Dask scheduler is gone. With checkpoint=... a fit can go on where it was "
                    "saved."
                )
            if there:
                return there
            if time.monotonic() - began > PATIENCE:
                raise ConnectionError(
                    f"There was no Dask worker for {PATIENCE:.0f} seconds. Start some; with "
                    "checkpoint=... a fit can go on where it was saved."
                )
            time.sleep(LOOK_EVERY)

    def _homeless(self) -> set[int]:
        there = self._running()
        return {number for number, home in enumerate(self._homes) if home not in there}

    def _least_busy(self, there: set[str]) -> str:
        """Where the fewest partitions are; of several, the first by name."""
        busy = Counter(home for home in self._homes if home)
        return min(sorted(there), key=lambda home: busy[home])

    def _wait(self, futures: Sequence[Future], lost: Callable[[], set[int]]) -> None:
        """Until all futures are done, one has failed, or a home is lost."""
        looked = time.monotonic()
        while pending := [one for one in futures if one.status in COMING]:
            if any(one.status in GONE for one in futures):
                return
            try:
                with self.client.as_current():  # whose it looks for
                    wait(pending, timeout=LOOK_EVERY)
            except TimeoutError:
                pass
            except CancelledError:
                return
            if any(one.status == "lost" for one in pending):  # which nobody can wait for
                time.sleep(LOOK_EVERY / 10)
            if time.monotonic() - looked >= LOOK_EVERY:
                if lost():
                    return
                looked = time.monotonic()

    # --- partitions that are lost ----------------------------------------------------------------

    def _failed(self, futures: Sequence[Future | None]) -> set[int]:
        """Partitions whose task failed through no fault of theirs; raises for the others."""
        failed = set()
        for number, future in enumerate(futures):
            if future is None or future.status == "cancelled":
                failed.add(number)
            elif future.status == "error":
                if not isinstance(future.exception(), OF_DASK):
                    self._give_up(number, future)
                failed.add(number)
        return failed

    def _after(self, error: BaseException) -> set[int]:
        self._losses[-1] += 1
        if self._losses[-1] > MOST_LOSSES * 10:
            raise PartitionLostError(f"Dask failed again and again: {error}") from error
        return set(range(self.n))

    def _is_gone(self, number: int) -> bool:
        return self._parts[number].status in GONE

    def _move(self, number: int) -> None:
        """To where Dask has a copy of it; or made anew."""
        self._losses[number] += 1
        if self._losses[number] > MOST_LOSSES or self._is_gone(number):
            self._check_data(number)
        if self._losses[number] > MOST_LOSSES:
            raise PartitionLostError(
                f"Partition {number} was lost {MOST_LOSSES} times: its worker may run out of "
                "memory. Use smaller partitions, or workers with more memory."
            )
        there = self._running()
        copies = set(self.client.who_has([self._parts[number]]).get(self._parts[number].key, ()))
        if copies & there:
            self._homes[number] = min(copies & there)
        else:
            self._settle(number, self._least_busy(there))

    def _settle(self, number: int, home: str) -> None:
        self._homes[number] = home
        dual = self._snapshot[number]
        self._parts[number] = self.client.submit(
            _begin, self._make, self._data[number], dual, workers=[home], pure=False
        )

    def _check_data(self, number: int) -> None:
        if self._data[number].status in GONE:
            self._give_up(number, self._data[number])

    def _give_up(self, number: int, future: Future) -> None:
        """Say why a partition cannot be had."""
        if future.status == "error":
            error = future.exception()
            if isinstance(error, (ValueError, TypeError)):
                raise error
            raise PartitionLostError(f"Partition {number} cannot be computed: {error}") from error
        raise PartitionLostError(
            f"Partition {number} is lost, and Dask does not know how to compute it again (its data "
            "were put into the memory of a worker that is gone). Give data that can be read again, "
            "or have them replicated; with checkpoint=... a fit can go on where it was saved."
        )
