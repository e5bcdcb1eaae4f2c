"""The benchmark of streams: its generated stream is learned, its page has every table."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("threadpoolctl", reason="needs the benchmarks' dependencies")

from benchmarks import streams
from benchmarks.datasets import Dataset
from benchmarks.streams_report import markdown
from tests.estimators import make_problem


def test_the_generated_stream_is_learned_with_its_late_class():
    found = streams.memory_stream(20_000, batch=100, known=10)
    assert found["classes"] == 11 and found["examples"] == 20_000
    assert found["accuracy_before"] > 0.9 and found["accuracy"] > 0.9
    assert found["late_recall"] > 0.5 and found["late_precision"] > 0.5
    assert sorted(map(int, found["peak_gb"])) == [200, 2000, 20_000]


def test_everybody_is_tuned_on_as_many_values():
    assert {len(contender.grid) for contender in streams.CONTENDERS} == {7}
    X, y = make_problem(200)
    data = Dataset("letter", X, y, X, y)
    for contender in streams.CONTENDERS:
        found = streams.tune(contender, data)
        assert found["value"] in contender.grid and len(found["validation"]) == 7
        assert max(found["validation"]) == found["validation"][contender.grid.index(found["value"])]


def test_the_page_has_every_table():
    row = {
        "data": "news20",
        "classifier": "one_vs_rest",
        "value": 1.0,
        "accuracy": 84.0,
        "examples": 99,
    }
    row |= {"deviation": 0.3, "per_second": 1e5, "validation": [0.1, 0.3, 0.2]}
    other = row | {"classifier": "SGD pa1", "accuracy": 83.0, "deviation": None}
    gain = {"data": "news20", "settings": "one pass", "C": 1.0, "accuracy": 84.0}
    results = {
        "machine": "a machine",
        "passes": [row, other],
        "splits": [
            {
                "data": "news20",
                "accuracies": {"ours": [84.0, 85.0], "SGD": [83.0, 83.5]},
                "winners": {"ours": ["one_vs_rest", "one_vs_rest"], "SGD": ["SGD pa1", "SGD pa2"]},
                "p": 0.5,
            }
        ],
        "blondel": {"plain": 83.9, "averaged": 83.0, "plain ±": 0.5, "averaged ±": 0.4},
        "gains": [gain | {"deviation": None, "seconds": 0.1}],
        "batches": [{"size": 1, "crammer_singer": 1000.0, "SGD pa1": 80.0}],
        "memory": {
            "examples": 100,
            "classes": 11,
            "peak_gb": {"1": 0.1, "100": 0.1},
            "per_second": 1e5,
            **dict.fromkeys(("accuracy_before", "accuracy", "late_recall"), 0.9),
            "late_precision": np.float64(1.0),
        },
    }
    page = markdown(results)
    assert page.count("\n## ") == 6
    assert "+1.00 points" in page and "84.00 ± 0.30" in page and "83.00 |" in page
