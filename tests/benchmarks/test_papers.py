"""The repeated experiments of the papers on generated data: they run and measure what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from benchmarks import datasets
from benchmarks.papers import (
    blondel_figures3_4,
    blondel_table2,
    common,
    keerthi_figures1_4,
    walrus_figure2,
)
from benchmarks.papers.study import Study, run
from benchmarks.papers.trace import Trace, first_below, trace
from benchmarks.passes import make_problem
from polymargin import DualSolver


@pytest.fixture(scope="module")
def data():
    X, y = datasets.generate_sparse(300, 60, 4, nonzeros=6, dtype=np.float64)
    return datasets.Dataset("generated", X[:200], y[:200], X[200:], y[200:])


@pytest.fixture
def no_files(data, monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda name, **kwargs: data)


@pytest.mark.parametrize("seed", range(3))
def test_paired_test_is_wilcoxons(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((2, 10))
    found = common.paired_test(first, second)
    assert found.p == pytest.approx(stats.wilcoxon(first, second).pvalue)
    assert found.mean == pytest.approx(np.mean(first) - np.mean(second))
    assert found.wins + found.losses == 10
    assert found.wins == sum(a > b for a, b in zip(first, second, strict=True))


def test_paired_test_by_hand():
    # ten positive differences: two of 2^10 sign patterns are as extreme
    assert common.paired_test(np.arange(1, 11), np.zeros(10)).p == pytest.approx(2 / 2**10)
    assert common.paired_test([1.0, 2.0], [1.0, 2.0]) == common.PairedTest(0.0, 0, 0, 1.0)


def test_splits_keep_the_classes_and_use_every_row(data):
    splits = common.stratified_splits(data, 3)
    total = np.bincount(np.concatenate([data.y_train, data.y_test]))
    for split in splits:
        assert split.X_train.shape[0] == split.y_train.size == 240
        train, test = np.bincount(split.y_train), np.bincount(split.y_test)
        np.testing.assert_array_equal(train + test, total)
        assert np.abs(test - total / 5).max() <= 1
    assert (splits[0].y_train != splits[1].y_train).any()


def test_the_only_row_of_a_class_is_for_training(data):
    y = data.y_test.copy()
    y[7] = 4
    lonely = datasets.Dataset("lonely", data.X_train, data.y_train, data.X_test, y)
    for split in common.stratified_splits(lonely, 2):
        assert (split.y_train == 4).sum() == 1 and (split.y_test == 4).sum() == 0
        assert split.y_train.size + split.y_test.size == 300


def test_table_cells():
    table = common.markdown_table(["a", "b", "c"], [["x", 0.12345, None], ["y", 7, "z"]])
    assert table.splitlines() == [
        "| a | b | c |",
        "|---|--:|--:|",
        "| x | 0.123 |  |",
        "| y | 7 | z |",
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"restricted": "sort", "shrinking": False, "acceleration": False, "certify": False},
        {"restricted": "active_set", "schedule": "sdm", "certify": False},
        {},
        {"acceleration": True},
    ],
)
def test_a_trace_goes_the_way_of_the_solver(data, settings):
    problem = make_problem(data.X_train, data.y_train)
    found = trace(DualSolver(**settings), problem, max_iter=12, seed=3)
    assert found.passes == list(range(1, 13))
    assert np.all(np.diff(found.seconds) > 0)
    certified = DualSolver(**settings | {"certify": settings.get("certify", True)})
    for passes in (1, 4, 12):
        solution = certified.solve(problem, tol=0.0, max_iter=passes, random_state=3)
        if np.isnan(solution.gap):  # judge the uncertified model by its weights
            scores = data.X_train @ solution.coef.T
            margins = 1.0 + scores - scores[np.arange(200), data.y_train][:, None]
            margins[np.arange(200), data.y_train] = 0.0
            primal = 0.5 * (solution.coef**2).sum() + margins.max(axis=1).sum()
        else:
            primal = solution.history["primal"][-1]
            assert found.dual[passes - 1] == pytest.approx(solution.history["dual"][-1])
        assert found.primal[passes - 1] == pytest.approx(primal)


def test_a_trace_ends_when_told(data):
    problem = make_problem(data.X_train, data.y_train)
    solver = DualSolver(shrinking=False, acceleration=False, certify=False)
    stopped = trace(solver, problem, max_iter=50, stop=lambda found: found.passes[-1] == 7)
    assert stopped.passes[-1] == 7
    assert trace(solver, problem, max_iter=50, seconds=0.0).passes == [1]
    sparse_looks = trace(solver, problem, max_iter=50, spacing=1.0)
    assert sparse_looks.passes[-1] == 50 and len(sparse_looks.passes) < 25


def test_first_below():
    assert first_below([3.0, 1.0, 2.0, 0.5], 1.0, [10, 20, 30, 40]) == 20
    assert first_below([3.0], 1.0, [10]) is None


def check_files(folder, name, figure=True):
    content = json.loads((folder / f"{name}.json").read_text())
    assert content["versions"]["polymargin"]
    for claim in content["claims"]:
        assert set(claim) == {"paper", "claim", "measured", "holds", "check"}
        assert claim["holds"] in ("yes", "no", "partly", "not tested")
    assert (folder / f"{name}.md").read_text().startswith("# ")
    if figure:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("no_files")
def test_blondel_table2(tmp_path):
    options = ["--quick", "--output", str(tmp_path)]
    assert run(blondel_table2.NAME, blondel_table2.experiment, "", options) == 0
    check_files(tmp_path, blondel_table2.NAME, figure=False)
    found = json.loads((tmp_path / "blondel_table2.json").read_text())
    accuracy, seconds = found["accuracy"]["generated"], found["seconds"]["generated"]
    assert accuracy["Sort"] == accuracy["Pivot"]  # both exact, in one order
    assert len(found["tests"]["generated"]) == 3 * 15
    assert all(len(values) == 3 for values in seconds["SMO"].values())
    # algorithm 1 as printed, with exact steps, makes the same passes
    assert found["printed"]["generated"]["Sort"] == accuracy["Sort"]
    assert set(found["printed"]["generated"]) == set(blondel_table2.PRINTED)
    other = found["other_splits"]["generated"]
    assert set(other) == {"Sort", "SMO", "Frank-Wolfe"} and other["Sort"] != accuracy["Sort"]
    assert blondel_table2.dearest_in_the_paper() == pytest.approx(0.33 / 0.27)


@pytest.mark.usefixtures("no_files")
def test_blondel_figures(tmp_path):
    blondel_figures3_4.experiment(Study(blondel_figures3_4.NAME, True, tmp_path))
    check_files(tmp_path, blondel_figures3_4.NAME)
    found = json.loads((tmp_path / "blondel_figures3_4.json").read_text())
    first, means = found["first_split"], found["figure3"]
    np.testing.assert_allclose(first["Sort"]["dual"], first["Pivot"]["dual"])
    assert means["Sort"]["end"] < means["tau=1e-01"]["end"]
    away = abs(first["Sort"]["dual"][-1] - found["optima"][0]) / abs(found["optima"][0])
    assert means["Sort"]["end"] == pytest.approx(away)  # the reduced version has one split


def test_means_over_splits_need_all_of_them():
    far = Trace([1, 2], [1.0, 2.0], dual=[8.0, 9.0], observed=[0.5, 0.6])
    near = Trace([1, 2], [1.0, 4.0], dual=[9.5, 9.9995], observed=[0.7, 0.8])
    found = blondel_figures3_4.mean_of([far, near], [10.0, 10.0])
    assert found.seconds[1e-1] == pytest.approx((2 + 1) / 2)
    assert found.seconds[1e-2] is None  # one of them never got there
    assert found.end == pytest.approx((0.1 + 0.00005) / 2)
    assert (found.first, found.last) == (pytest.approx(60.0), pytest.approx(70.0))
    assert found.per_pass == pytest.approx((1 + 2) / 2)


def test_keerthi_figures(tmp_path, data):
    study = Study(keerthi_figures1_4.NAME, True, tmp_path)
    found = keerthi_figures1_4.on_data(study, data, 0.2, 2.0)
    keerthi_figures1_4.write(study, *found)
    check_files(tmp_path, keerthi_figures1_4.NAME)
    found = json.loads((tmp_path / "keerthi_figures1_4.json").read_text())
    for loss, by_data in found["curves"].items():
        curves, best = by_data["generated"], found["optima"][loss]["generated"]["dual"]
        assert set(curves) == set(keerthi_figures1_4.CURVES)
        for curve in curves.values():
            assert curve["dual"][0] < curve["dual"][-1] <= best * (1 + 1e-5)


def test_heuristics_that_ran_on_longer_are_not_judged_by_a_curve_that_ended():
    curves = {
        "with heuristics": Trace([1, 2, 3], [1.0, 2.0, 9.0], dual=[0.6, 0.95, 0.9999]),
        "without": Trace([1, 2], [2.0, 5.0], dual=[0.6, 0.95]),
    }
    conditions, words = keerthi_figures1_4.pays(curves, 1.0)
    assert conditions == [None, None]  # 5 s are no proof that it would have needed more than 9
    assert "at least 0.6 times at 0.0001" in words
    curves["without"] = Trace([1, 2, 3], [2.0, 5.0, 27.0], dual=[0.6, 0.95, 0.9999])
    assert keerthi_figures1_4.pays(curves, 1.0)[0] == [True, True]
    curves["without"].seconds[-1] = 8.0
    assert keerthi_figures1_4.pays(curves, 1.0)[0] == [False, False]


def test_crossover_is_the_last_look_behind():
    first = Trace([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], dual=[0.0, 2.0, 6.0, 9.0])
    second = Trace([1, 2], [0.5, 3.5], dual=[1.0, 7.0])
    assert keerthi_figures1_4.crossover(first, second) == (2.0, pytest.approx(4.0))
    assert keerthi_figures1_4.crossover(second, first) == (3.5, pytest.approx(7.5))
    ahead = Trace([1], [1.0], dual=[5.0])
    assert keerthi_figures1_4.crossover(ahead, second) is None


@pytest.mark.usefixtures("no_files")
def test_walrus_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(walrus_figure2, "QUICK", ("letter",))
    walrus_figure2.experiment(Study(walrus_figure2.NAME, True, tmp_path))
    check_files(tmp_path, walrus_figure2.NAME)
    cells = json.loads((tmp_path / "walrus_figure2.json").read_text())["cells"]
    assert len(cells) == 3 * len(walrus_figure2.FEW)
    for cell in cells:
        times = list(cell["times"].values())
        assert times == sorted(times)  # a smaller gap takes longer
        assert cell["first_gap"] == pytest.approx(
            cells[cells.index(cell) // 3 * 3]["first_gap"], 1e-4
        )


@pytest.mark.usefixtures("no_files")
def test_where_the_greedy_method_gets_nowhere_nobody_else_runs(monkeypatch, data):
    monkeypatch.setattr(walrus_figure2, "DECAYS", (1e-9,))
    (cell,) = walrus_figure2.measure(data, 1.0, limit=0.0)
    assert cell.method == "greedy" and set(cell.times.values()) == {None}
    assert walrus_figure2.ratios([cell], "walrus") == []


def test_walrus_ratios_need_both_times():
    cells = [
        walrus_figure2.Cell("a", 5, 1.0, method, {"0.1": time}, 1, 1.0, 1.0)
        for method, time in (("greedy", 4.0), ("walrus", 1.0), ("newton", None))
    ]
    assert [r["ratio"] for r in walrus_figure2.ratios(cells, "walrus")] == [0.25]
    assert walrus_figure2.ratios(cells, "newton") == []


def test_decay_is_relative_to_the_first_gap():
    found = Trace([1, 2, 3], [1.0, 2.0, 3.0], [12.0, 11.0, 10.5], [2.0, 10.0, 10.4])
    assert walrus_figure2.decay_times(found) == {"0.1": 2.0, "0.01": 3.0, "0.001": None}
