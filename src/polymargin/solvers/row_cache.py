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
        self.n_evaluations = 0

    def rows(self, chosen: NDArray[np.int64]) -> NDArray:
        """The rows of the examples ``chosen``, (len(chosen), columns), as an array of its own."""
        self._clock += 1
        slots = self._slot[chosen]
        known = slots >= 0
        if not known.any():
            out = self._kernel.block(chosen)
            self.n_evaluations += out.size
            self._keep(chosen, out)
            return out
        out = np.empty((len(chosen), self._kernel.n_columns), self._kernel.dtype)
        out[known] = self._rows[slots[known]]
        self._used[slots[known]] = self._clock
        if not known.all():
            fresh = self._kernel.block(chosen[~known])
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
        The examples, in increasing order.
    matrix : ndarray of shape (len(members), len(members))
    """

    def __init__(self, kernel: TrainingKernel) -> None:
        self._kernel = kernel
        self.members = np.zeros(0, np.int64)
        self.matrix = np.zeros((0, 0), kernel.dtype)
        self.n_evaluations = 0

    def change_to(self, members: NDArray[np.int64]) -> None:
        """Make ``members`` (increasing) the set."""
        if np.array_equal(members, self.members):
            return
        kept = np.isin(members, self.members, assume_unique=True)
        old = np.searchsorted(self.members, members[kept])
        matrix = np.empty((len(members), len(members)), self._kernel.dtype)
        matrix[np.ix_(kept, kept)] = self.matrix[np.ix_(old, old)]
        if not kept.all():
            fresh = self._kernel.with_columns(members).block(members[~kept])
            self.n_evaluations += fresh.size
            matrix[~kept] = fresh
            matrix[:, ~kept] = fresh.T
        self.members, self.matrix = members, matrix
