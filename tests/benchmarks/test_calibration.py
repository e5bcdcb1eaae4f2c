"""The measurement of probabilities, on generated data."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("threadpoolctl", reason="the benchmarks need threadpoolctl")
pytest.importorskip("matplotlib", reason="the papers' modules need matplotlib")

from benchmarks import calibration, datasets


@pytest.fixture(scope="module")
def data():
    X, y = datasets.generate_dense(400, 20, 4, dtype=np.float64)
    return datasets.Dataset("letter", X[:300], y[:300], X[300:], y[300:])


@pytest.mark.parametrize("model", calibration.MODELS)
def test_every_model_is_measured(data, model):
    assert calibration.search(data, calibration.MODELS[model][0], (0.1, 1.0)) in (0.1, 1.0)
    row = calibration.measure(data, model, 1.0)
    assert 0 <= row["calibration_error"] <= 1
    assert row["log_loss"] < np.log(4)
    assert calibration.TITLES[model] in calibration.report({"rows": [row]})


def test_the_cost_of_a_temperature(data):
    row = calibration.cost(data, repeats=1)
    assert row["ratio"] > 0
    results = {"rows": [], "cost": [row]}
    calibration.keep(results, "cost", row | {"ratio": 9.0}, ("data",))
    assert [one["ratio"] for one in results["cost"]] == [9.0]
    assert "| letter |" in calibration.report(results)
