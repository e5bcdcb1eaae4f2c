"""What a solver notes with every certificate, and the line it prints when asked to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polymargin.arrays import Floats
from polymargin.solvers.certificate import Certificate


class History:
    """Columns of figures, by name.

    Parameters
    ----------
    step : str
        What is counted: "pass", "set" or "epoch".
    verbose : int
        Whether to print every row.
    """

    NAMES = ("pass", "time", "primal", "dual", "gap", "n_awake")

    def __init__(self, step: str, verbose: int) -> None:
        self._step = step
        self._verbose = verbose
        self._columns: dict[str, list[float]] = {name: [] for name in self.NAMES}

    def add(self, n_iter: int, elapsed: float, found: Certificate, n_awake: int) -> None:
        """Note a row."""
        primal, dual, gap = found.primal, found.dual, found.gap
        row = (n_iter, elapsed, primal, dual, gap, n_awake)
        for name, value in zip(self.NAMES, row, strict=True):
            self._columns[name].append(value)
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
        return {name: np.asarray(values) for name, values in self._columns.items()}

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Go on after what `arrays` gave."""
        self._columns = {name: arrays[name].tolist() for name in self.NAMES}
