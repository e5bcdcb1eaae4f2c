"""The demonstration trains every loss, and its table says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

from polymargin.cli import demo
from polymargin.cli._errors import Exit
from polymargin.losses import LOSSES

TOL = 1e-4


@pytest.fixture(scope="module")
def rows() -> list[demo.Row]:
    return list(demo.run(TOL))


def test_every_loss_and_both_peers_are_there(rows):
    trained = [row.model.split(",")[0] for row in rows]
    assert set(LOSSES) < set(trained)
    assert trained.count("LinearSVC") == 2


def test_every_model_is_accurate(rows):
    for row in rows:
        assert row.accuracy > 0.9, row
        assert row.accuracy <= row.top_k_accuracy <= 1.0, row


def test_every_loss_is_certified_to_the_tolerance(rows):
    for row in rows:
        if row.model.startswith("LinearSVC"):
            assert row.gap is None
        else:
            # rounding alone may leave an exactly solved problem a hair below zero
            assert -1e-12 <= row.gap <= TOL, row


def test_the_command_prints_a_table_of_what_was_measured(run, rows):
    ran = run("demo", "--tol", TOL)
    assert ran.code == Exit.OK
    header, *lines = ran.lines
    assert "top-3 accuracy" in header
    for row, line in zip(rows, lines, strict=True):
        assert line.startswith(row.model)
        assert f"{row.accuracy:.2%}" in line
        assert f"{row.top_k_accuracy:.2%}" in line
        assert f" {row.passes} " in line
    assert ran.err.strip().endswith(demo.EXPLANATION.strip())


def test_as_json_the_rows_are_whole(run, rows):
    models = run("demo", "--json", "--tol", TOL).json["models"]
    for name in ("model", "accuracy", "gap", "passes"):
        assert [row[name] for row in models] == [getattr(row, name) for row in rows]


def test_the_module_is_the_command():
    code = "import runpy; runpy.run_module('polymargin.demo', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code, "--wrong"], capture_output=True, text=True)
    assert done.returncode == Exit.USAGE
    assert "polymargin demo --help" in done.stderr
