"""The benchmark of smooth losses: finds tolerances, measures with them, and goes on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks import datasets, softmax
from benchmarks.reference_optima import read_json


@pytest.fixture(autouse=True)
def digits(monkeypatch):
    X, y = load_digits(return_X_y=True)
    data = datasets.Dataset("letter", X[:300] / 16, y[:300].astype(np.int32), X, y)
    monkeypatch.setattr(softmax, "load", lambda name: data)


@pytest.mark.parametrize("loss", list(softmax.PEERS))
def test_every_peer_gets_there_and_is_measured(tmp_path, loss):
    options = ["--loss", loss, "--data", "letter", "--C", "0.1", "--output", str(tmp_path)]
    softmax.main([*options, "--find"])
    softmax.main(options)
    (row,) = read_json(tmp_path / "softmax.json")["rows"].values()
    assert all(peer["tol"] is not None for peer in row["found"]["peers"].values())
    assert set(row["seconds"]) == {softmax.OURS, *softmax.PEERS[loss]}
    for run in row["seconds"].values():
        assert run["primal"] <= (1 + softmax.TARGET) * row["found"]["optimum"]
    assert (
        f"| letter | 0.1 | {row['seconds'][softmax.OURS]['seconds']:.3g} |"
        in (tmp_path / "softmax.md").read_text()
    )
    before = (tmp_path / "softmax.json").read_bytes()
    softmax.main(options)
    assert (tmp_path / "softmax.json").read_bytes() == before


def test_a_run_that_takes_too_long_is_stopped():
    data = softmax.load("letter")
    make = softmax.PEERS["softmax"]["saga"]
    assert softmax.fit(data, make, "softmax", 100.0, 1e-12, 0.2) is None
