"""The benchmark of tables measures readers that read the same."""

from __future__ import annotations

import pandas as pd
import pytest

from polymargin.io import read_data

tables = pytest.importorskip("benchmarks.tables")


def test_the_files_are_what_they_should_be(tmp_path):
    tables.write_numbers(tmp_path / "data.csv", 0.5)
    data = read_data(tmp_path / "data.csv")
    frame = pd.read_csv(tmp_path / "data.csv")
    assert data.X.shape == (len(frame), tables.COLUMNS)
    assert (frame.iloc[:, :-1].to_numpy() == data.X).all() and (data.y == frame["label"]).all()
    tables.write_texts(tmp_path / "data.jsonl", 0.1)
    data = read_data(tmp_path / "data.jsonl")
    frame = pd.read_json(tmp_path / "data.jsonl", lines=True)
    assert list(data.text) == frame["text"].tolist() and data.y.tolist() == frame["label"].tolist()


def test_a_small_round_has_a_row_for_every_reader():
    rows = tables.measure(0.05)
    assert len(rows) == sum(map(len, tables.READERS.values()))
