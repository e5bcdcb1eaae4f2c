"""The measurement of linear probes, on generated data."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("threadpoolctl", reason="the benchmarks need threadpoolctl")
pytest.importorskip("matplotlib", reason="the papers' modules need matplotlib")

from benchmarks import datasets, embeddings


@pytest.fixture(scope="module")
def data():
    X, y = datasets.generate_dense(300, 20, 4, dtype=np.float32)
    return datasets.Dataset("clinc150_minilm", X[:200], y[:200], X[200:], y[200:])


@pytest.mark.parametrize("model", embeddings.MODELS)
def test_every_model_is_measured(data, model):
    row = embeddings.measure(data, model, 60.0, (0.1, 1.0))
    assert row["search"]["complete"] and row["search"]["C"] in (0.1, 1.0)
    assert row["fit"] > 0 and row["search"]["seconds"] > row["fit"]
    assert row["accuracy"] > 0.3
    assert model in embeddings.report([row])


def test_a_search_over_its_limit_ends_and_says_so(data):
    row = embeddings.measure(data, "RidgeClassifier", -1.0, embeddings.GRID)
    assert not row["search"]["complete"] and row["search"]["tried"] == 1
    assert "over" in embeddings.report([row])
