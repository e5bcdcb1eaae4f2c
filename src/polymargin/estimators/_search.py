"""The search for C: the grid, the scorer, and folds that advance along the grid in threads.

Every fold is an iterator that trains and scores its model for the next C whenever it is asked. They
share X; the examples a fold holds out have cost zero in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import get_scorer, make_scorer, top_k_accuracy_score

from polymargin.arrays import Doubles
from polymargin.costs import Costs, mean_cost
from polymargin.problem import Examples
from polymargin.solvers import Status
from polymargin.storage import Array
from polymargin.waiting import result_of

WEAKEST, STRONGEST = 1e-2, 1e2  # C times the mean squared length of a row
ONE_CLEARLY_WORSE = 3.0  # standard errors below the best: one value of C is enough to stop
TWO_WORSE = 1.0  # the last two values of C are
COST = "neg_mean_cost"
_TOP_K = re.compile(r"top_(\d+)_accuracy")

Scorer = Callable[..., float]


def grid_of(Cs: int | ArrayLike, problem: Examples) -> Doubles:
    """The values of C in the order given; a number of them is spread to where the data tell.

    What regularises is ``C ||x||^2``, so the values reach from 0.01 to 100 divided by the mean
    squared length of the examples (with a kernel: the mean ``k(x, x)``), evenly in their logarithm.
    The problem is that of C = 1.
    """
    if not isinstance(Cs, Integral) or isinstance(Cs, bool):
        grid = _checked_values(Cs)
    elif (n := int(Cs)) < 1:
        raise ValueError(f"Cs must be at least 1 when it is a number of values, got {n}.")
    else:
        scale = float(problem.squared_lengths[problem.c > 0].mean())
        spread = np.geomspace(WEAKEST, STRONGEST, n) if n > 1 else np.ones(1)
        grid = spread / scale if scale > 0 else spread
    if not np.isfinite(float(grid.max()) * float(problem.c.max())):
        raise ValueError("C * sample_weight * class_weight overflows: use smaller ones.")
    return grid


def _checked_values(Cs: ArrayLike) -> Doubles:
    try:
        grid = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Cs must be positive numbers, or how many of them, got {Cs!r}."
        ) from error
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            "Cs must be a non-empty list of values of C, or how many of them, got "
            f"{'an empty one' if grid.size == 0 else f'{grid.ndim} dimension(s)'}."
        )
    wrong = grid[~(np.isfinite(grid) & (grid > 0))]
    if wrong.size:
        raise ValueError(f"Every C must be positive and finite, but Cs has {wrong.tolist()}.")
    values, counts = np.unique(grid, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"Cs has duplicates: {values[counts > 1].tolist()}; give each C once.")
    return grid


def resolve_scorer(
    scoring: str | Scorer | None,
    classes: Array | None = None,
    cost_matrix: Costs | None = None,
) -> Scorer:
    """The scorer called `scoring`, ``"top_5_accuracy"`` and ``"neg_mean_cost"`` among them.

    None is accuracy, with costs the negative mean cost. `classes` are the labels, for the top-k
    accuracy of examples that lack some, and for the costs.
    """
    if scoring is None and cost_matrix is not None:
        scoring = COST
    if isinstance(scoring, str) and scoring == COST:
        if cost_matrix is None:
            raise ValueError(f"scoring={COST!r} needs costs: give a cost_matrix.")
        cheap: Scorer = make_scorer(
            mean_cost, greater_is_better=False, cost_matrix=cost_matrix, classes=classes
        )
        return cheap
    named = _TOP_K.fullmatch(scoring) if isinstance(scoring, str) else None
    if named is None:
        scorer: Scorer = get_scorer("accuracy" if scoring is None else scoring)
        return scorer
    k = int(named[1])
    if k < 1 or (classes is not None and k >= len(classes)):
        most = "" if classes is None else f" and at most n_classes - 1 = {len(classes) - 1}"
        raise ValueError(f"scoring={scoring!r}: k must be at least 1{most}.")
    top_k: Scorer = make_scorer(
        top_k_accuracy_score, response_method="decision_function", k=k, labels=classes
    )
    return top_k


class FoldStep(NamedTuple):
    """What a fold found at one C."""

    score: float
    gap: float
    n_iter: int
    status: Status


class Folds(Protocol):
    """What is searched: folds that can be stopped from another thread."""

    def __len__(self) -> int: ...

    def path(self, fold: int) -> Iterator[FoldStep]:
        """One fold: yields once per C, ascending."""

    def stop(self) -> None:
        """Make every fold end at its next pass."""


def search(
    folds: Folds,
    n_values: int,
    *,
    n_threads: int,
    early_stopping: bool,
    report: Callable[[int, int, FoldStep], bool],
) -> list[list[FoldStep]]:
    """Walk every fold up a grid of `n_values`; gives the steps of each fold.

    With `early_stopping`, the walk ends for all folds when the score has peaked; all are then kept
    in memory at once, else `n_threads` of them. ``report(fold, position of C, step)`` is called
    from the calling thread, and True ends the search.
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
        return [result_of(future) for future in futures]
    except BaseException:
        folds.stop()
        for future in futures:
            future.cancel()
        raise


def has_peaked(scores: Doubles) -> bool:
    """Whether going on is no use, after scores of shape (n_folds, n_values of C tried).

    True where the last C is worse than the best by three standard errors of the difference within
    folds, or the last two by one each. A single fold has no error, and never peaks.
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
