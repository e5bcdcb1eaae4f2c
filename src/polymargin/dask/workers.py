"""Partitions in the memory of Dask workers.

Every partition is kept by a worker, its home (:mod:`polymargin.dask.keeper`), while we hold the
receipt of it: the result of the task that took its data over. What is asked of a partition runs as
a task at its home. W is the result of a task too, and goes from worker to worker (`Client.scatter`
hangs when a worker dies meanwhile); the shares are added up by tasks, in groups that depend on the
order of the partitions alone.

Nobody waits for a home without looking, twice a second, whether it is still there. If it is not,
other workers take the data over, which Dask computes again, and the parts begin from the dual that
was kept last, or none. A part that was made anew says so by its version, so no certificate can be
wrong about it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dask
from dask.delayed import Delayed
from distributed import CancelledError, Client, Future, KilledWorker, futures_of, wait
from distributed.comm.core import CommClosedError
from scipy import sparse

from polymargin.dask.keeper import NotKeptError, Receipt, ask, begin, take
from polymargin.estimators.partitioned import Chunk, Source, Summary
from polymargin.solvers.engines.part import Part, Share, add_up
from polymargin.solvers.engines.partitions import Duals, in_groups

LOOK_EVERY = 0.5  # seconds between looks at who is there
PATIENCE = 60.0  # seconds without any worker, or any scheduler, before giving up
PAUSE = (
    15.0  # seconds that a worker may pause, its memory being nearly full, before it counts as lost
)
COMING = ("pending", "lost")  # what is lost with a worker is computed again where that can be done
GONE = ("error", "cancelled")
LARGE = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # weights and duals are meant to
MOST_LOSSES = 10  # of one partition, with nothing done in between
OF_DASK = (
    CommClosedError,
    KilledWorker,
    NotKeptError,
    OSError,
    TimeoutError,
    CancelledError,
)  # of Dask, not of the data


class PartitionLostError(RuntimeError):
    """A partition that cannot be had any more."""


class _HomeLostError(Exception):
    """A home that is gone while we wait for what it has."""


def _itself(value: Any) -> Any:
    return value


class DaskSource(Source):
    """Partitions on the workers of a client."""

    def __init__(self, client: Client, parts: Sequence[tuple[Any, Any, Any]]) -> None:
        self.client = client
        self.n = len(parts)
        self._data = list(parts)
        self._homes = [""] * self.n
        self._taken: list[Future] = []  # receipts
        self._parts: list[Future] = []  # keys of the receipts, once the parts have begun
        self._births = [""] * self.n
        self._losses: Counter[int] = Counter()
        self._paused: dict[str, float] = {}  # workers, and since when
        self._snapshot: Sequence[sparse.csr_array | None] = [None] * self.n
        self._make: Callable[[Chunk], Part] | None = None
        self._anywhere = _lie_on_workers(parts)

    # --- before and after ------------------------------------------------------------------------

    def look(self) -> list[Summary]:
        """What there is in each."""
        there = self._running()
        self._taken = [self._take(number, there) for number in range(self.n)]
        return [one.summary for one in self._receipts(range(self.n)).values()]

    def hold(self, make: Callable[[Chunk], Part]) -> None:
        """Make the parts where their data are."""
        self._make = make
        self._parts = [*self._taken]
        self._begin(self._receipts(range(self.n)))

    def close(self) -> None:
        """Let go of everything; the workers follow."""
        for future in (*self._taken, *self._parts):
            future.release()  # an error that somebody looks at may know it
        self._data.clear()

    def _take(self, number: int, there: set[str]) -> Future:
        """Have a partition taken over: where it lies, or by the worker that has the fewest.

        One after the other: else Dask loads all of them before the first is taken over.
        """
        where: dict[str, Any] = {"priority": -number}
        if not self._anywhere:
            self._homes[number] = self._least_busy(there)
            where["workers"] = [self._homes[number]]
        data = self._data[number]
        given = self.client.compute(
            [one for one in data if isinstance(one, Delayed)], allow_other_workers=True, **where
        )
        futures = [given.pop(0) if isinstance(one, Delayed) else one for one in data]
        return self.client.submit(take, number, *futures, pure=False, **where)

    def _take_again(self, number: int) -> None:
        self._lose(number)
        self._taken[number] = self._take(number, self._running())
        if self._parts:
            self._parts[number] = self._taken[number]  # the worker that had it lets go

    def _receipts(self, numbers: Iterable[int]) -> dict[int, Receipt]:
        """Of partitions that are taken over, or about to."""
        numbers = list(numbers)
        while True:
            futures = [self._taken[number] for number in numbers]
            self._wait(futures, self._stuck)
            for number, future in zip(numbers, futures, strict=True):
                if future.status in GONE:
                    self._give_up(number, future)
            if all(future.status == "finished" for future in futures):
                try:
                    return dict(zip(numbers, self._gathered(futures, self._stuck), strict=True))
                except _HomeLostError:
                    pass
            stuck = self._stuck()
            for number in stuck:  # all of them first: what Dask knows, it does not assign anew
                self._taken[number].release()
            for number in stuck:
                self._take_again(number)

    def _begin(self, receipts: dict[int, Receipt]) -> None:
        """Make parts where their data are, with the dual that was kept."""
        for number, receipt in receipts.items():
            self._homes[number], self._births[number] = receipt.address, receipt.birth
            with dask.config.set(LARGE):
                self._parts[number] = self.client.submit(
                    begin, self._taken[number], self._make, self._snapshot[number],
                    workers=[receipt.address], pure=False,
                )  # fmt: skip

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
        self._begin(self._receipts(range(self.n)))

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
            not_kept: set[int] = set()
            try:
                if sent is None:
                    sent = [self._sent(one) for one in arguments]
                for number in range(self.n):
                    if futures[number] is None:
                        futures[number] = self.client.submit(
                            ask, self._parts[number], method, *sent,
                            workers=[self._homes[number]], pure=False,
                        )  # fmt: skip
                joined = join(futures)  # type: ignore[arg-type]
                roots = joined if isinstance(joined, list) else [joined]
                moving = {one.key for one in [*roots, *sent] if isinstance(one, Future)}
                self._wait(
                    [*roots, *futures],  # type: ignore[list-item]
                    lambda moving=moving: self._homeless() or moving & self._left_behind(),  # type: ignore[misc]
                )
                failed, not_kept = self._failed(futures)
                lost = self._homeless() | failed
                if not lost and all(root.status == "finished" for root in roots):
                    found = self._gathered(roots, self._homeless)
                    self._losses.clear()  # it goes on
                    return found if joined is roots else found[0]
                if not lost or any(isinstance(one, Future) and not one.done() for one in sent):
                    sent, lost = None, set(range(self.n))  # what was sent was lost, or a sum
            except _HomeLostError:
                lost = self._homeless()
            except OF_DASK as error:
                lost = self._after(error)
                sent = None
            for number in lost:
                futures[number] = None
            joined, roots = None, []  # what waits for a lost home keeps its partitions there
            homeless = self._homeless()
            self._move({m for m in lost if m in homeless | not_kept or self._is_gone(m)}, not_kept)

    def _sent(self, value: Any) -> Any:
        """An array as the result of a task, which Dask can have again; numbers go as they are."""
        if not hasattr(value, "nbytes"):
            return value
        with dask.config.set(LARGE):
            return self.client.submit(_itself, value, pure=False)

    # --- who is there ----------------------------------------------------------------------------

    def _running(self) -> set[str]:
        """The workers that take tasks, or will soon; waits for one."""
        began = time.monotonic()
        while True:
            try:
                info = self.client.scheduler_info(n_workers=-1).get("workers", {})
            except (OSError, TimeoutError, RuntimeError):
                info = {}
            if self.client.status not in ("running", "connecting"):
                raise ConnectionError(
                    "The Dask scheduler is gone. With checkpoint=... a fit can go on where it was "
                    "saved."
                )
            now = time.monotonic()
            there = {name for name, one in info.items() if one["status"] == "running"}
            paused = {name for name, one in info.items() if one["status"] == "paused"}
            self._paused = {name: self._paused.get(name, now) for name in paused}
            there |= {name for name, since in self._paused.items() if now - since < PAUSE}
            if there:
                return there
            if now - began > PATIENCE:
                raise ConnectionError(self._why_nobody())
            time.sleep(LOOK_EVERY)

    def _why_nobody(self) -> str:
        if self._paused:
            return (
                f"All {len(self._paused)} Dask workers have paused for {PATIENCE:.0f} seconds: "
                "their memory is nearly full. Use more workers, or workers with more memory; with "
                "checkpoint=... a fit can go on where it was saved."
            )
        return (
            f"There was no Dask worker for {PATIENCE:.0f} seconds. Start some; with "
            "checkpoint=... a fit can go on where it was saved."
        )

    def _homeless(self) -> set[int]:
        there = self._running()
        return {number for number, home in enumerate(self._homes) if home not in there}

    def _stuck(self) -> set[int]:
        """Partitions that are about to be taken over by a worker that takes no tasks any more."""
        there = self._running()
        coming = {m for m, one in enumerate(self._taken) if one.status in COMING}
        stuck = set() if self._anywhere else {m for m in coming if self._homes[m] not in there}
        if (coming := coming - stuck) and (left := self._left_behind()):
            stuck |= {m for m in coming if not left.isdisjoint(self._keys(m))}
        return stuck

    def _left_behind(self) -> set[Any]:
        """Tasks of workers that have paused for long: Dask leaves them what it assigned to them."""
        paused = self._paused.keys() - self._running()
        if not paused:
            return set()
        processing = self.client.processing()
        return {key for name in paused for key in processing.get(name, ())}

    def _keys(self, number: int) -> set[Any]:
        """What a partition is taken over by, and all that its data are computed from."""
        keys = {self._taken[number].key}
        for one in self._data[number]:
            if isinstance(one, Delayed):
                graph: Any = one.__dask_graph__()
                keys |= graph.cull(set(one.__dask_keys__())).to_dict().keys()
        return keys

    def _least_busy(self, there: set[str]) -> str:
        """Where the fewest partitions are; of several, the first by name."""
        busy = Counter(home for home in self._homes if home)
        return min(sorted(there), key=lambda home: (home in self._paused, busy[home]))

    def _wait(self, futures: Sequence[Future], lost: Callable[[], set[Any]]) -> None:
        """Until all futures are done, one has failed, or something is lost."""
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

    def _gathered(self, futures: list[Future], lost: Callable[[], set[int]]) -> list[Any]:
        """What futures that are done have; raises where a home is lost meanwhile.

        Dask would run what was lost with a worker again, and wait for that worker to do it.
        """

        async def fetch() -> list[Any]:
            return list(await self.client.gather(futures, asynchronous=True))

        loop: Any = self.client.loop
        fetched = asyncio.run_coroutine_threadsafe(fetch(), loop.asyncio_loop)
        try:
            while True:
                try:
                    return fetched.result(LOOK_EVERY)
                except TimeoutError:
                    if fetched.done():
                        raise
                    if lost():
                        raise _HomeLostError from None
        finally:
            fetched.cancel()

    # --- partitions that are lost ----------------------------------------------------------------

    def _failed(self, futures: Sequence[Future | None]) -> tuple[set[int], set[int]]:
        """Partitions whose task failed through no fault of theirs, and of these, those not kept.

        Raises for the others.
        """
        failed, not_kept = set(), set()
        for number, future in enumerate(futures):
            if future is None or future.status == "cancelled":
                failed.add(number)
            elif future.status == "error":
                error = future.exception()
                if not isinstance(error, OF_DASK):
                    self._give_up(number, future)
                failed.add(number)
                if isinstance(error, NotKeptError):
                    not_kept.add(number)
        return failed, not_kept

    def _after(self, error: BaseException) -> set[int]:
        self._losses[-1] += 1
        if self._losses[-1] > MOST_LOSSES * 10:
            raise PartitionLostError(f"Dask failed again and again: {error}") from error
        return set(range(self.n))

    def _is_gone(self, number: int) -> bool:
        return self._parts[number].status in GONE

    def _lose(self, number: int) -> None:
        self._losses[number] += 1
        if self._losses[number] > MOST_LOSSES:
            raise PartitionLostError(
                f"Partition {number} was lost {MOST_LOSSES} times: its worker may run out of "
                "memory. Use smaller partitions, or workers with more memory."
            )

    def _move(self, numbers: set[int], not_kept: set[int]) -> None:
        """Go where Dask has taken the partitions over anew; or have that done."""
        if not numbers:
            return
        for number in numbers:
            self._lose(number)
        receipts = self._receipts(sorted(numbers))
        there = self._running()
        for number, receipt in receipts.items():  # receipts that outlived what they are for
            nothing = number in not_kept and receipt.birth == self._births[number]
            if nothing or receipt.address not in there:
                self._take_again(number)
        self._begin(self._receipts(sorted(numbers)))

    def _give_up(self, number: int, future: Future) -> None:
        """Say why a partition cannot be had."""
        if future.status == "error":
            error = future.exception()
            future.release()  # the worker has what the error knows
            if isinstance(error, (ValueError, TypeError)):
                raise error
            if isinstance(error, KilledWorker):
                raise PartitionLostError(
                    f"Partition {number} cannot be taken over: the workers that tried have died. "
                    "They may run out of memory: use smaller partitions, or workers with more "
                    "memory."
                ) from error
            raise PartitionLostError(f"Partition {number} cannot be computed: {error}") from error
        raise PartitionLostError(
            f"Partition {number} is lost, and Dask does not know how to compute it again (its data "
            "were put into the memory of a worker that is gone). Give data that can be read again, "
            "or have them replicated; with checkpoint=... a fit can go on where it was saved."
        )


def _lie_on_workers(parts: Sequence[tuple[Any, Any, Any]]) -> bool:
    """Whether the data, or what they are computed from, are in the memory of workers already."""
    values = [one for part in parts for one in part]
    graphs = {id(one.__dask_graph__()): one for one in values if isinstance(one, Delayed)}
    return bool(futures_of([*graphs.values(), *(v for v in values if isinstance(v, Future))]))
