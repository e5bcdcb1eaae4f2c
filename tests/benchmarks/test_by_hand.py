"""The page on what is written by hand has the figures of the result files."""

from __future__ import annotations

import json

import pytest

from benchmarks import by_hand
from benchmarks.reference_optima import read_json


def test_the_page_has_the_figures_of_the_files():
    page = by_hand.PAGE.read_text(encoding="utf-8")
    results = by_hand.RESULTS
    tables = by_hand.parts(
        read_json(results / "by_hand.json"), read_json(results / "svmlight.json")
    )
    assert by_hand.with_tables(page, tables) == page, "make results"
    assert page.count(": begin -->\n|") == 4  # none is empty


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="simd: begin"):
        by_hand.with_tables("nothing", iter([("simd", "table\n")]))


def test_model_files_are_measured(monkeypatch):
    pytest.importorskip("skops")
    monkeypatch.setattr(by_hand, "MODEL", (5, 7))
    rows = {row["format"]: row for row in by_hand.models()}
    assert set(rows) == {"polymargin", "skops", "joblib", "pickle"}
    assert all(row["mb"] > 0 and row["save"] >= 0 and row["load"] >= 0 for row in rows.values())
    json.dumps(list(rows.values()))
