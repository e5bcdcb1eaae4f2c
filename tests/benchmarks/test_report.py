"""Tables, plots and the results page: they say what the files say, and name what is missing."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("matplotlib", reason="the plots need matplotlib")

from benchmarks import report
from benchmarks.solvers_bench import plots, tables


def cell(setting, cpu, distance, **more):
    base = {"setting": setting, "status": "ok", "cpu": cpu, "wall": cpu / 2, "total": cpu}
    base |= {"limit": 120.0, "budget": 300.0}
    return base | {"suboptimality": distance, "accuracy": 0.9, "memory_mb": 12.3} | more


def series(solver, cells, *, ours=False, state="reached", threads=1, objective="crammer_singer"):
    return {
        "data": "letter",
        "C": 1.0,
        "objective": objective,
        "solver": solver,
        "ours": ours,
        "threads": threads,
        "setting": "tol",
        "package": "numpy",
        "reference": {"primal": 1.0, "gap": 2e-5, "lower_bound": 1.0},
        "state": state,
        "cells": cells,
    }


def ours(*times):
    history = {"time": [0.1, 0.2], "gap": [1e-2, 1e-3]}
    cells = [
        cell(setting, time, distance, passes=7, gap=distance, history=history)
        for setting, time, distance in zip((1e-2, 1e-3), times, (8e-3, 8e-4), strict=True)
    ]
    return series(tables.OURS, cells, ours=True)


@pytest.fixture
def content():
    timeout = {"setting": 1e-3, "status": "timeout", "limit": 120.0, "budget": 300.0}
    fast = series("LIBLINEAR -s 4", [cell(0.1, 1.0, 9e-3), cell(0.01, 3.0, 5e-4)])
    slow = series("NumPy SGD", [cell(1, 9.0, 0.3), timeout], state="timeout")
    two = series("polymargin [float64, 2 threads]", [cell(1e-3, 1.0, 9e-4)], ours=True, threads=2)
    other = [cell(1e-1, 0.5, None), cell(1e-2, 0.7, None) | {"status": "not converged"}]
    logistic = series("LogisticRegression", other, state="done", objective="logistic")
    return tables.compact(
        {
            "date": "2026-01-02",
            "commit": "abc",
            "machine": {"cpu": "some CPU", "cores": 2, "memory_gb": 8.0},
            "versions": {"polymargin": "1"},
            "planned": ["letter C=1 crammer_singer", "aloi C=1 crammer_singer"],
            "absent": {"snapml SVM": "snapml is not usable"},
            "absent_data": {"mnist": "no file"},
            "series": [ours(0.5, 1.0), two, fast, slow, logistic],
        }
    )


def test_the_fastest_run_that_got_there_counts(content):
    by_name = {one["solver"]: one for one in content["series"]}
    assert tables.seconds_to(by_name[tables.OURS], 1e-2) == 0.5
    assert tables.seconds_to(by_name[tables.OURS], 1e-3) == 1.0
    assert tables.seconds_to(by_name["NumPy SGD"], 1e-2) is None
    assert tables.seconds_to(by_name["polymargin [float64, 2 threads]"], 1e-3) == 0.5  # wall


def test_ratios_timeouts_and_absences_are_in_the_tables(content):
    text = tables.page(content)
    assert "| letter | 1 | 1 | not run | 3 | over 120 s | 3.0x | 3.0x |" in text
    assert "polymargin (float64, one thread) is first in 1 of 1 problems." in text
    assert "absent: snapml SVM: snapml is not usable" in text
    assert "absent: mnist: no file" in text
    assert "| LIBLINEAR -s 4 | 1 | 3 | 1.00 |  | 90.00 | 12 |" in text
    assert "| LogisticRegression | tol=0.01 | 0.7 | 90.00 | 12 | not converged |" in text


def test_problems_that_polymargin_does_not_solve_count(content):
    far = [cell(1e-2, 5.0, 4e-2, passes=9, gap=5e-2)]
    content["series"][0] = series(tables.OURS, far, ours=True, state="over budget")
    text = tables.ratios(content)
    assert "| over budget (4e-02) | not run | 3 | over 120 s |  | (not first) |" in text
    assert "first in 0 of 1 problems." in text
    assert "LIBLINEAR -s 4 needs 3 s; distances" in text
    del content["series"][2]  # the peer that got there
    text = tables.ratios(content)
    assert "| nobody got there |" in text
    assert (
        "first in 0 of 0 problems; 1 more neither it nor a peer solved within the limits." in text
    )
    assert "polymargin [float64, 1 thread] 4.0e-02 (5 s)" in text
    content["series"].append(series(tables.OURS_SINGLE, [cell(1e-3, 9.0, 9e-4)], ours=True))
    assert "| only float32 got there |" in tables.ratios(content)


def test_what_was_not_tried_says_why(content):
    skipped = {"setting": 0.1, "status": "skipped", "since": 0.01, "limit": 60.0, "budget": 60.0}
    content["series"][2] = series("LIBLINEAR -s 4", [skipped], state="skipped")
    assert "| not tried (over 60 s at C = 0.01) |" in tables.ratios(content)
    (text,) = report._limits(content)
    assert "A run may take 60 to 120 s of CPU" in text
    assert "on a problem 60 to 300 s" in text


def test_a_result_file_reads_back_as_it_was(content, tmp_path):
    tables.write(tmp_path / "folder" / "file.json", content)
    text = (tmp_path / "folder" / "file.json").read_text()
    assert json.loads(text) == json.loads(json.dumps(content))
    runs = [cell for one in content["series"] for cell in one["cells"]]
    assert sum('"status"' in line for line in text.splitlines()) == len(runs)


def test_where_we_are_not_first_it_is_marked_and_explained(content):
    content["series"][0] = tables.compact({"series": [ours(2.0, 9.0)]})["series"][0]
    text = tables.ratios(content)
    assert "0.3x (not first)" in text
    assert "first in 0 of 1" in text
    assert "letter C=1: LIBLINEAR -s 4 needs 3 s, polymargin 9 s in 7 passes" in text
    assert "2 certificates included" in text
    assert "ended 8.0e-03 above after 2 s" in text


def test_no_peer_that_got_there(content):
    content["series"] = [one for one in content["series"] if "LIBLINEAR" not in one["solver"]]
    assert "no peer got there" in tables.ratios(content)


@pytest.mark.parametrize(
    ("state", "cells", "expected"),
    [
        ("error", [{"setting": 1, "status": "error", "error": "a|b"}], "error: a/b"),
        ("over budget", [cell(1, 9.0, 0.02)], "over budget (2e-02)"),
        ("unfinished", [cell(1, 9.0, 0.02)], "unfinished (2e-02)"),
        ("not reached", [cell(1, 9.0, 0.02)], "not reached (2e-02)"),
    ],
)
def test_other_endings(state, cells, expected):
    assert tables.outcome(series("peer", cells, state=state), 1e-3) == expected


def test_histories_become_counts_and_figures_are_rounded(content):
    cells = content["series"][0]["cells"]
    assert [("history" in c, c["certificates"]) for c in cells] == [(False, 2), (False, 2)]
    one = tables.compact({"series": [series("peer", [cell(1, 1 / 3, 0.5)])]})
    assert one["series"][0]["cells"][0]["cpu"] == 0.333333


def test_other_losses_are_shown_by_their_steady_accuracy(content):
    logistic = content["series"][-1]
    logistic["cells"][0]["accuracy"] = logistic["cells"][1]["accuracy"] - 5e-4
    header, _, row = tables.other_losses(content).splitlines()[2:]
    assert header.endswith("polymargin one_vs_rest | LogisticRegression |")
    accuracy = f"{100 * logistic['cells'][1]['accuracy']:.2f}"
    assert row.startswith("| letter | 1 |") and "| not run |" in row
    assert row.endswith(f"| {accuracy} (0.5) |")
    logistic["cells"][0]["accuracy"] -= 5e-3
    assert f"| {accuracy} (0.7) |" in tables.other_losses(content)
    assert tables.other_losses(content | {"series": content["series"][:-1]}) == ""


def test_curves_have_a_line_per_solver(content):
    figure = plots.draw(content, "letter", 1.0)
    distances, legend, gaps, empty, accuracies, others = figure.axes
    assert len(distances.lines) == len(accuracies.lines) == 3  # one thread only
    assert [len(axes.lines) for axes in (gaps, others, empty)] == [1, 1, 0]
    assert len(legend.get_legend().get_texts()) == 4
    assert plots.draw(content, "usps", 1.0) is None


def test_the_page_is_made_of_the_files(content, tmp_path):
    results, page = tmp_path / "results", tmp_path / "docs" / "benchmarks.md"
    (results / "papers").mkdir(parents=True)
    text = report.write(results, page)
    assert text.count("Not run") == 6
    assert "No result file states claims" in text

    (results / "solvers_full.json").write_text(json.dumps(content))
    (results / "speed.json").write_text(json.dumps({"versions": {"numpy": "2"}, "rows": []}))
    (results / "speed.md").write_text("| speed |\n")
    write_claims(results / "papers")
    assert report.main(["--results", str(results), "--page", str(page)]) == 0
    text = page.read_text()
    assert "1 of 2 problems were run." in text
    assert "- crammer_singer, not run: aloi (C = 1)." in text
    assert "## The papers' claims\n\n1 of 4 claims hold on our data" in text
    assert "some CPU" in text
    assert "![letter, C = 1](../results/solvers_letter_C1.png)" in text
    assert (results / "solvers_letter_C1.png").stat().st_size > 1000


SLOW = "after one pass, SMO is more accurate than Frank-Wolfe"


def write_claims(folder):
    claims = [
        {"paper": "A, table 1", "claim": "x | y", "measured": "2 times", "holds": "yes"},
        {"paper": "A, table 2", "claim": SLOW, "measured": "3 %", "holds": "no"},
        {"paper": "A, table 3", "claim": SLOW, "measured": "4 %", "holds": "partly"},
    ]
    other = [{"paper": "B, figure 1", "claim": "z", "measured": "some", "holds": "partly"}]
    (folder / "blondel_table2.json").write_text(json.dumps({"claims": claims}))
    (folder / "walrus_figure2.json").write_text(json.dumps({"claims": other}))
    (folder / "keerthi_tables.json").write_text(json.dumps({"claims": []}))
    (folder / "b.json").write_text(json.dumps([1, 2]))


def test_claims_are_listed_by_paper_and_what_does_not_hold_is_explained(tmp_path):
    write_claims(tmp_path)
    text = "\n".join(report.claims_section(tmp_path))
    assert "**Blondel, Fujino and Ueda 2014**: 1 of 3 claims hold.\n\n| table or figure |" in text
    assert "**Wang and Scott 2021 (Walrus)**: 0 of 1 claims hold." in text
    assert "| table 1 | x \\| y | 2 times | holds |" in text
    assert "[papers](papers.md)" in text
    below = text.split("### What does not hold, or only partly")[1]
    assert f"- table 2, does not hold: {SLOW}. Why: the data:" in below
    assert f"- table 3, partly: {SLOW}. Why: as above.\n" in below
    assert "- figure 1, partly: z.\n" in below
    assert "x | y" not in below and "Seen" not in below
    assert "Measured without a claim in the file: b, keerthi_tables." in below
