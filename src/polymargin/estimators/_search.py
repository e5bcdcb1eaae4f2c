"""The search for C: folds advance together along an ascending grid, in threads.

Every fold is an iterator that trains and scores its model for the next C whenever it is asked. They
share X; the examples a fold holds out have cost zero in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin.solvers import Status

ONE_CLEARLY_WORSE = 3.0  # standard errors below the best: one value of C is enough to stop
TWO_WORSE = 1.0  # the last two values of C are


class FoldStep(NamedTuple):
    """What a fold found at one C."""

    score: float
    gap: float
    n_iter: int
    status: Status


Report = Callable[[int, int, FoldStep], bool]


class Folds(Protocol):
    """What is searched: folds that can be stopped from another thread."""

    def __len__(self) -> int: ...

    def path(self, fold: int) -> Iterator[FoldStep]:
        """One fold: yields once per C, ascending."""

    def stop(self) -> None:
        """Make every fold end at its next pass."""


def search(
    folds: Folds, n_values: int, *, n_threads: int, early_stopping: bool, report: Report
) -> list[list[FoldStep]]:
    """Walk every fold up the grid.

    Parameters
    ----------
    folds : Folds
    n_values : int
        Length of the grid.
    n_threads : int
        Folds at a time.
    early_stopping : bool
        Stop for all folds when the score has peaked; all are then kept in memory at once.
    report : callable
        ``report(fold, position of C, step)`` from the calling thread; True ends the search.

    Returns
    -------
    list of list of FoldStep
        Per fold, for the values of C that were tried.
    """
    found: list[list[FoldStep]] = [[] for _ in range(len(folds))]
    together = len(folds) if early_stopping else n_threads
    with ThreadPoolExecutor(n_threads) as threads:
        for first in range(0, len(folds), together):
            group = range(first, min(first + together, len(folds)))
            paths = [folds.path(fold) for fold in group]
            for position in range(n_values):
                if n_threads == 1:  # in the calling thread, which sees Ctrl-C
                    steps = [next(path) for path in paths]
                else:
                    steps = _advance(paths, threads, folds)
                ended = False
                for fold, step in zip(group, steps, strict=True):
                    found[fold].append(step)
                    ended |= report(fold, position, step)
                scores = np.array([[step.score for step in found[fold]] for fold in group])
                if ended or (early_stopping and has_peaked(scores)):
                    n_values = position + 1
                    break
    return [steps[:n_values] for steps in found]


def _advance(
    paths: list[Iterator[FoldStep]], threads: ThreadPoolExecutor, folds: Folds
) -> list[FoldStep]:
    """The next step of every path, in threads."""
    futures = [threads.submit(next, path) for path in paths]
    try:
        return [future.result() for future in futures]
    except BaseException:
        folds.stop()
        for future in futures:
            future.cancel()
        raise


def has_peaked(scores: NDArray[np.float64]) -> bool:
    """Whether going on is no use: the last values of C are clearly worse than an earlier one.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_values)
        For the values of C tried so far, ascending.

    Returns
    -------
    bool
        True where the last C is worse than the best by three standard errors of the difference
        within folds, or the last two by one each. A single fold has no error, and never peaks.
    """
    n_folds = len(scores)
    best = int(scores.mean(axis=0).argmax())
    worse = scores[:, [best]] - scores[:, best + 1 :]
    if n_folds < 2 or worse.shape[1] == 0:
        return False
    mean = worse.mean(axis=0)
    error = worse.std(axis=0, ddof=1) / np.sqrt(n_folds)
    if mean[-1] > ONE_CLEARLY_WORSE * error[-1]:
        return True
    return len(mean) >= 2 and bool((mean[-2:] > TWO_WORSE * error[-2:]).all())
