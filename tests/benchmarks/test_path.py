"""The measurement of paths and searches, and Keerthi's tables, on generated data."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the papers' modules need matplotlib")
pytest.importorskip("threadpoolctl", reason="the benchmarks need threadpoolctl")

from benchmarks import datasets, path
from benchmarks.papers import keerthi_tables
from benchmarks.papers.study import Study


@pytest.fixture(scope="module")
def data():
    X, y = datasets.generate_sparse(300, 60, 4, nonzeros=6, dtype=np.float64)
    return datasets.Dataset("clinc150", X[:200], y[:200], X[200:], y[200:])


def test_paths_and_searches_are_measured(data, monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", lambda name, **kwargs: data)
    assert path.main(["--quick", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "path.json").read_text())
    (measured,), (search,) = found["paths"], found["searches"]
    assert len(measured["cold"]) == len(measured["path"]) == len(path.GRID[:5])
    assert all(seconds > 0 for seconds in measured["cold"] + measured["path"])
    assert search["theirs"]["complete"]
    np.testing.assert_allclose(
        search["ours"]["scores"][:3], search["theirs"]["scores"][:3], atol=0.02
    )
    text = (tmp_path / "path.md").read_text()
    assert "clinc150" in text and "GridSearchCV" in text


def test_a_search_that_takes_too_long_ends(data):
    seconds, scores, complete = path.grid_search(data.X_train, data.y_train, (0.1, 1.0), -1.0)
    assert seconds >= 0 and scores == {} and not complete


def test_tables_of_keerthi(data, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(datasets, "load", lambda name, **kwargs: data)
    keerthi_tables.experiment(Study(keerthi_tables.NAME, quick=True, folder=tmp_path))
    found = json.loads((tmp_path / "keerthi_tables.json").read_text())
    assert len(found["runs"]) == 2 * 3 * 2  # data sets, losses, splits
    for run in found["runs"].values():
        assert run["C"] == keerthi_tables.GRID[int(np.argmax(run["validation"]))]
        assert 25 < run["test"] <= 100
    assert found["claims"] == []  # two splits prove nothing
    text = (tmp_path / "keerthi_tables.md").read_text()
    assert "85.26 ± 0.37" in text and "| news20 | 2 |" in text
    capsys.readouterr()


def test_claims_are_derived_from_the_runs():
    scores = {"one_vs_rest": 85.0, "crammer_singer": 85.0, "weston_watkins": 84.0}
    runs = {
        keerthi_tables.key("news20", loss, split): {"test": value + 0.01 * split}
        for loss, value in scores.items()
        for split in range(10)
    }
    equal, less = keerthi_tables.make_claims(runs, 10)
    assert equal.holds == "yes" and "p = 1 " in equal.measured
    assert less.holds == "yes" and "0 better and 10 worse" in less.measured
    for split in range(10):
        runs[keerthi_tables.key("news20", "weston_watkins", split)]["test"] += 2.0
    assert keerthi_tables.make_claims(runs, 10)[1].holds == "no"
