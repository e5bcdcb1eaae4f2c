"""The guard against slowing down, provenance and the store of finished cells."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import provenance, regression
from benchmarks.cells import CellStore
from benchmarks.regression import Case, Comparison


def test_the_sides_are_measured_in_turns():
    order = []

    def measure(side, case):
        order.append(side)
        return 2.0 if side == "head" else 1.0

    (found,) = regression.compare([Case("sparse")], 3, measure, log=lambda text: None)
    assert order == ["base", "head", "head", "base", "base", "head"]
    assert found.ratios.tolist() == [2.0, 2.0, 2.0]


def test_a_noisy_round_does_not_raise_the_alarm():
    noisy = Comparison("noisy", [1.0] * 5, [1.0, 1.0, 1.0, 3.0, 3.0])
    slow = Comparison("slow", [1.0] * 5, [1.3, 1.2, 1.25, 1.3, 1.4])
    assert regression.slower([noisy, slow], 1.1) == ["slow"]
    text = regression.markdown([noisy, slow])
    assert "| slow | 1 | 1.2 | 1.30 | 1.25 - 1.30 | 1.20 - 1.40 |" in text
    assert "Geometric mean of the ratios: 1.140" in text


def test_a_measurement_is_a_process_of_its_own(tmp_path):
    (case,) = regression.save_problems([Case("digits", "top_k_beta", 0.01, "float32")], tmp_path)
    python = Path(sys.executable)
    assert regression.measure_in_process(python, case, tmp_path, where=None) >= 0
    with pytest.raises(RuntimeError, match="instead of the build"):
        regression.measure_in_process(python, case, tmp_path, where=tmp_path)


def test_problems_are_saved_as_they_are(tmp_path):
    cases = [Case("sparse"), Case("dense"), Case("clinc150")]
    present = regression.save_problems(cases, tmp_path)
    assert present[:2] == cases[:2]
    with np.load(tmp_path / "sparse.npz") as arrays:
        assert tuple(arrays["shape"]) == (10_000, 5_000)
    with np.load(tmp_path / "dense.npz") as arrays:
        assert arrays["X"].shape == (3_000, 200)


def test_the_exit_code_tells(tmp_path, monkeypatch, capsys):
    from contextlib import contextmanager

    @contextmanager
    def built(commit, folder):
        yield Path("base")

    def measure(python, case, folder, where):
        return 1.0 if python == Path("base") else 1.5

    monkeypatch.setattr(regression, "built", built)
    monkeypatch.setattr(regression, "measure_in_process", measure)
    arguments = ["--base", "HEAD", "--rounds", "2", "--data", "digits"]
    assert regression.main(arguments) == 0
    assert regression.main([*arguments, "--threshold", "1.6"]) == 0
    path = tmp_path / "times.json"
    assert regression.main([*arguments, "--threshold", "1.1", "--json", str(path)]) == 1
    assert "slower than 1.1 times the base: digits" in capsys.readouterr().out
    assert json.loads(path.read_text())[0]["head"] == [1.5, 1.5]


def test_the_fingerprint_follows_the_sources(tmp_path):
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    first = provenance.fingerprint.__wrapped__(folder)
    (folder / "a.so").write_bytes(b"compiled")
    assert provenance.fingerprint.__wrapped__(folder) == first
    (folder / "a.py").write_text("x = 2\n")
    assert provenance.fingerprint.__wrapped__(folder) != first


def test_provenance_names_no_host():
    import getpass
    import platform

    found = provenance.provenance(["numpy", "no-such-package"])
    assert found["versions"]["no-such-package"] == "absent"
    assert found["versions"]["numpy"] == np.__version__
    assert set(found["machine"]) == {"cpu", "cores", "memory_gb", "system", "architecture"}
    text = json.dumps(found["machine"])
    assert platform.node() not in text or platform.node() in ("", "localhost")
    assert getpass.getuser() not in text


def test_cells_survive_an_interruption(tmp_path):
    path = tmp_path / "folder" / "cells.jsonl"
    store = CellStore(path)
    store.put({"a": 1, "b": [2]}, {"seconds": 3.0})
    store.put({"a": 1, "b": [2]}, {"seconds": 2.0})
    with path.open("a") as file:
        file.write('{"key": {"a"')
    again = CellStore(path)
    assert len(again) == 1
    assert again.get({"b": [2], "a": 1}) == {"seconds": 2.0}
    assert again.get({"a": 2}) is None
    assert [value for _, value in again] == [{"seconds": 2.0}]
    assert len(CellStore(path, fresh=True)) == 0
    assert not path.exists()
