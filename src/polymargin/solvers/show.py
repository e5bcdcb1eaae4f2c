"""What a person sees of a run: a bar on a terminal or in a notebook, lines elsewhere.

A thread draws the bar, twice a second, from what the passes left in a `Watch`: a long pass does
not make it look dead, and a short one does not pay for it.
"""

from __future__ import annotations

import html
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from importlib import import_module
from typing import Protocol, TextIO

from polymargin.solvers.certificate import Certificate
from polymargin.solvers.progress import Record
from polymargin.solvers.watch import Watch

BETWEEN = 0.5  # seconds from one drawing to the next
WIDEST, NARROWEST = 32, 8  # columns of the bar itself
QUIET = 2.0  # seconds between two lines of estimates at least,
GROWTH = 1.25  # and what the time has grown by: a fit of hours has no thousands of lines
SPINNER, SPINNER_ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"

_one_bar = threading.Lock()  # of several fits at a time, one has it; the others print lines


class Canvas(Protocol):
    """Where a bar is drawn, again and again."""

    def draw(self, watch: Watch, seconds: float) -> None:
        """Show how far it is, so many seconds after it began."""

    def end(self, last: str) -> None:
        """Leave these words instead of the bar; none: nothing."""


class TerminalLine:
    """A line of a terminal, written over."""

    def __init__(self, stream: TextIO, title: str = "training") -> None:
        self._stream, self._title = stream, title
        self._colour = not os.environ.get("NO_COLOR")
        self._plain = not _can_write(stream, SPINNER + "━→")
        self._drawn = self._width = 0

    def draw(self, watch: Watch, seconds: float) -> None:
        """Write the line over."""
        columns = shutil.get_terminal_size().columns - 1  # the last one may break the line
        spinner = SPINNER_ASCII if self._plain else SPINNER
        head = f"{spinner[self._drawn % len(spinner)]} {self._title} "
        tail = f" {_clock(seconds)} {watch.describe()}"
        if self._plain:
            tail = tail.replace("→", "->")
        width = min(WIDEST, columns - len(head) - len(tail))
        bar = self._bar(watch.done, width) if width >= NARROWEST else ""
        if not bar:
            head, tail, width = "", (head + tail.lstrip())[:columns], 0
        length = len(head) + width + len(tail)
        self._write(f"\r{head}{bar}{tail}{' ' * (self._width - length)}")
        self._drawn, self._width = self._drawn + 1, length

    def _bar(self, part: float, width: int) -> str:
        filled = round(part * width)
        if self._plain or not self._colour:
            return ("#" if self._plain else "━") * filled + "." * (width - filled)
        return f"\x1b[35m{'━' * filled}\x1b[90m{'━' * (width - filled)}\x1b[0m"

    def end(self, last: str) -> None:
        """Wipe the line out."""
        self._write(f"\r{' ' * self._width}\r{last}" + ("\n" if last else ""))

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class NotebookCell:
    """A display of a notebook, which is updated."""

    def __init__(self) -> None:
        display = import_module("IPython.display").display
        self._handle = display(_Shown("", ""), display_id=True)

    def draw(self, watch: Watch, seconds: float) -> None:
        """Show another bar."""
        words = f"{_clock(seconds)} {watch.describe()}"
        bar = f'<progress value="{watch.done:.3f}" max="1" style="width: 20em"></progress>'
        self._handle.update(_Shown(words, f"{bar} <code>{html.escape(words)}</code>"))

    def end(self, last: str) -> None:
        """Leave the words."""
        self._handle.update(_Shown(last, f"<code>{html.escape(last)}</code>"))


class _Shown:
    """Words with a form for notebooks."""

    def __init__(self, words: str, markup: str) -> None:
        self._words, self._markup = words, markup

    def __repr__(self) -> str:
        return self._words

    def _repr_html_(self) -> str:
        return self._markup


class Teller:
    """Tells nobody anything; what tells somebody overrides some of this."""

    def after_pass(self, record: Record, note: str) -> None:
        """Tell of a pass."""

    def after_certificate(
        self, n_iter: int, elapsed: float, found: Certificate, n_awake: int
    ) -> None:
        """Tell what was proved."""


class Lines(Teller):
    """A line per certificate, and one of estimates now and then."""

    def __init__(self, step: str) -> None:
        self._step = step
        self._latest = 0.0  # when something was printed

    def after_pass(self, record: Record, note: str) -> None:
        """Print a note of the engine; or the estimate, if nothing was printed for long."""
        n_iter, elapsed, gap = record["pass"], record["time"], record["gap"]
        if note:
            self._print(n_iter, elapsed, note)
        elif math.isfinite(gap) and elapsed >= max(self._latest + QUIET, GROWTH * self._latest):
            self._print(n_iter, elapsed, f"gap {gap:.2e} (estimated)  time {elapsed:.2f} s")

    def after_certificate(
        self, n_iter: int, elapsed: float, found: Certificate, n_awake: int
    ) -> None:
        """Print the objectives."""
        self._print(
            n_iter,
            elapsed,
            f"primal {found.primal:.8g}  dual {found.dual:.8g}  gap {found.gap:.2e}  "
            f"awake {n_awake}  time {elapsed:.2f} s",
        )

    def _print(self, n_iter: int, elapsed: float, text: str) -> None:
        self._latest = elapsed
        print(f"{self._step} {n_iter:5d}  {text}", flush=True)


class _Bar(Teller):
    def __init__(self, step: str) -> None:
        self.step, self.watch, self._elapsed = step, Watch(step), 0.0

    def after_pass(self, record: Record, note: str) -> None:
        self.watch(record)
        self._elapsed = record["time"]

    def after_certificate(
        self, n_iter: int, elapsed: float, found: Certificate, n_awake: int
    ) -> None:
        self.watch.certified, self._elapsed = found.gap, elapsed

    @property
    def last_words(self) -> str:
        watch, time_taken = self.watch, f"{self._elapsed:.2f} s"
        if watch.n_iter == 0:
            return ""
        proved = math.isfinite(watch.certified)
        gap = watch.certified if proved else watch.gap
        kind = "certified" if proved else "estimated"
        known = f"gap {gap:.2e} ({kind})  " if math.isfinite(gap) else ""
        return f"{self.step} {watch.n_iter:5d}  {known}time {time_taken}"


@contextmanager
def telling(step: str, verbose: int) -> Iterator[Teller]:
    """Who tells of a run, by how much is wanted: 1 for a bar where one can be drawn, 2 for lines.

    Without a terminal or a notebook, and while another fit has the bar, 1 is for lines as well.
    """
    if verbose <= 0:
        yield Teller()
        return
    canvas = _canvas() if verbose == 1 else None
    if canvas is None:
        yield Lines(step)
        return
    teller = _Bar(step)
    with drawn(teller.watch, canvas, last_words=lambda: teller.last_words) as has_bar:
        yield teller if has_bar else Lines(step)


@contextmanager
def drawn(
    watch: Watch, canvas: Canvas, last_words: Callable[[], str] = lambda: ""
) -> Iterator[bool]:
    """Draw what is watched while the block runs, unless another bar is being drawn."""
    if not _one_bar.acquire(blocking=False):
        yield False
        return
    over, began = threading.Event(), time.monotonic()

    def draw() -> None:
        with suppress(OSError, ValueError):  # a stream that was closed
            canvas.draw(watch, time.monotonic() - began)

    def keep_drawing() -> None:
        while not over.wait(BETWEEN):
            draw()

    # a notebook knows by the context to which cell it belongs
    context = copy_context()
    thread = threading.Thread(target=context.run, args=(keep_drawing,), daemon=True)
    try:
        draw()
        thread.start()
        yield True
    finally:
        over.set()
        _one_bar.release()
        if thread.ident is not None:
            thread.join(timeout=2 * BETWEEN)  # a terminal that was stopped keeps it waiting
        with suppress(OSError, ValueError):
            canvas.end(last_words())


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a line of it can be written over."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _canvas() -> Canvas | None:
    if _in_notebook():
        return NotebookCell()
    return TerminalLine(sys.stderr) if is_terminal(sys.stderr) else None


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this; IPython is not imported to find out."""
    find_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return hasattr(find_shell() if find_shell else None, "kernel")


def _can_write(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
