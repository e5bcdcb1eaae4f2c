"""The benchmark of the losses' accuracy: every loss is tuned, tested and listed once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks import datasets, losses
from benchmarks.reference_optima import read_json
from polymargin import LOSSES


@pytest.fixture
def small(monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = X / 16, y.astype(np.int32)
    data = datasets.Dataset("clinc150", X[:300], y[:300], X[300:800], y[300:800])
    monkeypatch.setattr(losses, "load", lambda name: data)
    monkeypatch.setitem(losses.GRIDS, "clinc150", (0.01, 0.1))


def test_every_loss_is_there():
    assert {name.split()[0] for name in losses.LOSSES} == set(LOSSES)


def test_a_table_of_two_losses(small, tmp_path):
    options = ["--data", "clinc150", "--output", str(tmp_path), "--losses"]
    losses.main([*options, "softmax"])
    losses.main([*options, "softmax", "top_k_beta"])
    rows = read_json(tmp_path / "losses.json")["rows"]
    assert [row["loss"] for row in rows] == ["softmax", "top_k_beta"]
    for row in rows:
        assert row["top5"]["top5"] >= row["top1"]["top1"] > 0.7
        assert len(row["validation"]) == 2
    text = (tmp_path / "losses.md").read_text()
    assert f"| softmax | {100 * rows[0]['top1']['top1']:.2f} |" in text
    assert "300 rows of training, 500 of test" in text
