"""Parts of the Gram matrix, computed in blocks and kept within a budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polymargin.kernel_functions import TrainingKernel


class RowCache:
    """The rows used last, of the columns of one :class:`TrainingKernel`.

    Parameters
    ----------
    kernel : TrainingKernel
    budget : int
        Bytes the kept rows may take.

    Attributes
    ----------
    n_evaluations : int
        Kernel values computed so far.
    """

    def __init__(self, kernel: TrainingKernel, budget: int) -> None:
        self._kernel = kernel
        row_bytes = max(1, kernel.n_columns * kernel.dtype.itemsize)
        slots = int(min(kernel.n, budget // row_bytes))
        self._rows = np.empty((slots, kernel.n_columns), kernel.dtype)
        self._slot = np.full(kernel.n, -1, np.int64)
        self._owner = np.full(slots, -1, np.int64)
        self._used = np.zeros(slots, np.int64)
        self._clock = 0
        self._out = self._fresh = np.empty((0, kernel.n_columns), kernel.dtype)
        self.n_evaluations = 0

    def rows(self, chosen: NDArray[np.int64]) -> NDArray:
        """The rows of the examples ``chosen``; the array is used again by the next call."""
        self._clock += 1
        slots = self._slot[chosen]
        known = slots >= 0
        if len(self._out) < len(chosen):  # fresh memory costs more than it seems
            self._out = np.empty((len(chosen), self._kernel.n_columns), self._kernel.dtype)
            self._fresh = np.empty_like(self._out)
        out = self._out[: len(chosen)]
        if not known.any():
            self._kernel.block(chosen, out=out)
            self.n_evaluations += out.size
            self._keep(chosen, out)
            return out
        out[known] = self._rows[slots[known]]
        self._used[slots[known]] = self._clock
        if not known.all():
            fresh = self._kernel.block(chosen[~known], out=self._fresh[: np.count_nonzero(~known)])
            self.n_evaluations += fresh.size
            out[~known] = fresh
            self._keep(chosen[~known], fresh)
        return out

    def _keep(self, chosen: NDArray[np.int64], rows: NDArray) -> None:
        """Put rows in the places that were not used for longest."""
        free = np.flatnonzero(self._used < self._clock)
        free = free[np.argsort(self._used[free], kind="stable")][: len(chosen)]
        taken = chosen[: len(free)]
        gone = self._owner[free]
        self._slot[gone[gone >= 0]] = -1
        self._rows[free] = rows[: len(free)]
        self._owner[free] = taken
        self._slot[taken] = free
        self._used[free] = self._clock


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
        self.n_evaluations = 0

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
            self._grow(min(max(total, 2 * len(self._room)), max(most, total)))
        self.members = np.concatenate([self.members, fresh])
        if len(fresh):
            values = self._kernel.with_columns(self.members).block(fresh)
            self.n_evaluations += values.size
            self._room[old:total, :total] = values
            self._room[:old, old:total] = values[:, :old].T

    def keep(self, wanted: NDArray[np.int64]) -> None:
        """Let the members go that are not among ``wanted``."""
        stay = np.flatnonzero(np.isin(self.members, wanted, assume_unique=True))
        if len(stay) == len(self.members):
            return
        kept = self._room[stay].take(stay, axis=1)
        self._room[: len(stay), : len(stay)] = kept
        self.members = self.members[stay]

    def _grow(self, size: int) -> None:
        room = np.empty((size, size), self._kernel.dtype)
        old = len(self.members)
        room[:old, :old] = self._room[:old, :old]
        self._room = room
