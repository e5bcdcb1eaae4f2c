"""How far a run has come: the gap on its way to the tolerance, on a log scale.

Passes are no measure of progress, since nobody knows how many it takes. The gap falls about
geometrically, so the part of the way on the log scale that is done is one.
"""

from __future__ import annotations

import math

from polymargin.solvers.progress import Record


class Watch:
    """Records a run, pass by pass: a listener of solvers. `step` is what is counted, as "pass"."""

    def __init__(self, step: str = "pass") -> None:
        self.certified = math.nan
        self.tol = 0.0
        self.n_iter = 0
        self._step = step
        self._times: list[float] = []  # at the end of each pass,
        self._gaps: list[float] = []  # and the smallest gap so far; infinite while unknown
        self._first = math.inf  # the first that was finite

    def __call__(self, record: Record) -> None:
        """Take the record of a pass."""
        gap = record["gap"]
        if self._gaps and not gap < self._gaps[-1]:
            gap = self._gaps[-1]
        elif not gap < math.inf:
            gap = math.inf
        if gap < math.inf == self._first:
            self._first = max(gap, 1.0)
        self.tol, self.n_iter = record["tol"], record["pass"]
        self.certified = record["certified_gap"]
        self._times.append(record["time"])
        self._gaps.append(gap)

    @property
    def gap(self) -> float:
        """The smallest so far, estimated or certified; NaN while unknown."""
        known = self._gaps and self._gaps[-1] < math.inf
        return self._gaps[-1] if known else math.nan

    def _part_done(self, gap: float) -> float:
        if not 0 < gap < math.inf or self.tol <= 0:
            return 0.0
        way = math.log(self._first / self.tol)
        return min(1.0, max(0.0, math.log(self._first / gap) / way)) if way > 0 else 1.0

    @property
    def done(self) -> float:
        """Part of the way to the tolerance, 0 to 1; 1 only when the gap is certified."""
        reached = math.isfinite(self.certified) and self.certified <= self.tol
        return 1.0 if reached else min(self._part_done(self.gap), 0.99)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the speed of the second half of the run; None if there is none."""
        last = len(self._gaps) - 1  # another thread may be adding to them
        if last < 3 or self.done >= 1.0:
            return None
        half = (last + 1) // 2
        now = self._part_done(self._gaps[last])
        gained = now - self._part_done(self._gaps[half])
        spent = self._times[last] - self._times[half]
        return spent * (1.0 - now) / gained if gained > 0 else None

    def describe(self) -> str:
        """The state in a few words."""
        if self.n_iter == 0:
            return f"first {self._step}"
        certified = math.isfinite(self.certified)
        gap = self.certified if certified else self.gap
        kind = "certified" if certified else "estimated"
        left = self.seconds_left
        tail = "" if left is None else f", about {duration(left)} left"
        return f"{self._step} {self.n_iter}, gap {gap:.1e} ({kind}) → {self.tol:g}{tail}"


def duration(seconds: float) -> str:
    """Seconds to come, in words; never none at all."""
    if seconds < 1:
        return "1 s"
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
