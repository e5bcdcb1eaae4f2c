"""Ctrl-C at any instruction: by tracing, not by luck.

A trace function counts the instructions that the interpreter executes. At the chosen one it leaves
the rest to a function of the interpreter itself, which notes that a signal has come and executes no
instruction: the signal is then handled wherever the interpreter really looks for signals next, and
nowhere else.
"""

from __future__ import annotations

import ctypes
import gc
import random
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from opcode import opname
from types import FrameType
from typing import Any

_objects = (ctypes.py_object,) * 3  # that a trace function gets; they are left alone
note_a_signal = ctypes.PYFUNCTYPE(None, *_objects)(("PyErr_SetInterrupt", ctypes.pythonapi))


class CtrlC:
    """Ctrl-C after the ``at``-th instruction of a call; with ``at=0``, never."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0  # instructions
        self.came = False
        self.in_vain = ""  # where it came, if nobody could be told

    def during(self, call: Callable[[], Any]) -> bool:
        """Make the call; whether KeyboardInterrupt came out."""
        handler = signal.signal(signal.SIGINT, self._handle)
        hook, sys.unraisablehook = sys.unraisablehook, self._note_in_vain
        collects = gc.isenabled()
        gc.disable()  # what it finds, and when, would not be the same every time
        try:
            sys.settrace(self._enter)
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
            sys.unraisablehook = hook
            signal.signal(signal.SIGINT, handler)
            if collects:
                gc.enable()
        return False

    def _enter(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode":
            self.seen += 1
            if self.seen == self.at:
                return note_a_signal
        return self._step

    def _handle(self, number: int, frame: FrameType | None) -> None:
        sys.settrace(None)
        self.came = True
        raise KeyboardInterrupt

    def _note_in_vain(self, lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            self.in_vain = repr(lost.object)


def _looks_for_signals(instruction: str) -> bool:
    return instruction.startswith(("CALL", "JUMP_BACKWARD", "RESUME"))


class _Points(CtrlC):
    """The instructions of a call after which the interpreter looks for signals next.

    At those between two of them Ctrl-C would have the same effect as at the last one.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.found: set[int] = set()
        self._last: dict[FrameType, tuple[int, int]] = {}  # the last two of every frame

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "return":
            self._last.pop(frame, None)
        if event != "opcode":
            return self._step
        self.seen += 1
        _, before = self._last.get(frame, (0, 0))
        self._last[frame] = before, self.seen
        instruction = opname[frame.f_code.co_code[frame.f_lasti]]
        if not _looks_for_signals(instruction):
            return self._step
        caller = frame.f_back
        if instruction == "RESUME" and caller in self._last:  # by a call, an operator, a loop
            before = self._last[caller][0]
        if before:
            self.found.add(before)
        return self._step


def points(call: Callable[[], Any]) -> tuple[int, list[int]]:
    """How many instructions a call has, and where Ctrl-C makes a difference."""
    looking = _Points()
    looking.during(call)
    return looking.seen, sorted(looking.found)


def spread(found: list[int], most: int, seed: int = 0) -> Iterator[int]:
    """All of them, or so many: one at random of every part."""
    if len(found) <= most:
        yield from found
        return
    rng = random.Random(seed)
    edges = [len(found) * i // most for i in range(most + 1)]
    for first, last in pairwise(edges):
        yield found[rng.randrange(first, last)]
