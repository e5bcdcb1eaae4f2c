"""Costs between classes from a CSV file: true labels down, predicted ones across."""

from __future__ import annotations

import csv
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polymargin.cli._data import like_labels
from polymargin.cli._errors import about, reading
from polymargin.costs import costs_for

Costs: TypeAlias = dict[tuple[Any, Any], float]  # (true label, predicted label): cost


def read_costs(path: str, classes: NDArray) -> Costs:
    """Read costs by label and check that they say what every confusion of these classes costs.

    The first row and the first column name the labels. An empty cell on the diagonal is 0; labels
    that are no classes of the data are fine.
    """
    with reading(path), open(path, encoding="utf-8-sig", newline="") as file:
        rows = [
            (number, [cell.strip() for cell in cells])
            for number, cells in enumerate(csv.reader(file), start=1)
            if any(cell.strip() for cell in cells)
        ]
        costs = _by_label(rows, classes)
    with about(path):
        costs_for(costs, classes)
    return costs


def _by_label(rows: list[tuple[int, list[str]]], classes: NDArray) -> Costs:
    if len(rows) < 2:
        raise ValueError(
            "expected a first row with the predicted labels, then a row per true label that begins "
            "with it"
        )
    (_, (_, *across)), *below = rows
    down = [cells[0] for _, cells in below]
    _check_names(across, "first row")
    _check_names(down, "first column")
    for names, others, where in ((down, across, "row"), (across, down, "column")):
        alone = [name for name in names if name not in others]
        if alone:
            other = "column" if where == "row" else "row"
            raise ValueError(f"the label {alone[0]!r} has a {where}, but no {other}")
    columns, lines = _labels(across, classes), _labels(down, classes)
    costs: Costs = {}
    for (number, (_, *cells)), true in zip(below, lines, strict=True):
        if len(cells) != len(columns):
            raise ValueError(
                f"line {number}: expected {len(columns)} costs after the label, got {len(cells)}"
            )
        for cell, predicted in zip(cells, columns, strict=True):
            if cell or true != predicted:
                costs[true, predicted] = _number(cell, number, true, predicted)
    return costs


def _check_names(names: list[str], where: str) -> None:
    if "" in names:
        raise ValueError(f"the {where} has a cell without a label")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"the {where} has the label {twice[0]!r} twice")


def _labels(names: list[str], classes: NDArray) -> list[Any]:
    found: list[Any] = like_labels(np.array(names, dtype=object), classes).tolist()
    return found


def _number(cell: str, line: int, true: object, predicted: object) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(
            f"line {line}: the cost of predicting {predicted!r} where {true!r} is true must be a "
            f"number, got {cell!r}"
        ) from None
