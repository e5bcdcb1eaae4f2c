"""Ctrl-C at any instruction: by tracing, not by luck.

A trace function counts the instructions that the interpreter executes. At the chosen one it leaves
the rest to a function of the interpreter itself, which notes that a signal has come and executes no
instruction: the signal is then handled wherever the interpreter really looks for signals next, and
nowhere else.

A call need not be made anew for every instruction: where the process has one thread, a copy of it
(`fork`) is interrupted and says what came of it, and the call goes on (`Branches`).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import select
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from opcode import opname
from pathlib import Path
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


HANGS = 300.0  # seconds after which a copy of the process counts as one that hangs


class Branches(CtrlC):
    """Ctrl-C at many instructions of one call, each in a copy of the process.

    Files of `folder` are put back once a copy has ended; where one is open, a copy of the process
    goes on with a copy of the file. Where there are threads, which copies would not have, or where
    a folder is open, there is none: `left` has these instructions.
    """

    def __init__(self, chosen: list[int], folder: Path) -> None:
        super().__init__(0)
        self.chosen, self.folder = {*chosen}, folder
        self.said: dict[int, str] = {}  # by copies, of what is not as it should be
        self.left: list[int] = []
        self.answer: int | None = None  # where a copy says what came of it

    @staticmethod
    def can_be() -> bool:
        """Whether this system can copy a process, and tell what it has open."""
        return hasattr(os, "fork") and Path("/proc/self/task").is_dir()

    def say(self, what: str | None) -> None:
        """End this copy."""
        assert self.answer is not None
        os.write(self.answer, (what or "").encode())
        os._exit(0)

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode":
            self.seen += 1
            if self.seen in self.chosen and self._copied():
                self.at = self.seen
                return note_a_signal
        return self._step

    def _copied(self) -> bool:
        """Make a copy and hear what it says; true in the copy."""
        files = self._open_files()
        if _n_threads() > 1 or any(not Path(path).is_file() for path in files.values()):
            self.left.append(self.seen)
            return False
        spare = self.folder.with_name("spare")
        shutil.copytree(self.folder, spare, copy_function=os.link)  # the same files
        hear, answer = os.pipe()
        pid = os.fork()
        if pid == 0:
            for number, path in files.items():
                _go_on_with_a_copy(number, path)
            self.chosen, self.answer = set(), answer
            return True
        os.close(answer)
        self._hear(pid, hear)
        if _state(self.folder) == _state(spare):
            shutil.rmtree(spare)
        else:
            shutil.rmtree(self.folder)
            spare.rename(self.folder)
        return False

    def _hear(self, pid: int, hear: int) -> None:
        said = b""
        while select.select([hear], [], [], HANGS)[0]:
            part = os.read(hear, 65536)
            if not part:
                break
            said += part
        else:
            os.kill(pid, signal.SIGKILL)
            said = b"it hangs"
        os.close(hear)
        _, status = os.waitpid(pid, 0)
        if status and not said:
            said = f"the process ended with {status}".encode()
        if said:
            self.said[self.seen] = said.decode()

    def _open_files(self) -> dict[int, str]:
        """Numbers and paths of the files in the folder that are open.

        Found by what they are: the system's path of a file that was put back is the one before.
        """
        found, known = {}, {path.stat().st_ino: str(path) for path in self.folder.rglob("*")}
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # that of the listing itself
                path = os.readlink(f"/proc/self/fd/{number}")
                if path.startswith(f"{self.folder.parent}/"):
                    found[int(number)] = known.get(os.stat(int(number)).st_ino, path)
        return found


def _go_on_with_a_copy(number: int, path: str) -> None:
    """Let an open file be a copy of its own, at the same place; mapped memory stays as it is."""
    flags = int(Path(f"/proc/self/fdinfo/{number}").read_text().split("flags:")[1].split()[0], 8)
    place = os.lseek(number, 0, os.SEEK_CUR)
    shutil.copy2(path, f"{path}.copy")
    other = os.open(f"{path}.copy", flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC))
    os.lseek(other, place, os.SEEK_SET)
    os.dup2(other, number, inheritable=False)
    os.close(other)
    os.replace(f"{path}.copy", path)


def _n_threads() -> int:
    """Those that a copy would lack; an allocator (of pyarrow) knows how to do without its own."""
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum(not name.startswith("jemalloc") for name in names)


def _state(folder: Path) -> list[tuple[str, int, int, int]]:
    """What there is in a folder: names, files, sizes and times of change."""
    found = []
    for path in sorted(folder.rglob("*")):
        one, name = path.stat(), str(path.relative_to(folder))
        of_file = one.st_ino, one.st_size, one.st_mtime_ns
        found.append((name, *((0, 0, 0) if path.is_dir() else of_file)))
    return found


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
    if len(found) <= most or most == 0:
        yield from found[:most]
        return
    rng = random.Random(seed)
    edges = [len(found) * i // most for i in range(most + 1)]
    for first, last in pairwise(edges):
        yield found[rng.randrange(first, last)]
