"""The page on Walrus with kernels: what it measures, and that it says what its file says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import walrus_kernel
from benchmarks.datasets import Dataset


@pytest.fixture
def small(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(120, dtype=np.int32) % 3
    X = (rng.standard_normal((120, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32)
    monkeypatch.setattr(
        walrus_kernel, "load", lambda name, quick: Dataset(name, X[:90], y[:90], X[90:], y[90:])
    )
    monkeypatch.setattr(walrus_kernel, "DATA", {"usps": None, "letter": 60})
    monkeypatch.setattr(walrus_kernel, "COSTS", (1.0,))
    monkeypatch.setattr(walrus_kernel, "SETS", ("auto", 16))
    monkeypatch.setattr(walrus_kernel, "REPEATS", 2)


def test_the_methods_solve_the_same_problems(small, tmp_path):
    files = ["--results", str(tmp_path / "r.json"), "--page", str(tmp_path / "p.md")]
    assert walrus_kernel.main(["--quick", *files]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert len(found["rows"]) == 2 * 2 * len(walrus_kernel.METHODS)
    assert {"date", "commit", "machine", "versions"} <= set(found)
    for row in found["rows"]:
        assert row["n"] == (60 if row["data"] == "letter" else 90)
        assert row["gap"] <= walrus_kernel.TOL or row["method"] == "greedy, 1e-4"
        assert 0 <= row["within"] <= row["seconds"]
        same = [r for r in found["rows"] if (r["data"], r["set"]) == (row["data"], row["set"])]
        for other in same:
            assert row["objective"] == pytest.approx(other["objective"], rel=2 * walrus_kernel.TOL)
    text = (tmp_path / "p.md").read_text()
    assert "reduced run" in text and text.count("| letter | 60 | 3 |") == 8
    assert walrus_kernel.main(["--report", *files]) == 0
    assert (tmp_path / "p.md").read_text() == text


def test_sentences_are_made_from_the_rows():
    def row(method, C, seconds):
        case = {"data": "usps", "C": C, "set": "auto", "method": method}
        return case | {"seconds": seconds, "within": seconds / 2}

    rows = [row("walrus", 1.0, 1.0), row("walrus", 2.0, 3.0), row("greedy", 1.0, 2.0)]
    rows.append(row("greedy", 2.0, 3.0))
    text = walrus_kernel.sentence(rows, "walrus", "greedy")
    assert "0.50 to 1.00 times as long (median 0.75; less in 1, more in 0 of 2" in text


def test_the_page_in_the_repository_is_that_of_its_file():
    found = json.loads(walrus_kernel.RESULTS.read_text())
    expected = "\n".join(walrus_kernel.page(found)).rstrip() + "\n"
    assert walrus_kernel.PAGE.read_text() == expected
