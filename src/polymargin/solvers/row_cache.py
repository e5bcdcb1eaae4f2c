"""Parts of the Gram matrix, computed in blocks and kept within a budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polymargin.kernel_functions import TrainingKernel


class RowCache:
    """Products with rows of the Gram matrix, some of which are kept.

    A row keeps its place as long as its example is wanted. Working sets come back round after
    round: if the last used replaced the first used, none would be there when it is needed again.

    Parameters
    ----------
    kernel : TrainingKernel
    columns : int64 ndarray
        The examples whose kernel values make up a row.
    budget : int
        Bytes the kept rows may take.
    """

    def __init__(self, kernel: TrainingKernel, columns: NDArray[np.int64], budget: int) -> None:
        self._kernel = kernel
        self._columns = columns
        row_bytes = max(1, len(columns) * kernel.dtype.itemsize)
        slots = 0 if kernel.at_hand else int(min(kernel.n, budget // row_bytes))
        self._rows = np.empty((slots, len(columns)), kernel.dtype)
        self._used = 0  # places ever filled
        self._slot = np.full(kernel.n, -1, np.int64)
        self._owner = np.full(slots, -1, np.int64)

    def times(
        self, rows: NDArray[np.int64], coef: NDArray, positions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """``K[columns[positions], rows] coef``; these rows are the wanted ones now."""
        self._admit(rows)
        slots = self._slot[rows]
        kept = slots >= 0
        total = self._kernel.times(self._columns[positions], rows[~kept], coef[~kept])
        if kept.any():
            weights = np.zeros((self._used, coef.shape[1]), self._rows.dtype)
            weights[slots[kept]] = coef[kept]
            total += (self._rows[: self._used].T @ weights)[positions]
        return total

    def _admit(self, rows: NDArray[np.int64]) -> None:
        """Keep rows in places that are free or belong to examples that are not wanted."""
        wanted = np.zeros(self._kernel.n, bool)
        wanted[rows] = True
        free = np.flatnonzero((self._owner < 0) | ~wanted[self._owner])
        fresh = rows[self._slot[rows] < 0][: len(free)]
        free = free[: len(fresh)]
        if len(fresh) == 0:
            return
        gone = self._owner[free]
        self._slot[gone[gone >= 0]] = -1
        self._owner[free] = fresh
        self._slot[fresh] = free
        self._used = max(self._used, int(free[-1]) + 1)
        self._kernel.block(fresh, self._columns, out=self._rows, places=free)


class MemberGram:
    """The Gram matrix of a changing set of examples: only what is new is computed.

    Attributes
    ----------
    members : int64 ndarray
        The examples.
    """

    def __init__(self, kernel: TrainingKernel) -> None:
        self._kernel = kernel
        self._room = np.zeros((0, 0), kernel.dtype)
        self.members = np.zeros(0, np.int64)

    @property
    def matrix(self) -> NDArray:
        """Kernel values of the members with the members; longer rows than that."""
        return self._room[: len(self.members)]

    def change_to(self, wanted: NDArray[np.int64], most: int) -> None:
        """Take in ``wanted``. Others stay as long as all are ``most`` members at most."""
        fresh = np.setdiff1d(wanted, self.members, assume_unique=True)
        if len(self.members) + len(fresh) > most:
            self.keep(wanted)
        old, total = len(self.members), len(self.members) + len(fresh)
        if total > len(self._room):
            self._grow(max(min(most, self._kernel.n), total))  # pages count when they are used
        self.members = np.concatenate([self.members, fresh])
        if len(fresh):
            self._kernel.block(fresh, self.members, out=self._room[old:total, :total])
            self._room[:old, old:total] = self._room[old:total, :old].T

    def keep(self, wanted: NDArray[np.int64]) -> None:
        """Let the members go that are not among ``wanted``."""
        stay = np.flatnonzero(np.isin(self.members, wanted, assume_unique=True))
        if len(stay) == len(self.members):
            return
        for first in range(0, len(stay), 64):  # a row moves up or stays, so this works in place
            part = stay[first : first + 64]
            self._room[first : first + len(part), : len(stay)] = self._room[part][:, stay]
        self.members = self.members[stay]

    def _grow(self, size: int) -> None:
        room = np.empty((size, size), self._kernel.dtype)
        old = len(self.members)
        room[:old, :old] = self._room[:old, :old]
        self._room = room
