"""The demonstration trains every loss, and its table says so."""

from __future__ import annotations

import pytest

from polymargin import demo
from polymargin.losses import LOSSES

TOL = 1e-4


@pytest.fixture(scope="module")
def rows() -> list[demo.Row]:
    return demo.run(TOL)


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


def test_the_table_is_aligned_and_shows_what_was_measured(rows):
    header, rule, *lines = demo.format_table(rows).splitlines()
    assert {len(line) for line in [header, rule, *lines]} == {len(header)}
    for row, line in zip(rows, lines, strict=True):
        assert line.startswith(row.model)
        assert f"{row.accuracy:.2%}" in line
        assert f"{row.top_k_accuracy:.2%}" in line
        assert f" {row.passes} " in line


def test_main_prints_the_table_and_succeeds(capsys):
    assert demo.main(["--tol", "1e-2"]) == 0
    printed = capsys.readouterr().out
    assert all(loss in printed for loss in LOSSES)
    assert printed.rstrip().endswith(demo.EXPLANATION)
