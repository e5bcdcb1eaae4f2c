"""The benchmark of kernel machines runs on made-up data and compares with SVC."""

import numpy as np
import pytest

from benchmarks import datasets, kernel_machines, kernel_memory


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
    assert [cell.strip() for cell in line[3:8]] == ["0.50", "4.00", "2.0", "1.00", "3.0"]


def test_one_thread_and_two_are_measured(data):
    row = kernel_machines.measure_threads(data, "usps", 2)
    assert all(row[f"{what} {n}"] > 0 for what in ("train", "predict") for n in (1, 2))
    row |= {"train 1": 3.0, "train 2": 2.0}
    assert "| usps | 3.000 | 2.000 | 1.50 |" in kernel_machines.threads_table([row])


def test_the_memory_of_a_fit_is_sampled(data, tmp_path):
    row = kernel_memory.measure(data.X_train, data.y_train, 0.1)
    assert row["rows"] == 60 and row["gap"] <= 0.1 and row["support"] > 0
    assert row["above_data_mb"] >= 0
    assert "| 60 |" in kernel_memory.table(row)


def test_the_peak_is_seen_though_it_is_gone_at_the_end():
    with kernel_memory.sampled_peak(every=0.001) as peak:
        before = peak[0]
        block = np.ones(100 * 2**17)  # 100 MB
        while peak[0] < before + 90:  # the watcher has seen it
            block += 1
        del block
    assert peak[0] >= before + 90
