"""What is told of a run: records for those who listen, and the rows of its history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypedDict

import numpy as np

from polymargin.arrays import Floats
from polymargin.solvers.certificate import Certificate

Record = TypedDict(
    "Record",
    {
        "pass": int,
        "time": float,  # seconds since the start
        "gap": float,  # relative, estimated or certified
        "certified_gap": float,  # of the best model so far; NaN before the first certificate
        "n_awake": int,  # examples visited
        "tol": float,
    },
)
Progress = Callable[[Record], None]

_listeners: ContextVar[tuple[Progress, ...]] = ContextVar("listeners", default=())


@contextmanager
def watching(listener: Progress) -> Iterator[None]:
    """Let every solver that is called in the ``with`` block, by whomever, report to `listener`.

    Parameters
    ----------
    listener : callable
        Called with a record, a dictionary, after every pass. An exception it raises ends the
        solver.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.solvers import watching
    >>> X, y = load_iris(return_X_y=True)
    >>> passes = []
    >>> with watching(lambda record: passes.append(record["pass"])):
    ...     _ = LinearMulticlassSVC(random_state=0).fit(X, y)
    >>> len(passes) > 0
    True
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def listeners(progress: Progress | None) -> tuple[Progress, ...]:
    """All who watch, and `progress`."""
    return _listeners.get() if progress is None else (*_listeners.get(), progress)


NOT_PROVED = (math.nan,) * 3


class History:
    """Columns of figures by name, a row per pass; `step` is what is counted, as "pass".

    What is proved is NaN where a pass was not certified, what a pass estimates where it does not.
    """

    NAMES = (
        "pass",
        "time",
        "primal",
        "dual",
        "gap",
        "estimated_primal",
        "estimated_dual",
        "estimated_gap",
        "n_awake",
    )

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add_pass(self, n_iter: int, elapsed: float, gap: float, dual: float, n_awake: int) -> None:
        """Note a pass, and the relative gap and the dual objective that it estimates."""
        primal = dual / (1.0 - gap) if gap < 1.0 else math.nan
        gap = gap if gap < math.inf else math.nan
        self._rows.append((n_iter, elapsed, *NOT_PROVED, primal, dual, gap, n_awake))

    def add_certificate(self, n_iter: int, elapsed: float, found: Certificate) -> None:
        """Note what was proved, in the row of its pass where that has no certificate yet."""
        if not self._rows or self._rows[-1][0] != n_iter or math.isfinite(self._rows[-1][4]):
            self.add_pass(n_iter, elapsed, math.nan, math.nan, 0)
        estimates = self._rows[-1][5:]
        self._rows[-1] = (n_iter, elapsed, found.primal, found.dual, found.gap, *estimates)

    def arrays(self) -> dict[str, Floats]:
        """The columns as arrays."""
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in self.NAMES)
        return {name: np.asarray(one) for name, one in zip(self.NAMES, columns, strict=True)}

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Go on after what `arrays` gave."""
        given = [np.asarray(arrays[name]) for name in self.NAMES]
        if any(one.dtype.kind not in "if" or one.shape != given[0].shape for one in given):
            raise ValueError("the columns of the history differ")
        self._rows = list(zip(*(one.ravel().tolist() for one in given), strict=True))
