"""Waiting for threads, and Ctrl-C meanwhile."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def result_of(future: Future[T]) -> T:
    """What comes of a future; Ctrl-C while it is awaited comes out as it is.

    Where it comes between letting go of a lock and waiting, `threading` says that nobody has that
    lock.
    """
    try:
        return future.result()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise
