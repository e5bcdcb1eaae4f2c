"""Curves from the results: distance to the optimum, certified gap and accuracy against time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.solvers_bench.tables import Series, seconds

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
    figure = Figure(figsize=(3.4 * (len(compared) + 2) + 2.4, 3.4), layout="constrained")
    panels = figure.subplots(1, len(compared) + 2)
    labels = [_label(one) for one in series]
    for panel, name in zip(panels, compared, strict=False):
        chosen = [s for s in series if s["objective"] == name]
        _curves(panel, chosen, labels, "suboptimality", f"{name}: above the optimum")
    ours = [s for s in series if s["ours"]]
    _curves(panels[-2], ours, labels, "gap", "polymargin: certified gap")
    _curves(panels[-1], series, labels, "accuracy", "test accuracy", log=False)
    handles = {line.get_label(): line for panel in panels for line in panel.lines}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=6)
    figure.suptitle(f"{data}, C = {C:g}")
    return figure


def _label(series: Series) -> str:
    return f"{series['solver']} ({series['objective']})"


def _curves(
    panel: Axes,
    series: list[Series],
    labels: list[str],
    quantity: str,
    title: str,
    log: bool = True,
) -> None:
    """One line per solver, a point per run; the same look in every panel."""
    for one in series:
        points = [(seconds(one, c), c[quantity]) for c in one["cells"] if c.get(quantity)]
        number = labels.index(_label(one))
        if points:
            panel.plot(
                *zip(*sorted(points), strict=True),
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                color=f"C{number % 10}",
                linewidth=2.0 if one["ours"] else 1.0,
                linestyle="-" if one["ours"] else "--",
                label=_label(one),
            )
    panel.set_xscale("log")
    if log:
        panel.set_yscale("log")
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("seconds")
    panel.grid(alpha=0.3)


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
