"""Parts of the Gram matrix, computed in blocks and kept within a budget."""

from __future__ import annotations

import numpy as np

from polymargin.arrays import Doubles, Floats, Indices
from polymargin.kernel_functions import TrainingKernel, add_product

FEW = 4  # times as many rows in the cache as are wanted: the wanted ones are copied


class RowCache:
    """Products with rows of the Gram matrix, some of which are kept.

    A row keeps its place as long as its example is wanted. Working sets come back round after
    round: if the last used replaced the first used, none would be there when it is needed again.

    A row has the kernel values of `columns`; those that are kept take `budget` bytes at most.
    """

    def __init__(self, kernel: TrainingKernel, columns: Indices, budget: int) -> None:
        self._kernel = kernel
        self._columns = columns
        size = 0 if kernel.at_hand else budget // kernel.dtype.itemsize
        self._room = np.empty(min(size, kernel.n * len(columns)), kernel.dtype)
        self._used = 0  # places ever filled
        self._slot = np.full(kernel.n, -1, np.int64)
        self._owner = np.zeros(0, np.int64)
        self._sums = np.zeros((0, 0))
        self._lay_out()

    def _lay_out(self) -> None:
        """As many rows as there is room for."""
        width = max(1, len(self._columns))
        slots = min(self._kernel.n, len(self._room) // width)
        self._rows = self._room[: slots * width].reshape(slots, width)
        fresh = np.full(slots - len(self._owner), -1, np.int64)
        self._owner = np.concatenate([self._owner, fresh])

    def narrow(self, stay: Indices) -> None:
        """Keep only the columns at these positions, in ascending order."""
        for first in range(0, self._used, 64):  # a row moves towards the front, so this is safe
            part = self._rows[first : min(first + 64, self._used)].take(stay, axis=1)
            self._room[first * len(stay) :][: part.size] = part.ravel()
        self._columns = self._columns[stay]
        self._lay_out()

    def times(self, rows: Indices, coef: Floats, positions: Indices) -> Doubles:
        """``K[columns, rows] coef``, right at these positions; the next call overwrites it.

        These rows are the wanted ones now.
        """
        self._admit(rows)
        slots = self._slot[rows]
        kept = slots >= 0
        shape = (len(self._columns), coef.shape[1])
        if self._sums.shape != shape:
            self._sums = np.empty(shape)
        self._sums.fill(0)
        if kept.any():
            weights = np.ascontiguousarray(coef[kept], self._rows.dtype)
            threads = self._kernel.threads
            if FEW * len(weights) < self._used:
                add_product(self._rows[slots[kept]], weights, self._sums, threads)
            else:
                by_place = np.zeros((self._used, coef.shape[1]), self._rows.dtype)
                by_place[slots[kept]] = weights
                add_product(self._rows[: self._used], by_place, self._sums, threads)
        if not kept.all():
            self._kernel.add_times(
                self._columns[positions], rows[~kept], coef[~kept], self._sums, positions
            )
        return self._sums

    def _admit(self, rows: Indices) -> None:
        """Keep rows in places that are free, then in those of examples that are not wanted."""
        fresh = rows[self._slot[rows] < 0]
        free = np.flatnonzero(self._owner < 0)
        if len(free) < len(fresh):
            wanted = np.zeros(self._kernel.n, bool)
            wanted[rows] = True
            spare = np.flatnonzero((self._owner >= 0) & ~wanted[self._owner])
            free = np.concatenate([free, spare])
        fresh, free = fresh[: len(free)], free[: len(fresh)]
        if len(fresh) == 0:
            return
        gone = self._owner[free]
        self._slot[gone[gone >= 0]] = -1
        self._owner[free] = fresh
        self._slot[fresh] = free
        self._used = max(self._used, int(free.max()) + 1)
        self._kernel.block(fresh, self._columns, out=self._rows, places=free)


class MemberGram:
    """The Gram matrix of a changing set of examples, `members`: only what is new is computed."""

    def __init__(self, kernel: TrainingKernel) -> None:
        self._kernel = kernel
        self._room = np.zeros((0, 0), kernel.dtype)
        self.members = np.zeros(0, np.int64)

    @property
    def matrix(self) -> Floats:
        """Kernel values of the members with the members; longer rows than that."""
        return self._room[: len(self.members)]

    def change_to(self, wanted: Indices, most: int) -> None:
        """Take in ``wanted``. Others stay as long as all are ``most`` members at most."""
        fresh = np.setdiff1d(wanted, self.members, assume_unique=True)
        if len(self.members) + len(fresh) > most:
            self.keep(wanted)
        old, total = len(self.members), len(self.members) + len(fresh)
        if total > len(self._room):
            self._grow(max(min(most, self._kernel.n), total))  # pages count when they are used
        self.members = np.concatenate([self.members, fresh])
        if len(fresh):
            self._kernel.block(fresh, self.members, out=self._room[old:total])
            self._room[:old, old:total] = self._room[old:total, :old].T

    def keep(self, wanted: Indices) -> None:
        """Let the members go that are not among ``wanted``."""
        stay = np.isin(self.members, wanted, assume_unique=True)
        count = int(stay.sum())
        holes = np.flatnonzero(~stay[:count])  # the last ones take their places
        last = count + np.flatnonzero(stay[count:])
        self._room[holes] = self._room[last]
        self._room[:count, holes] = self._room[:count, last]
        self.members[holes] = self.members[last]
        self.members = self.members[:count]

    def _grow(self, size: int) -> None:
        # rows an odd number of cache lines apart: a power of two would crowd few sets of a cache
        line = 64 // self._kernel.dtype.itemsize
        room = np.empty((size, (-(-size // line) | 1) * line), self._kernel.dtype)
        old = len(self.members)
        room[:old, :old] = self._room[:old, :old]
        self._room = room
