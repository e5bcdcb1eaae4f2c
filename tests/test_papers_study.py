"""Cells are measured once and survive an interruption; claims and the page follow the numbers."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from benchmarks.papers import common, page
from benchmarks.papers.study import Claim, Study, run, verdict


def test_verdicts():
    assert verdict([True, True]) == "yes"
    assert verdict([True, False]) == "partly"
    assert verdict(iter([False])) == "no"
    with pytest.raises(ValueError, match="at least one"):
        verdict([])


def test_a_cell_is_measured_once_and_an_interrupted_run_goes_on(tmp_path):
    calls = []

    def measured(key, fail=False):
        def compute():
            if fail:
                raise KeyboardInterrupt
            calls.append(key)
            return {"value": (1.5, 2), 7: "x"}

        return compute

    first = Study("demo", folder=tmp_path)
    value = first.cell("a", measured("a"))
    assert value == {"value": [1.5, 2], "7": "x"}  # already as it will be read
    with pytest.raises(KeyboardInterrupt):
        first.cell("b", measured("b", fail=True))
    again = Study("demo", folder=tmp_path)
    assert again.cell("a", measured("a")) == value
    again.cell("b", measured("b"))
    assert calls == ["a", "b"]
    Study("demo", folder=tmp_path, fresh=True).cell("a", measured("a"))
    assert calls == ["a", "b", "a"]


def test_other_versions_are_not_mixed(tmp_path, monkeypatch):
    Study("demo", folder=tmp_path).cell("a", lambda: 1)
    monkeypatch.setattr(common, "versions", lambda: {"polymargin": "another"})
    assert Study("demo", folder=tmp_path).cell("a", lambda: 2) == 2


def test_a_report_measures_nothing(tmp_path, capsys):
    def experiment(study):
        value = study.cell("a", lambda: 3)
        study.write("# T\n", {"value": value}, [Claim("P, table 1", "x", "y", "no")])

    options = ["--output", str(tmp_path)]
    assert run("demo", experiment, "doc", [*options, "--report"]) == 0
    found = json.loads((tmp_path / "demo.json").read_text())
    assert found["value"] is None and found["missing_cells"] == 1 and found["run"] == "full"
    assert "Not run: 1 cells" in (tmp_path / "demo.md").read_text()
    assert run("demo", experiment, "doc", [*options, "--quick"]) == 0
    found = json.loads((tmp_path / "demo.json").read_text())
    assert found["value"] == 3 and found["missing_cells"] == 0 and found["run"] == "quick"
    assert found["claims"] == [
        {"paper": "P, table 1", "claim": "x", "measured": "y", "holds": "no"}
    ]
    assert "| x | y | no |" in (tmp_path / "demo.md").read_text()
    with pytest.raises(SystemExit):
        run("demo", experiment, "doc", [*options, "--report", "--fresh"])
    with pytest.raises(SystemExit):
        run("demo", experiment, "doc", [*options, "--quick", "--full"])
    capsys.readouterr()


PAGE = """# Title

<!-- claims: written by benchmarks.papers.page -->
out of date
<!-- end of claims -->

By hand.

<!-- sections: written by benchmarks.papers.page -->
<!-- end of sections -->

The end.
"""


def test_the_page_follows_the_result_files(tmp_path, capsys):
    target, results = tmp_path / "page.md", tmp_path / "results"
    target.write_text(PAGE)
    study = Study("blondel_table1", quick=True, folder=results)
    study.write("# T", {}, [Claim("Blondel, table I", "it is so", "it is not", "no")])
    (results / "larank_x.json").write_text('{"rows": []}')  # no claims: left out
    options = ["--page", str(target), "--results", str(results)]
    assert page.main([*options, "--check"]) == 1
    assert page.main(options) == 0
    assert page.main([*options, "--check"]) == 0
    text = target.read_text()
    assert "| Blondel, table I: it is so | does not hold |" in text and "out of date" not in text
    assert "**Claim.** It is so. **Seen.** It is not. **Verdict.** Does not hold." in text
    assert "By hand." in text and text.endswith("The end.\n")
    assert "reduced version" in text
    capsys.readouterr()


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="once each"):
        page.fill("nothing", "claims", "x")
