"""What is told of a run: records for those who listen, and the rows of its history."""

from __future__ import annotations

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


class History:
    """Columns of figures by name, a row per certificate; `step` is what is counted, as "pass"."""

    NAMES = ("pass", "time", "primal", "dual", "gap", "n_awake")

    def __init__(self, step: str, verbose: int) -> None:
        self._step = step
        self._verbose = verbose
        self._rows: list[tuple[float, ...]] = []

    def add(self, n_iter: int, elapsed: float, found: Certificate, n_awake: int) -> None:
        """Note a row."""
        primal, dual, gap = found.primal, found.dual, found.gap
        self._rows.append((n_iter, elapsed, primal, dual, gap, n_awake))
        if self._verbose:
            print(
                f"{self._step} {n_iter:5d}  primal {primal:.8g}  dual {dual:.8g}  "
                f"gap {gap:.2e}  awake {n_awake}  time {elapsed:.2f} s",
                flush=True,
            )

    def say(self, n_iter: int, note: str) -> None:
        """Print a note, if there is one and lines are wanted."""
        if self._verbose and note:
            print(f"{self._step} {n_iter:5d}  {note}", flush=True)

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
