"""The measurement of paths and searches, and Keerthi's tables, on generated data."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the papers' modules need matplotlib")
pytest.importorskip("threadpoolctl", reason="the benchmarks need threadpoolctl")

from benchmarks import datasets, path
from benchmarks.papers import keerthi_tables


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


def test_tables_of_keerthi_can_be_resumed(data, tmp_path, capsys):
    calls = []

    def load(name, layout):
        calls.append(name)
        return data

    keerthi_tables.run(["news20"], 1, tmp_path, load)
    first = json.loads((tmp_path / "keerthi_tables.json").read_text())["runs"]
    assert len(first) == 3
    for run in first.values():
        assert run["C"] == keerthi_tables.GRID[int(np.argmax(run["validation"]))]
        assert 25 < run["test"] <= 100
    first["news20 crammer_singer 0"]["test"] = 12.25  # a mark: finished runs are not repeated
    (tmp_path / "keerthi_tables.json").write_text(json.dumps({"runs": first}))
    keerthi_tables.run(["news20"], 2, tmp_path, load)
    second = json.loads((tmp_path / "keerthi_tables.json").read_text())["runs"]
    assert len(second) == 6
    assert second["news20 crammer_singer 0"]["test"] == 12.25
    text = (tmp_path / "keerthi_tables.md").read_text()
    assert "85.26 ± 0.37" in text and "| news20 | 2 |" in text
    capsys.readouterr()
