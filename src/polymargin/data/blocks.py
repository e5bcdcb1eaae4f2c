"""Rows on disk, of which a few blocks are in memory at a time.

A *run* is a few dozen kilobytes of consecutive rows. Every pass deals the runs anew, in random
order, into blocks that fit the memory, and visits the blocks one after the other, the examples of
each in random order: the sequential method with an order that is read in large pieces, so nothing
is damped and nothing is approximate. Data sorted by label need no shuffling. (Blocks that stay the
same from pass to pass would need several times the passes: an intercept couples all examples.)

While a block is swept, a thread has the next one read. The rows with the largest shares of the
duality gap, which passes want to visit most, stay in memory. A run is read only if enough of its
other rows are due; the rest sleep until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

from polymargin.arrays import Doubles, Indices, Matrix
from polymargin.core import CompiledRows, core
from polymargin.data.rows import Arranged, CsrRows, DenseRows, Piece, Rows, RowsState, as_rows
from polymargin.files import DataFileError, StoredMatrix
from polymargin.storage import Array, digest_of
from polymargin.waiting import result_of

_NOBODY = np.empty(0, np.int64)
PER_EXAMPLE = 90  # bytes of a solver's arrays, besides weights and dual
IN_USE = 2  # blocks: the one that is swept, and the next
STAY = 3  # times the rows that stay: those of before, those to come, and both put together
SHARES = 8  # blocks that would fill the memory, where nobody says how many there are
RUN_BYTES = 2**16
MIXED = 64  # runs of a block at least, where there are that many rows
SETTLE = 4  # passes after which others may be kept
WORTH = 0.1  # part of a run's rows not in memory that must be due for it to be read


class BlockRows(Rows):
    """Rows of a data directory.

    Parameters
    ----------
    stored : StoredMatrix
    memory : float
        Bytes for rows and for the solver's arrays of examples.
    n_blocks : int or None
        Blocks of a pass over everyone; None: as the memory allows.
    """

    is_whole = False

    def __init__(self, stored: StoredMatrix, memory: float, n_blocks: int | None = None) -> None:
        kind = DenseRows if stored.dense else CsrRows
        self.can_be_blocked, self.listed_cost = kind.can_be_blocked, kind.listed_cost
        self._stored = stored
        (self.n, self.d), self.dtype = stored.shape, stored.dtype
        self.per_row = stored.n_stored / max(1, self.n)
        self.bytes_read = 0
        self.held: object = None  # for as long as the rows are in use
        self._reader = ThreadPoolExecutor(1)
        self._divide(memory, n_blocks)
        self.squared_norms = np.empty(self.n)
        self._look_at_all()
        self.compiled = _compiled(stored.values, self.d)
        self._kept: Rows = as_rows(self.take(_NOBODY))
        self._kept_examples = _NOBODY
        self._is_kept = np.zeros(self.n, bool)
        self._wanted = np.zeros(self.n, bool)  # whose rows are to be kept
        self._passes = 0

    # --- runs and blocks -------------------------------------------------------------------------

    def _divide(self, memory: float, n_blocks: int | None) -> None:
        """The sizes of runs and blocks, and of what stays."""
        fixed, row = PER_EXAMPLE * self.n, self._stored.entry_bytes * self.per_row + 8
        room = memory - fixed
        self._block = room / SHARES if n_blocks is None else row * self.n / n_blocks  # bytes
        self._run = int(max(1, min(RUN_BYTES / row, self._block / row / MIXED)))  # rows
        starts = np.arange(0, self.n + self._run, self._run).clip(max=self.n)
        self._run_bytes = np.diff(self._stored.bounds(starts)) * self._stored.entry_bytes
        self._run_bytes += np.diff(starts) * self._stored.row_bytes
        self._stay = int(max(0.0, room - IN_USE * self._block) / STAY / row)  # rows
        largest = float(self._run_bytes.max(initial=0))
        if room < max(IN_USE * self._block, SHARES * min(largest, MIXED * row)):
            needed = fixed + SHARES * max(largest, MIXED * row)
            raise ValueError(
                f"memory_limit={memory / 1e6:.3g} MB is too small: {self.n:,} examples need "
                f"{fixed / 1e6:.3g} MB whatever their features, and some blocks of rows as well. "
                f"Give at least {needed / 1e6:.3g} MB, better twice as much."
            )

    def _blocks(self, runs: Indices) -> list[Indices]:
        """Runs one after the other in blocks of about the same size, as few as memory allows."""
        ends = np.cumsum(self._run_bytes[runs])
        total = ends[-1] if len(runs) else 1
        block = (ends - self._run_bytes[runs]) * int(np.ceil(total / self._block)) // total
        return np.split(runs, np.flatnonzero(np.diff(block)) + 1)

    def _everyone(self) -> list[Indices]:
        return self._blocks(np.arange(len(self._run_bytes)))

    def _bounds(self, runs: Indices) -> tuple[Indices, Indices]:
        """The first rows of some runs, and those after the last ones."""
        return runs * self._run, np.minimum((runs + 1) * self._run, self.n)

    def _examples(self, runs: Indices) -> Indices:
        examples = (runs[:, None] * self._run + np.arange(self._run)).ravel()
        return examples[examples < self.n]

    def _in_memory(self, blocks: list[Indices]) -> Iterator[Indices]:
        """One block after the other, each for as long as it is in use."""
        ahead, waits = None, -1
        for number, runs in enumerate(blocks):
            place = f"rows {runs.min(initial=self.n) * self._run + 1:,} and others"
            try:
                self._stored.check()
                if ahead is not None:
                    result_of(ahead)
            except (DataFileError, OSError) as error:
                raise self._error(place, error) from error
            waits, before = self._stored.waits(), waits
            if number + 1 < len(blocks) and waits != before:  # else the system has it in memory
                ahead = self._reader.submit(self._stored.fetch, *self._bounds(blocks[number + 1]))
            self.bytes_read += int(self._run_bytes[runs].sum())
            yield runs
            self._stored.release()

    def _error(self, place: str, error: Exception) -> DataFileError:
        return DataFileError(f"{place}: {error}", path=str(self._stored.folder))

    def _look_at_all(self) -> None:
        """Check all values, and take the norms."""
        for runs in self._in_memory(self._everyone()):
            first, last = self._span(runs)
            place = f"rows {first + 1:,} to {last:,}"
            X = self._stored.matrix(first, last)
            try:
                rows = as_rows(X)
            except ValueError as error:
                raise self._error(place, error) from error
            if not self._stored.dense and X.nnz and not np.shares_memory(rows.matrix.data, X.data):
                raise self._error(place, ValueError("columns out of order: write it again"))
            self.squared_norms[first:last] = rows.squared_norms

    # --- passes ----------------------------------------------------------------------------------

    def partitions(self) -> Iterator[Rows]:
        """All rows in blocks, in the order of the data."""
        for runs in self._in_memory(self._everyone()):
            yield as_rows(self._stored.matrix(*self._span(runs)))

    def _span(self, runs: Indices) -> tuple[int, int]:
        """The rows of runs that follow each other."""
        return int(runs[0]) * self._run, min(self.n, (int(runs[-1]) + 1) * self._run)

    def arranged(self, chosen: Indices, rng: np.random.Generator | None) -> Arranged:
        """Block by block, and rows that stay in between; without those not worth reading a run."""

        def shuffled(numbers: Indices) -> Indices:
            return numbers if rng is None else rng.permutation(numbers)

        due = np.zeros(self.n, bool)
        due[chosen] = True
        runs = self._worth_reading(due)
        is_read = np.zeros(len(self._run_bytes), bool)
        is_read[runs] = True
        near = chosen[self._is_kept[chosen]]
        near = near[~is_read[near // self._run]]
        blocks = self._blocks(shuffled(runs))
        parts = []  # from disk and from what stays, in turn
        for block, between in zip(blocks, np.array_split(shuffled(near), len(blocks)), strict=True):
            examples = self._examples(block)
            parts += [shuffled(examples[due[examples]]), between]
        return Arranged(np.concatenate(parts), np.cumsum([len(part) for part in parts])[:-1])

    def _worth_reading(self, due: np.ndarray) -> Indices:
        """The runs with enough rows that are due and do not stay."""
        starts = np.arange(0, self.n, self._run)
        n_far = np.add.reduceat(~self._is_kept, starts, dtype=np.int64)
        n_due = np.add.reduceat(due & ~self._is_kept, starts, dtype=np.int64)
        runs = np.flatnonzero((n_due > 0) & (n_due >= WORTH * n_far))
        if len(runs) == 0 and not (due & self._is_kept).any():
            runs = np.flatnonzero((n_due > 0) & (n_due >= n_due.max() / 2))
        return runs

    def pieces(self, order: Arranged | None, worth: Doubles) -> Iterator[Piece]:
        """Block by block; None: everyone, in the order of the data."""
        found: list[tuple[Matrix, Indices]] = []
        self._passes += 1
        settles = order is None or self._passes % SETTLE == 0
        if settles:
            self._want(worth)
        if order is None:
            for runs in self._in_memory(self._everyone()):
                examples = self._examples(runs)
                X = self._stored.matrix(*self._span(runs))
                parts = [X] if self._stored.dense else [X.data, X.indices, X.indptr]
                yield Piece(examples, _compiled(parts, self.d), examples)
                found += self._found(examples)
        else:
            parts = np.split(order.order, order.cuts)
            far, near = iter(parts[0::2]), iter(parts[1::2])
            for runs in self._in_memory([np.unique(part // self._run) for part in parts[0::2]]):
                if len(runs):
                    yield Piece(next(far), self.compiled)
                if settles:
                    found += self._found(self._examples(runs))
                if len(between := next(near)):
                    yield Piece(between, self._kept.compiled, self._kept_examples)
        if settles:
            self._settle(found)

    def _found(self, examples: Indices) -> list[tuple[Matrix, Indices]]:
        """The rows among these that are wanted and not yet kept."""
        chosen = examples[self._wanted[examples] & ~self._is_kept[examples]]
        return [(self.take(chosen), chosen)] if len(chosen) else []

    # --- rows that stay --------------------------------------------------------------------------

    def _want(self, worth: Doubles) -> None:
        """The rows of those that are worth most, as many as there is room for."""
        least = np.inf if self._stay == 0 else 0.0
        if 0 < self._stay < self.n:
            least = max(0.0, float(np.partition(worth, -self._stay)[-self._stay]))
        np.greater(worth, least, out=self._wanted)

    def _settle(self, found: list[tuple[Matrix, Indices]]) -> None:
        """Keep what was found of the rows wanted."""
        still = np.flatnonzero(self._wanted[self._kept_examples])
        if found or len(still) < len(self._kept_examples):
            found.append((self._kept.take(still), self._kept_examples[still]))
            examples = np.concatenate([one for _, one in found])
            parts = [one for one, _ in found]
            dense = self._stored.dense
            matrix = np.concatenate(parts) if dense else sparse.vstack(parts, format="csr")
            self._is_kept[self._kept_examples] = False
            self._is_kept[examples] = True
            self._kept = as_rows(matrix)
            self._kept_examples = examples

    def state_dict(self) -> RowsState:
        """Whose rows stay."""
        return {"kept": np.sort(self._kept_examples), "passes": self._passes}

    def load_state_dict(self, state: RowsState) -> None:
        """Read those rows again."""
        kept, passes = state["kept"], state["passes"]
        inside = len(kept) == 0 or (kept[0] >= 0 and kept[-1] < self.n)
        if kept.dtype != np.int64 or not inside or not (np.diff(kept) > 0).all():
            raise ValueError("rows that stay in memory and are none")
        if type(passes) is not int or passes < 0:
            raise ValueError("passes that are no number")
        self._passes = passes
        self._kept, self._kept_examples = as_rows(self.take(kept)), kept
        self._is_kept[:] = False
        self._is_kept[kept] = True
        self._stored.release()

    # --- the rest of the contract ----------------------------------------------------------------

    def layout(self, weights_per_feature: int) -> tuple[CompiledRows, Indices | None]:
        """Rows of everyone, and weights for all features."""
        return self.compiled, None

    def digest(self) -> str:
        """A hash of all values, and of the blocks."""
        values = [rows.digest() for rows in self.partitions()]
        return digest_of(self._block, self._run, self._stay, *values)

    def take(self, rows: Indices) -> Matrix:
        """A copy of some rows."""
        return self._stored.take(rows)


def _compiled(parts: Sequence[Array], n_features: int) -> CompiledRows:
    """Rows that were looked at before, from the one or the three arrays they consist of."""
    if len(parts) == 1:
        rows: CompiledRows = core.dense_rows(parts[0], looked_at=True)
    else:
        data, indices, indptr = parts
        rows = core.csr_rows(data, indices, indptr, n_features, looked_at=True)
    return rows
