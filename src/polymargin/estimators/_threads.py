"""One object and several threads, or Ctrl-C at any moment: what others see is whole.

Who trains an object waits for whoever else trains it (`alone`). It works on a copy of the object's
attributes (`still`), which take the place of the object's own in one step (`publish`). Who
predicts, copies or pickles looks at the attributes of one moment (`at_one_moment`).
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn import get_config, set_config

from polymargin.arrays import Attributes
from polymargin.estimators.compat import OF_A_RUNNING_FIT

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self")

# by object; neither pickled nor copied with it. Entries go, in one step, when their object does.
_locks: dict[weakref.ref[Any], threading.RLock] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)  # nobody will let go of them there


def lock_of(thing: object) -> threading.RLock:
    """The lock of whoever changes a thing."""
    # a `with` statement of a lock of threading has no gap that Ctrl-C could come into
    return _locks.setdefault(weakref.ref(thing, _locks.pop), threading.RLock())


def alone(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """A method that one thread at a time calls of an object; the others wait.

    Ctrl-C that comes as scikit-learn changes its settings for a moment would leave them changed,
    and parameters unchecked from then on.
    """

    @functools.wraps(method)
    def one_at_a_time(self: Self, *args: P.args, **kwargs: P.kwargs) -> R:
        settings = get_config()
        with lock_of(self):
            try:
                return method(self, *args, **kwargs)
            except KeyboardInterrupt:
                set_config(**settings)
                raise

    return one_at_a_time


def at_one_moment(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """A method that only looks at its object, and sees it as it is when the call begins."""

    @functools.wraps(method)
    def looking(self: Self, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(still(self), *args, **kwargs)

    return looking


def still(thing: Self) -> Self:
    """A shallow copy, which nobody else changes."""
    made = object.__new__(type(thing))
    made.__dict__ = attributes_of(thing)
    return made


def attributes_of(thing: object) -> Attributes:
    """The attributes at one moment, without those of a fit that is running."""
    found = dict(vars(thing))  # one step
    for name in OF_A_RUNNING_FIT:
        found.pop(name, None)
    return found


def publish(thing: object, work: object, before: Mapping[str, Any]) -> None:
    """Give a thing, in one step, what became of its attributes `before` in a copy of it."""
    after, nothing = vars(work), object()
    now = {
        name: one for name, one in vars(thing).copy().items() if name in after or name not in before
    }
    now |= {name: one for name, one in after.items() if before.get(name, nothing) is not one}
    thing.__dict__ = now


class SeenAtOnce:
    """An object whose copies and pickles are of one moment."""

    def __getstate__(self) -> Attributes:
        return attributes_of(self)
