"""Curves from the results: distance to the optimum, certified gap and accuracy against time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.solvers_bench.tables import OURS, Series, seconds

MARKERS = "os^vD<>PX*hp"


def draw(content: dict[str, Any], data: str, C: float) -> Figure | None:
    """Draw one data set and C: a panel per quantity, None where nothing was measured.

    Parameters
    ----------
    content : dict
        A result file.
    data, C
        Which problem; all its objectives are in the panel of the accuracy.

    Returns
    -------
    Figure or None
        Three or four panels.
    """
    series = [s for s in content["series"] if s["data"] == data and s["C"] == C and s["cells"]]
    series = [s for s in series if s["threads"] == 1]
    compared = [
        name
        for name in ("crammer_singer", "one_vs_rest")
        if any(s["objective"] == name for s in series)
    ]
    if not compared:
        return None
    figure = Figure(figsize=(4.0 * (len(compared) + 2), 3.6), layout="constrained")
    panels = figure.subplots(1, len(compared) + 2)
    for panel, name in zip(panels, compared, strict=False):
        chosen = [s for s in series if s["objective"] == name]
        _curves(panel, chosen, "suboptimality", f"{name}: above the optimum")
    _gaps(panels[-2], series)
    _curves(panels[-1], series, "accuracy", "test accuracy", log=False)
    figure.suptitle(f"{data}, C = {C:g}")
    return figure


def _curves(panel: Axes, series: list[Series], quantity: str, title: str, log: bool = True) -> None:
    """One line per solver, a point per setting."""
    for number, one in enumerate(series):
        points = [(seconds(one, c), c[quantity]) for c in one["cells"] if c.get(quantity)]
        if points:
            label = one["solver"] if log else f"{one['solver']} ({one['objective']})"
            style = {"linewidth": 2.0} if one["ours"] else {"linewidth": 1.0, "linestyle": "--"}
            marker = MARKERS[number % len(MARKERS)]
            panel.plot(*zip(*sorted(points), strict=True), marker, ls="-", ms=4, label=label)
            panel.lines[-1].set(**style)
    _finish(panel, title, log)


def _gaps(panel: Axes, series: list[Series]) -> None:
    """The certified gap along polymargin's tightest run, by objective."""
    for one in series:
        runs = [cell for cell in one["cells"] if cell.get("history")]
        if one["solver"] == OURS and runs:
            history = runs[-1]["history"]
            panel.plot(history["time"], history["gap"], ".-", label=one["objective"])
    _finish(panel, "polymargin: certified gap", log=True)


def _finish(panel: Axes, title: str, log: bool) -> None:
    panel.set_xscale("log")
    if log:
        panel.set_yscale("log")
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("seconds")
    panel.grid(alpha=0.3)
    if panel.lines:
        panel.legend(fontsize=5.5)


def save(content: dict[str, Any], folder: Path, problems: list[tuple[str, float]]) -> list[Path]:
    """Draw the problems that were measured into ``solvers_DATA_C.png``."""
    paths = []
    for data, C in problems:
        figure = draw(content, data, C)
        if figure is not None:
            path = folder / f"solvers_{data}_C{C:g}.png"
            figure.savefig(path, dpi=70)
            paths.append(path)
    return paths
