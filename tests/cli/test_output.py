"""Tables on the terminal: columns stand under each other, whatever the script."""

from __future__ import annotations

import unicodedata

from polymargin.cli._output import facts, padded, shorten, table, width_of


def columns_of(text):
    """Columns of a terminal, counted one character at a time."""
    wide = {"W": 2, "F": 2}
    return sum(
        0 if unicodedata.category(c) == "Mn" else wide.get(unicodedata.east_asian_width(c), 1)
        for c in text
    )


def test_wide_labels_align():
    names = ["一年生植物", "perennial", "二年生", "naïve", "e\u0301tude"]
    lines = table(["class", "#n"], [[name, str(10**i)] for i, name in enumerate(names)])
    assert len({columns_of(line) for line in lines[1:]}) == 1
    values = [columns_of(line[: line.index("!")]) for line in facts((name, "!") for name in names)]
    assert set(values) == {12}
    assert [width_of(name) for name in names] == [10, 9, 6, 5, 5]


def test_cells_are_padded_and_cut_by_columns():
    assert padded("植物", 6) == "植物  "
    assert padded("植物", 6, to_right=True) == "  植物"
    assert shorten("植物" * 10, 9) == "植物植物…"
    assert columns_of(shorten("a" * 90)) == 48
    assert shorten("short\n") == "short\\n"
