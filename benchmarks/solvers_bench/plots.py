"""Curves from the results: distance to the optimum, certified gap and accuracy against time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.solvers_bench.objective import OBJECTIVES
from benchmarks.solvers_bench.tables import Series, seconds

COMPARED = ("crammer_singer", "one_vs_rest", "weston_watkins")  # a column each
OTHERS = ("squared_hinge", "logistic")  # the last column: accuracy only
QUANTITIES = {
    "suboptimality": "above the optimum",
    "gap": "certified gap",
    "accuracy": "test accuracy, %",
}
MARKERS = "os^vD<>PX*hp"
COLORS = [*matplotlib.color_sequences["tab10"], *matplotlib.color_sequences["Dark2"]]


def draw(content: dict[str, Any], data: str, C: float) -> Figure | None:
    """Draw one data set and C, None where nothing was measured.

    Parameters
    ----------
    content : dict
        A result file.
    data, C
        Which problem.

    Returns
    -------
    Figure or None
        A column per objective, a row per quantity; the legend above the last column.
    """
    series = [s for s in content["series"] if s["data"] == data and s["C"] == C and s["cells"]]
    series = [s for s in series if s["threads"] == 1]
    columns = [[s for s in series if s["objective"] == name] for name in COMPARED]
    columns = [column for column in columns if column]
    if not columns:
        return None
    others = [s for s in series if s["objective"] in OTHERS]
    labels = list(dict.fromkeys(s["solver"] for column in [*columns, others] for s in column))
    figure = Figure(figsize=(3.3 * (len(columns) + 1), 7.2), layout="constrained")
    panels = figure.subplots(len(QUANTITIES), len(columns) + 1, sharex="col", squeeze=False)
    for place, column in enumerate(columns):
        objective = OBJECTIVES[column[0]["objective"]]
        panels[0, place].set_title(objective.text.split(":")[0], fontsize=10)
        for panel, quantity in zip(panels[:, place], QUANTITIES, strict=True):
            _curves(panel, column, labels, quantity)
        panels[-1, place].set_xlabel("seconds")
    _curves(panels[-1, -1], others, labels, "accuracy")
    panels[-1, -1].set_title("other losses", fontsize=10)
    panels[-1, -1].set_xlabel("seconds")
    for panel in panels[:-1, -1]:
        panel.set_axis_off()
    for panel, text in zip(panels[:, 0], QUANTITIES.values(), strict=True):
        panel.set_ylabel(text)
    handles = {line.get_label(): line for panel in panels.flat for line in panel.lines}
    legend = panels[0, -1].legend(handles.values(), handles.keys(), loc="upper left", fontsize=8)
    legend.set_in_layout(False)  # it reaches into the empty panel below
    figure.suptitle(f"{data}, C = {C:g}")
    return figure


def _curves(panel: Axes, series: Sequence[Series], labels: list[str], quantity: str) -> None:
    """One line per solver, a point per run; a solver looks the same in every panel."""
    factor = 100.0 if quantity == "accuracy" else 1.0
    for one in series:
        points = [(seconds(one, c), factor * c[quantity]) for c in one["cells"] if c.get(quantity)]
        number = labels.index(one["solver"])
        if points:
            panel.plot(
                *zip(*sorted(points), strict=True),
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                color=COLORS[number % len(COLORS)],
                linewidth=2.0 if one["ours"] else 1.0,
                linestyle="-" if one["ours"] else "--",
                label=one["solver"],
            )
    panel.set_xscale("log")
    if quantity != "accuracy":
        panel.set_yscale("log")
    panel.grid(alpha=0.3)


def save(content: dict[str, Any], folder: Path, problems: list[tuple[str, float]]) -> list[Path]:
    """Draw the problems that were measured into ``solvers_DATA_C.png``."""
    paths = []
    for data, C in problems:
        figure = draw(content, data, C)
        if figure is not None:
            path = folder / f"solvers_{data}_C{C:g}.png"
            figure.savefig(path, dpi=75)
            paths.append(path)
    return paths
