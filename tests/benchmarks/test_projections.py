"""The benchmark of the projections: its NumPy rival is right, its table and plot are complete."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("threadpoolctl", reason="needs the benchmarks' dependencies")

from benchmarks import projections as benchmark
from tests.reference import projections as reference


def test_numpy_projects_onto_the_simplex():
    V = np.random.default_rng(0).normal(size=(7, 30))
    expected = np.array([reference.project_simplex(v, 1.0) for v in V])
    np.testing.assert_allclose(benchmark.numpy_simplex(V), expected, atol=1e-14)
    np.testing.assert_allclose(benchmark.in_chunks(benchmark.numpy_simplex, V, 3), expected)


def test_every_method_is_measured_and_shown(tmp_path):
    found = benchmark.measure((10, 40), 200, repeats=1)
    assert all(m.nanoseconds > 0 for m in found)
    assert len(found) == 2 * (7 + 2 * 6)
    numpy = benchmark.against_numpy((120, 10), repeats=1)
    assert numpy["ratio"] > 0
    text = benchmark.markdown(found, numpy, "a machine")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 7 + 2 * 6
    assert "n = 40" in rows[0] and "newton, warm start" in text and "120 x 10" in text
    pytest.importorskip("matplotlib")
    benchmark.plot(found, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_a_warm_start_is_the_threshold_of_a_similar_vector():
    V = np.random.default_rng(1).normal(size=(3, 50))
    tau = benchmark.thresholds(V, np.full(3, 5.0))
    np.testing.assert_allclose(np.maximum(V - tau[:, None], 0).sum(axis=1), 5.0)
