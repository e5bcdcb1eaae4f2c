"""The count of passes: the same twice, taken up where it stopped, and moved by a constant."""

from __future__ import annotations

import pytest

from benchmarks import acceleration
from polymargin.solvers.acceleration import Constants

DIGITS = ["--data", "digits", "--C", "1", "10"]


@pytest.fixture(autouse=True)
def same_constants(monkeypatch):
    """Whatever a test sets, the next one starts with the defaults."""
    monkeypatch.setattr(acceleration.acceleration, "CONSTANTS", Constants())
    monkeypatch.setitem(acceleration.PARTS, "tuned", ("digits",))


def test_an_interrupted_measurement_goes_on_with_the_same_counts(tmp_path):
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    acceleration.main(["measure", str(whole), *DIGITS, "--seeds", "2"])
    acceleration.main(["measure", str(parts), *DIGITS, "--seeds", "1"])
    acceleration.main(["measure", str(parts), *DIGITS, "--seeds", "2"])
    rows = acceleration.read(parts)
    assert len(rows) == 4
    assert all(0 < row["passes"]["0.001"] < row["passes"]["0.0001"] for row in rows)
    assert acceleration.compare(acceleration.read(whole), rows)[0] == 1.0


def test_a_constant_is_compared_over_what_both_have(tmp_path, capsys):
    base, other = tmp_path / "base.jsonl", tmp_path / "fall=100.jsonl"
    acceleration.main(["measure", str(base), *DIGITS, "--seeds", "2"])
    acceleration.main(["measure", str(other), *DIGITS, "--seeds", "1", "--set", "fall=100"])
    acceleration.main(["compare", str(base), str(other)])
    row = capsys.readouterr().out.splitlines()[-1].split("|")
    assert [cell.strip() for cell in row[1:4]] == ["fall=100", "tuned", "4"]
    mean, ratios = acceleration.compare(acceleration.read(base), acceleration.read(other))
    assert mean > 1.0 and ratios[0][0] > 1.1  # nothing stops kappa from growing


def test_what_does_not_converge_counts_as_all_passes():
    row = {"data": "digits", "dtype": "float64", "loss": "x", "C": 1.0, "seed": 0}
    ended, not_ended = row | {"passes": {"0.001": 30.0}}, row | {"passes": {"0.001": None}}
    assert acceleration.compare([ended], [not_ended])[0] == pytest.approx(100.0)
    assert acceleration.compare([ended], [])[1] == []
