"""The benchmark of kernel machines runs on made-up data and compares with SVC."""

import numpy as np
import pytest

from benchmarks import datasets, kernel_machines


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(90, dtype=np.int32) % 3
    X = (rng.standard_normal((90, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32)
    return datasets.Dataset("usps", X[:60], y[:60], X[60:], y[60:])


def test_every_classifier_is_measured(data):
    rows = kernel_machines.measure(data, "usps", 1)
    assert [row["classifier"] for row in rows] == [
        "SVC",
        "KernelMulticlassSVC",
        "LaRankClassifier x1",
    ]
    assert all(row["error"] < 40 for row in rows)
    assert rows[1]["gap"] <= 1e-2
    rows[0] |= {"train": 2.0, "predict": 3.0}
    rows[1] |= {"train": 0.5, "predict": 1.0}
    line = kernel_machines.table(rows).splitlines()[3].split("|")
    assert [cell.strip() for cell in line[3:8]] == ["0.50", "4.00", "1.0", "1.00", "3.0"]
