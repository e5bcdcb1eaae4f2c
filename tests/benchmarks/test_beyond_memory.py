"""Fits out of core are measured, and the page has the figures of the result file."""

from __future__ import annotations

import sys

import pytest

from benchmarks import beyond_memory, datasets, out_of_core
from benchmarks.reference_optima import read_json


def test_the_page_has_the_figures_of_the_file():
    page = beyond_memory.PAGE.read_text(encoding="utf-8")
    found = read_json(beyond_memory.RESULTS)
    assert beyond_memory.with_tables(page, beyond_memory.tables(found)) == page, "make results"
    assert page.count(": begin -->\n|") == 2  # none is empty


@pytest.mark.skipif(sys.platform == "win32", reason="limits of memory")
def test_generated_data_are_fitted_in_a_process_of_their_own(tmp_path, monkeypatch):
    for name, small in {"FEATURES": 500, "CLASSES": 10, "NONZEROS": 5, "BLOCK": 300}.items():
        monkeypatch.setattr(out_of_core, name, small)
    for is_sorted in (False, True):
        out_of_core.generate(tmp_path / f"{is_sorted}", 1000, is_sorted=is_sorted)
        row = beyond_memory.generated(tmp_path / f"{is_sorted}", None)
        assert row["rows"] == 1000 and row["sorted"] is is_sorted
        assert row["gap"] <= 1e-2 and row["times_read"] == 1.0
        assert f"1,000 rows ({row['file_mb']} MB)" in beyond_memory.of_generated([row])


def test_real_data_in_blocks_reach_the_same_objective(tmp_path, monkeypatch):
    digits = datasets.load("digits")
    monkeypatch.setattr(datasets, "load", lambda name: digits)
    row = beyond_memory.measured("mnist", 1, tmp_path)
    for kind in ("memory", "shuffled", "sorted"):
        assert row[kind]["gap"] <= beyond_memory.TOL and row[kind]["seconds"] > 0
        assert row[kind]["objective"] == pytest.approx(row["memory"]["objective"], rel=2e-3)
    assert "mnist" in beyond_memory.of_real([row])
