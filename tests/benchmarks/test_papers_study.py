"""Cells are measured once and survive an interruption; claims and the page follow the numbers."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from benchmarks import provenance
from benchmarks.papers import claims, common, experiments, page
from benchmarks.papers.experiments import EXPERIMENTS, reasons
from benchmarks.papers.study import Claim, Study, on_halves, run, verdict


def test_verdicts():
    assert verdict([True, True]) == "yes"
    assert verdict([True, False]) == "partly"
    assert verdict(iter([False])) == "no"
    assert verdict([None, True]) == "yes"  # what could not be tested counts for nothing
    assert verdict([None, False]) == "no"
    assert verdict([None]) == verdict([]) == "not tested"


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
        {"paper": "P, table 1", "claim": "x", "measured": "y", "holds": "no", "check": ""}
    ]
    assert "| x | y | no |" in (tmp_path / "demo.md").read_text()
    with pytest.raises(SystemExit):
        run("demo", experiment, "doc", [*options, "--report", "--fresh"])
    with pytest.raises(SystemExit):
        run("demo", experiment, "doc", [*options, "--quick", "--full"])
    capsys.readouterr()


def test_halves_of_the_splits_tell_noise():
    claims = [Claim("P, table 1", "x", "y", "partly", "by passes: yes"), Claim("P", "z", "", "yes")]
    halves = [
        [Claim("P, table 1", "x", "", "yes"), Claim("P", "z", "", "no")],
        [Claim("P, table 1", "x", "", "not tested"), Claim("P", "z", "", "yes")],
    ]
    first, second = on_halves(claims, halves)
    assert first.holds == "partly"
    assert first.check == (
        "by passes: yes; on either half of the splits alone: holds and not tested"
    )
    assert second.check == "on either half of the splits alone: does not hold and holds"


def test_the_table_at_the_top_counts_by_verdict_before_and_now(tmp_path):
    verdicts = ("yes", "no", "partly", "not tested", "not tested")
    found = [Claim("P, figure 1", f"claim {i}", "", holds) for i, holds in enumerate(verdicts)]
    study = Study("blondel_figure1", folder=tmp_path)
    study.write("# T", {}, [*found, Claim("P, figure 1", "(ours) a check", "", "yes")])
    text = page.render(tmp_path)
    before = json.loads(claims.BEFORE.read_text())["claims"]["Blondel, Fujino and Ueda 2014"]
    words = ("holds", "partly", "does not hold", "not tested")
    now = {"holds": 1, "partly": 1, "does not hold": 1, "not tested": 2}
    cells = " | ".join(f"{before[word]} → {now[word]}" for word in words)
    row = f"| Blondel, Fujino and Ueda 2014 | {cells} | {sum(before.values())} → 5 |"
    assert row in text
    assert text.index(row) < text.index("| figure 1 | claim 0 | holds |")  # at the top
    assert "| figure 1 | claim 3 | not tested |" in text


def test_what_does_not_hold_says_what_its_check_showed(tmp_path):
    found = [
        Claim("P, figure 1", "x", "this", "no", "that"),
        Claim("P, figure 1", "y", "", "yes", "not shown"),
    ]
    Study("blondel_figure1", folder=tmp_path).write("# T", {}, found)
    text = page.render(tmp_path)
    assert "- figure 1, does not hold: x. Seen: this. Check: that.\n" in text
    assert "not shown" not in text


def test_a_reduced_experiment_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "reduced", lambda name: "it takes a day")
    Study("blondel_figure1", quick=True, folder=tmp_path).write("# T", {}, [])
    assert "what ran is the reduced version (it takes a day)" in page.render(tmp_path)


TABLES = """# First

| a |
|---|
| 1 |

Of the first.

# Second

| b |
|---|
| 2 |
"""


def test_the_page_follows_the_result_files(tmp_path, capsys):
    target, results = tmp_path / "page.md", tmp_path / "results"
    COST = "exact methods cost no more than partial ones"
    study = Study("blondel_table2", quick=True, folder=results, missing=["a", "b"])
    found = [Claim("P, table II", COST, "news20: no", "no"), Claim("P, table II", "x", "y", "yes")]
    study.write(TABLES, {}, found)
    check = Claim("P, table I", "it is our data", "it is not", "partly")
    Study("blondel_table1", folder=results).write("# T", {}, [check])
    Study("keerthi_tables", folder=results).write("| kept |", {}, [])  # a section without claims
    (results / "other.json").write_text('{"rows": []}')  # of no experiment: left out
    options = ["--page", str(target), "--results", str(results)]
    assert page.main([*options, "--check"]) == 1
    assert page.main(options) == 0
    assert page.main([*options, "--check"]) == 0
    text = target.read_text()
    assert "**Blondel, Fujino and Ueda 2014**: 1 of 2 claims hold.\n" in text  # ours not counted
    assert "| table I | (ours) it is our data | partly |" in text
    assert f"| table II | {COST} | does not hold |" in text
    assert f"- table II, does not hold: {COST}. Seen: news20: no. Why: the implementation:" in text
    assert "- table II, holds" not in text
    assert (
        f"**Claim** (table II): {COST}. **Seen:** news20: no. **Verdict:** does not hold ([" in text
    )
    assert "what ran is the reduced version, 2 cells of it missing, 20" in text  # and the date
    assert f"{provenance.machine()['cpu']} with" in text
    assert "**First**\n\n| a |\n|---|\n| 1 |\n\nOf the first.\n" in text
    assert "Second" not in text and "| b |" not in text and "# Claims" not in text
    assert text.index("### Table I:") < text.index("### Table II:") < text.index("| kept |")
    target.write_text(text + "By hand.\n")
    assert page.main([*options, "--check"]) == 1
    capsys.readouterr()


def test_claims_of_an_experiment_without_a_section_are_refused(tmp_path):
    Study("unknown", folder=tmp_path).write("# T", {}, [Claim("P, table 1", "x", "y", "no")])
    with pytest.raises(ValueError, match=r"unknown.json states claims.*experiments.py"):
        page.render(tmp_path)


def test_the_page_in_the_repository_is_complete_and_up_to_date():
    assert page.main(["--check"]) == 0
    text = page.PAGE.read_text()
    for path in common.FOLDER.glob("*.json"):
        assert f"`python -m benchmarks.papers.{path.stem}`" in text


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_reasons_are_given_for_claims_that_are_made(name):
    assert experiments.setup(name)
    path = common.FOLDER / f"{name}.json"
    if not path.is_file():
        pytest.skip("not run yet")
    content = json.loads(path.read_text())
    if "older than its module" in page.age(name, content):
        pytest.skip("the results are older than the module, as the page says")
    assert set(reasons(name)) <= {claim["claim"] for claim in content["claims"]}
