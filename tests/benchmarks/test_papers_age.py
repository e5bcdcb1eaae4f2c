"""Results tell their age and their cost: by the code that measured them, and cell by cell."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from benchmarks.papers import common, costs, measuring, page
from benchmarks.papers.study import Claim, Study

MODULE = '''"""An experiment."""

from benchmarks.helpers import double
from benchmarks.papers.study import Study

NAME = "demo"
LIMIT = 2.0
SETUP = f"""What is done in {LIMIT} s."""


def measure(x):
    """Measure."""
    return double(x) + LIMIT


def report(cells):
    return f"# {cells}"


def experiment(study: Study) -> None:
    cells = [study.cell(str(x), lambda x=x: measure(x)) for x in (1, 2)]
    study.write(report(cells), {}, [])
'''
HELPERS = "def double(x):\n    return 2 * x\n\n\ndef unused(x):\n    return x\n"


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Source files of a module, and its fingerprint after something in them is replaced."""
    monkeypatch.setattr(measuring, "ROOT", tmp_path)
    folder = tmp_path / "benchmarks" / "papers"
    folder.mkdir(parents=True)

    def fingerprint(old="", new=""):
        (folder / "demo.py").write_text(MODULE.replace(old, new))
        (folder.parent / "helpers.py").write_text(HELPERS.replace(old, new))
        measuring.measuring_code.cache_clear()
        measuring._tree.cache_clear()
        return measuring.measuring_code("benchmarks.papers.demo")

    yield fingerprint
    measuring.measuring_code.cache_clear()
    measuring._tree.cache_clear()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 2.0", "LIMIT = 3.0"),
        ("return double(x) + LIMIT", "return double(x) - LIMIT"),
        ("return 2 * x", "return x + x"),  # in another module
    ],
)
def test_the_code_that_measures_has_another_fingerprint_when_it_changes(code, old, new):
    assert code() != code(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Measure."""', '"""Measure it well."""'),
        ("What is done", "What was done"),
        ('f"# {cells}"', 'f"## {cells}"'),
        ("def unused(x):\n    return x", "def unused(x):\n    return -x"),
        ("NAME = ", "# a comment\nNAME = "),
    ],
)
def test_prose_tables_and_what_is_not_needed_do_not_count(code, old, new):
    assert code() == code(old, new)


def test_a_module_without_source_has_no_fingerprint():
    assert measuring.measuring_code("benchmarks.papers.nothing_of_the_kind") is None


def test_every_experiment_measures_with_code_that_is_found():
    found = {measuring.measuring_code(f"benchmarks.papers.{name}") for name in page.EXPERIMENTS}
    assert None not in found and len(found) == len(page.EXPERIMENTS)


def written(folder, quick=False, keys=("a", "b")):
    study = Study("walrus_table1", quick=quick, folder=folder)
    for key in keys:
        study.cell(key, lambda: sum(range(10_000)))
    study.write("# T\n", {}, [Claim("P, table 1", "x", "y", "yes")])
    return json.loads((folder / "walrus_table1.json").read_text())


def test_a_result_file_says_when_where_and_with_what_it_was_measured(tmp_path):
    found = written(tmp_path)
    assert {"date", "commit", "machine", "versions"} <= set(found)
    assert found["machine"]["cpu"] and found["versions"]["polymargin"]
    assert found["measured"]["dates"] == [found["date"]]
    assert found["measured"]["code"] == [
        measuring.measuring_code("benchmarks.papers.walrus_table1")
    ]


def test_the_page_says_which_results_are_older_than_the_code(tmp_path, monkeypatch):
    content = written(tmp_path)
    assert "older" not in page.age("walrus_table1", content)
    monkeypatch.setattr(page, "measuring_code", lambda module: "another")
    assert "**older than its module's code**" in page.age("walrus_table1", content)
    content["measured"]["code"].append("another")
    assert "**partly older than its module's code**" in page.age("walrus_table1", content)
    del content["measured"]
    assert "of which the file says nothing" in page.age("walrus_table1", content)


def test_costs_are_those_of_the_cells_that_are_left(tmp_path):
    whole = written(tmp_path)["costs"]["full"]
    assert set(whole) == {"a", "b"} and min(whole.values()) >= 0
    path = tmp_path / "walrus_table1.json"
    content = json.loads(path.read_text())
    content["costs"]["full"] = {"a": 10.0, "b": 20.0, "c": 30.0}  # c is not in the cache
    path.write_text(json.dumps(content))
    assert costs.cost("walrus_table1", "full", tmp_path) == costs.Cost("walrus_table1", 60.0, 30.0)
    assert costs.cost("walrus_table1", "quick", tmp_path).whole is None
    assert costs.cost("walrus_table7", "full", tmp_path).left is None
    content["missing_cells"] = 4
    path.write_text(json.dumps(content))
    assert costs.cost("walrus_table1", "full", tmp_path).unknown == 4
    (tmp_path / ".cache" / "walrus_table1.json").unlink()
    assert costs.cost("walrus_table1", "full", tmp_path).left == 60.0


def test_a_reduced_run_keeps_what_the_whole_one_cost(tmp_path):
    written(tmp_path)
    found = written(tmp_path, quick=True, keys=("c",))
    assert set(found["costs"]["full"]) == {"a", "b"} and set(found["costs"]["quick"]) == {"c"}


def test_cells_of_another_form_are_measured_again(tmp_path):
    cache = tmp_path / ".cache" / "walrus_table1.json"
    cache.parent.mkdir()
    cache.write_text(json.dumps({"versions": common.versions(), "cells": {"a": 3}}))
    assert Study("walrus_table1", folder=tmp_path).cell("a", lambda: 4) == 4


def test_the_costs_are_said(tmp_path, capsys):
    written(tmp_path)
    assert costs.main(["--results", str(tmp_path), "walrus_table1", "walrus_table7"]) == 0
    said = capsys.readouterr().out
    assert "| walrus_table1 | 0.0 | 0.0 |  |" in said
    assert "| walrus_table7 | not known | not known |  |" in said
    assert "never run as a whole: walrus_table7" in said
    with pytest.raises(SystemExit):
        costs.main(["no_such_experiment"])
    capsys.readouterr()
