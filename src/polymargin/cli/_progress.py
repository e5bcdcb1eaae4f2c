"""The progress bar of a training: the gap on its way to the tolerance, on a log scale.

Passes are no measure of progress, since nobody knows how many it takes. The gap falls about
geometrically, so the part of the way on the log scale that is done is one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from polymargin.cli._output import colours
from polymargin.solvers.progress import Progress, Record


class Watch:
    """Records a training, pass by pass; it listens to ``polymargin.solvers.watching``."""

    def __init__(self) -> None:
        # of every pass, the gap estimated or certified
        self.trace: dict[str, list[float]] = {"pass": [], "time": [], "gap": []}
        self.gap = self.certified = float("nan")  # the smallest so far
        self.tol = 0.0
        self._done: list[float] = []  # part of the way at the end of each pass
        self._first: float | None = None

    def __call__(self, record: Record) -> None:
        """Take the record of a pass."""
        gap, self.tol = float(record["gap"]), float(record["tol"])
        if math.isfinite(gap):
            self.gap = min(self.gap, gap) if math.isfinite(self.gap) else gap
        self.certified = float(record["certified_gap"])
        self.trace["pass"].append(record["pass"])
        self.trace["time"].append(record["time"])
        self.trace["gap"].append(gap)
        self._done.append(self._part_done())

    def _part_done(self) -> float:
        if not math.isfinite(self.gap) or self.gap <= 0 or self.tol <= 0:
            return 0.0
        if self._first is None:
            self._first = max(self.gap, 1.0)
        way = math.log(self._first / self.tol)
        return min(1.0, max(0.0, math.log(self._first / self.gap) / way)) if way > 0 else 1.0

    @property
    def done(self) -> float:
        """Part of the way to the tolerance, 0 to 1; 1 only when the gap is certified."""
        part = self._done[-1] if self._done else 0.0
        reached = math.isfinite(self.certified) and self.certified <= self.tol
        return 1.0 if reached else min(part, 0.99)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the speed of the second half of the training; None if there is none."""
        if len(self._done) < 4 or self.done >= 1.0:
            return None
        half = len(self._done) // 2
        gained = self._done[-1] - self._done[half]
        spent = self.trace["time"][-1] - self.trace["time"][half]
        return spent * (1.0 - self._done[-1]) / gained if gained > 0 else None

    def describe(self) -> str:
        """The state in a few words."""
        if not self.trace["pass"]:
            return "first pass"
        certified = math.isfinite(self.certified)
        gap = self.certified if certified else self.gap
        kind = "certified" if certified else "estimated"
        left = self.seconds_left
        tail = "" if left is None else f", about {_duration(left)} left"
        return f"pass {int(self.trace['pass'][-1])}, gap {gap:.1e} ({kind}) → {self.tol:g}{tail}"


@contextmanager
def progress_bar(watch: Watch, shown: bool) -> Iterator[Progress]:
    """A listener that draws while the block runs, beside recording."""
    if not (shown and sys.stderr.isatty()):
        yield watch
        return
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True, no_color=not colours(sys.stderr))
    bar = rich.Progress(
        rich.SpinnerColumn(),
        rich.TextColumn("training", style="bold"),
        rich.BarColumn(bar_width=32),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("first pass", total=1.0)

        def see(record: Record) -> None:
            watch(record)
            bar.update(task, completed=watch.done, description=watch.describe())

        yield see


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "1 s"
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
