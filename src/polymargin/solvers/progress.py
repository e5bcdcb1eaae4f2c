"""Reports of a solver's progress, and who listens to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypedDict

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
        Called with a :class:`Record` after every pass. An exception it raises ends the solver.
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def to_all_listeners(progress: Progress | None) -> Progress | None:
    """A function that reports to `progress` and to all who watch; None where nobody does."""
    listeners = _listeners.get() if progress is None else (*_listeners.get(), progress)
    if len(listeners) <= 1:
        return listeners[0] if listeners else None

    def report(record: Record) -> None:
        for listener in listeners:
            listener(record)

    return report
