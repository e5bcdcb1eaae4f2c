"""Further tables and figures of the papers on generated data: they run, their parts are right."""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than tiny data do

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figures need matplotlib")

from benchmarks import datasets
from benchmarks.baselines.variable_fixing import knapsack
from benchmarks.papers import (
    blondel_figure1,
    blondel_figure2,
    blondel_table1,
    keerthi_figure5,
    keerthi_figures2_3,
    keerthi_section2,
    lapin_projection,
    lapin_table1,
    larank_table1,
    walrus_convergence,
    walrus_figure1,
    walrus_table1,
    walrus_table7,
    walrus_tables8_9,
)
from benchmarks.papers.study import Study
from polymargin.projections import project_capped_simplex


def generated(n_classes, n=300, n_features=60, dtype=np.float64):
    X, y = datasets.generate_sparse(n, n_features, n_classes, nonzeros=6, dtype=dtype)
    cut = 2 * n // 3
    return datasets.Dataset("generated", X[:cut], y[:cut], X[cut:], y[cut:])


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    data = generated(4)
    monkeypatch.setattr(datasets, "load", lambda name, **kwargs: data)


def run(module, folder, figure=True):
    """Run an experiment twice: the second time nothing is measured and the results are the same."""
    module.experiment(Study(module.NAME, True, folder))
    first = json.loads((folder / f"{module.NAME}.json").read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "draw", lambda *results: None, raising=False)  # once is enough
        module.experiment(Study(module.NAME, True, folder, measure=False))
    found = json.loads((folder / f"{module.NAME}.json").read_text())
    assert first == found and found["missing_cells"] == 0
    assert found["claims"] and {c["holds"] for c in found["claims"]} <= {
        "yes",
        "no",
        "partly",
        "not tested",
    }
    assert (folder / f"{module.NAME}.md").read_text().startswith("# ")
    if figure:
        assert (folder / f"{module.NAME}.png").read_bytes().startswith(b"\x89PNG")
    return found


def test_data_tables(tmp_path):
    found = run(blondel_table1, tmp_path, figure=False)
    assert found["data"]["news20"] == {
        "n_train": 200,
        "n_test": 100,
        "features": 60,
        "nonzero_percent": pytest.approx(10.0),
        "classes": 4,
    }
    assert found["claims"][0]["holds"] == "no"
    assert run(walrus_table1, tmp_path, figure=False)["claims"][0]["holds"] == "no"


def test_data_and_settings_of_larank(tmp_path, monkeypatch):
    monkeypatch.setattr(larank_table1, "load", lambda name: generated(4))
    usps = (200, 100, 4, 60, 10, 0.025, "usps")
    monkeypatch.setattr(larank_table1, "PAPER", larank_table1.PAPER | {"USPS": usps})
    (claim,) = run(larank_table1, tmp_path, figure=False)["claims"]
    assert claim["measured"] == "the same: usps; others: letter, mnist, news20"
    text = (tmp_path / "larank_table1.md").read_text()
    assert "| usps (USPS) | 200 (200, +0) | 100 (100, +0) | 4 (4, +0) | 60 (60, +0) |" in text
    assert "| 1000 (1000, +0) | 0.005 (0.005, +0) |" in text
    assert "| news20 (INEX) | 200 (6,053, -5,853) |" in text


def test_blondel_figure1(tmp_path, monkeypatch):
    monkeypatch.setattr(blondel_figure1, "DATA", ("news20",))
    found = run(blondel_figure1, tmp_path)
    by_label = found["summary"]["generated"]
    assert by_label["Sort"]["passes"] == by_label["Pivot"]["passes"]  # both exact
    assert found["splits"] == {"generated": 3}


def test_blondel_figure1_verdicts_follow_the_times():
    def one(seconds):
        to = {f"{t:g}": seconds for t in blondel_figure1.TARGETS}
        return {"seconds": to, "passes": to, "seconds to accuracy": seconds}

    first = {label: one(2.0) for label in blondel_figure1.METHODS} | {"Sort": one(1.0)}
    first["Pivot"] = one(1.0)
    claims = blondel_figure1.make_claims({"a": first})
    assert [c.holds for c in claims] == ["yes", "yes", "yes"]
    claims = blondel_figure1.make_claims({"a": first | {"Frank-Wolfe": one(0.5)}})
    assert [c.holds for c in claims] == ["no", "partly", "no"]


def test_blondel_figure2(tmp_path, monkeypatch):
    monkeypatch.setattr(blondel_figure2, "QUICK_SIZES", {"news20": (2, 3, 4, 9)})
    found = run(blondel_figure2, tmp_path)
    assert list(found["times"]["generated"]) == ["2", "3", "4"]
    assert len(found["times"]["generated"]["4"]["Sort"]["seconds"]) == 3  # samples


def test_samples_have_as_many_rows_whatever_the_classes():
    data = generated(4)
    n = blondel_figure2.rows_of_smallest(data, 2)
    for k in (2, 3, 4):
        X, y = blondel_figure2.sample(data, k, n)
        assert X.shape[0] == len(y) == n and set(y) == set(range(k))
    assert blondel_figure2.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)


def test_keerthi_figures2_3(tmp_path, monkeypatch):
    pytest.importorskip("clarabel", reason="the 1-slack method needs Clarabel")
    monkeypatch.setattr(keerthi_figures2_3, "HAS_NUMBA", True)
    monkeypatch.setattr(keerthi_figures2_3, "PROBLEMS", (("letter", 1.0), ("mnist", 0.1)))
    monkeypatch.setattr(keerthi_figures2_3, "LIMITS", {True: 0.3})
    monkeypatch.setattr(keerthi_figures2_3, "EPOCHS", 2)
    found = run(keerthi_figures2_3, tmp_path)
    for cell in found["problems"].values():
        for label, curve in cell["curves"].items():
            assert (curve["difference"] == []) == (label in keerthi_figures2_3.ONLINE)
            assert all(d >= -1e-5 for d in curve["difference"])  # nobody is above the optimum
    assert {c["paper"] for c in found["claims"]} == {"Keerthi, figure 2", "Keerthi, figure 3"}


def test_keerthi_orders():
    faster = keerthi_figures2_3.much_faster
    assert faster(1.0, 3.0, 3.0) is True
    assert faster(1.0, np.inf, 10.0) is True  # it was given ten times as long
    assert faster(2.0, 3.0, 3.0) is False
    assert faster(np.inf, 3.0, 3.0) is False
    assert faster(8.0, np.inf, 10.0) is None  # stopped too early to tell
    assert faster(np.inf, np.inf, 10.0) is None


def test_methods_that_have_hardly_begun_are_not_compared():
    assert keerthi_figures2_3.nearer(0.95, 0.99) is None
    assert keerthi_figures2_3.nearer(0.5, 0.99) is True
    assert keerthi_figures2_3.nearer(0.99, 0.5) is False


def test_claims_that_nobody_could_test_say_so():
    def cell(**seconds):
        return {
            "C": 10.0,
            "reference": {"accuracy": 0.9},
            "curves": {
                label: {
                    "passes": [1, 2],
                    "seconds": [1.0, end],
                    "difference": [0.99, last],
                    "accuracy": [0.1, 0.1],
                }
                for label, (end, last) in seconds.items()
            },
        }

    found = {"mnist, C = 10": cell(SDM=(6.0, 0.95), EG=(6.0, 0.99), CP=(6.0, 1.0))}
    claims = keerthi_figures2_3.make_claims(found)
    assert len(claims) == 14 and {claim.holds for claim in claims} == {"not tested"}
    found = {"mnist, C = 10": cell(SDM=(2.0, 0.005), EG=(6.0, 0.99), CP=(6.0, 1.0))}
    by_claim = {
        claim.claim: claim.holds
        for claim in keerthi_figures2_3.make_claims(found)
        if claim.paper == "Keerthi, figure 2"
    }
    assert by_claim["SDM is much faster than EG, to a dual difference of 0.01"] == "yes"
    assert by_claim["EG is much faster than cutting planes, to a dual difference of 0.01"] == (
        "not tested"
    )


def test_keerthi_curves_are_compared_at_the_same_moment():
    def curve(*points):
        return {"seconds": [s for s, _ in points], "difference": [d for _, d in points]}

    at = keerthi_figures2_3.at_equal_time
    fast, slow = curve((0.5, 0.1), (1.0, 1e-5)), curve((1.0, 0.5), (2.0, 0.3), (3.0, 1e-5))
    assert at(fast, slow) == (1e-5, 0.5)  # when the first of them is there
    late = curve((2.0, 0.6), (4.0, 0.1))
    assert at(slow, late) == (1e-5, 0.6)
    assert at(slow, late, 0.5) == (0.5, 1.0)


def test_keerthi_figure5(tmp_path, monkeypatch):
    monkeypatch.setattr(keerthi_figure5, "DATA", ("letter",))
    monkeypatch.setattr(keerthi_figure5, "LIMITS", {"small": 0.2})
    found = run(keerthi_figure5, tmp_path)
    assert set(found["curves"]["letter"]) == set(keerthi_figure5.LOSSES)


def test_an_accuracy_that_is_not_final_decides_nothing():
    def curve(last, gap):
        return {"seconds": [1.0, 2.0], "accuracy": [0.5, last], "last_gap": [gap]}

    curves = {"one-vs-rest": curve(0.9, 1e-3), "Crammer-Singer": curve(0.95, 1e-3)}
    found = {"mnist": curves | {"Weston-Watkins": curve(0.85, 0.3)}}
    same_time, better = keerthi_figure5.make_claims(found)
    assert same_time.holds == "not tested" and better.holds == "yes"
    assert better.measured.endswith("not final when its time was up: Weston-Watkins on mnist")


def test_steady_is_from_then_on():
    curve = {"seconds": [1.0, 2.0, 3.0, 4.0], "accuracy": [0.9, 0.5, 0.899, 0.9]}
    assert keerthi_figure5.steady_seconds(curve) == 3.0
    assert keerthi_figure5.steady_seconds({"seconds": [1.0], "accuracy": [0.3]}) == 1.0


def test_walrus_figure1(tmp_path, monkeypatch):
    monkeypatch.setattr(walrus_figure1, "MANY", ("clinc150",))
    found = run(walrus_figure1, tmp_path)
    for curves in found["curves"].values():
        ends = [curve["dual"][-1] for curve in curves.values()]
        np.testing.assert_allclose(ends, ends[0], rtol=1e-2)
        gaps = np.array(curves["walrus"]["primal"]) - curves["walrus"]["dual"]
        assert gaps[-1] <= 1e-3 * gaps[0]


def test_walrus_convergence(tmp_path, monkeypatch):
    monkeypatch.setattr(walrus_convergence, "QUICK", (("dna", 0.1),))
    monkeypatch.setattr(walrus_convergence, "LIMITS", {True: 0.5})
    found = run(walrus_convergence, tmp_path)
    (fit,) = found["fits"].values()
    assert 0 < fit["factor"] < 1 and fit["worst_pass"] < 1  # theorem 3.6


def test_a_geometric_sequence_is_a_straight_line():
    found = walrus_convergence.fit(0.8 ** np.arange(30))
    assert found["factor"] == pytest.approx(0.8) and found["r2"] == pytest.approx(1.0)
    assert found["worst_pass"] == pytest.approx(0.8)
    slower = walrus_convergence.fit(1.0 / np.arange(1, 4000) ** 2)  # sublinear: bends
    assert slower["worst_pass"] > 0.99


def test_walrus_table7(tmp_path, monkeypatch):
    monkeypatch.setattr(walrus_table7, "QUICK", ("dna",))
    monkeypatch.setattr(walrus_table7, "COSTS", (0.1, 1.0))
    found = run(walrus_table7, tmp_path, figure=False)
    assert set(found["data"]["dna"]["chosen"]) == {"0.01", "0.001"}
    assert found["data"]["dna"]["runs"] == 6


def test_table7_choices():
    assert walrus_table7.choose({1.0: 0.5, 2.0: 0.7, 4.0: 0.7}) == 2.0
    cell = {d: {"accuracy": a, "seconds": 1.0, "reached": True} for d, a in
            (("0.01", 0.9), ("0.001", 0.6))}  # fmt: skip
    other = {d: {"accuracy": 0.8, "seconds": 2.0, "reached": d == "0.01"} for d in cell}
    found = walrus_table7.summarise({1.0: [cell], 2.0: [other]})
    assert found["chosen"] == {"0.01": 1.0, "0.001": 2.0}
    assert found["lost"] == pytest.approx(0.2) and found["unfinished"] == 1
    assert walrus_table7.make_claims({"a": found})[0].holds == "no"


def test_walrus_tables8_9(tmp_path, monkeypatch):
    pytest.importorskip("clarabel", reason="one of the solvers")
    monkeypatch.setattr(walrus_tables8_9, "QUICK_SIZES", (3, 8))
    monkeypatch.setattr(walrus_tables8_9, "BATCH", 20)
    found = run(walrus_tables8_9, tmp_path)
    for cells in found["cells"].values():
        assert all(cell["error"] < 1e-3 for cell in cells.values())
        assert cells["walrus, one"]["error"] < 1e-10
    assert set(found["absent"]) == set(walrus_tables8_9.absent())


def test_what_a_call_costs_decides_nothing():
    def cells(general, ours):
        return {
            "walrus, one": {"microseconds": 50.0},  # slower than anybody: calls
            "walrus, batch": {"microseconds": ours},
            "quadprog": {"microseconds": general},
        }

    found = {2: cells(10.0, 0.1), 5: cells(12.0, 0.1), 100: cells(210.0, 10.0)}
    assert walrus_tables8_9.ratios(found) == {2: None, 5: None, 100: 20.0}
    (claim,) = walrus_tables8_9.make_claims(found)
    assert claim.holds == "yes" and "mostly calls from Python at 2, 5 variables" in claim.measured
    (claim,) = walrus_tables8_9.make_claims({2: cells(10.0, 0.1)})
    assert claim.holds == "not tested"


def test_the_subproblems_touch_both_bounds():
    b = walrus_tables8_9.solve_weston_watkins(walrus_tables8_9.vectors(50, 200), 1.0)
    assert (b == 0).any() and (b == 1).any() and ((b > 0) & (b < 1)).any()


@pytest.fixture
def small_lapin(monkeypatch):
    data = generated(12, n=360, dtype=np.float32)
    monkeypatch.setattr(datasets, "load", lambda name, **kwargs: data)
    settings = {"DATA": ("clinc150",), "POWERS": (-3, -2), "STEPS": (-2,), "FURTHEST": 1}
    settings |= {"EPOCHS": 1, "ROUNDS": 20, "RECALL": {"Recall@5": 5}, "SAMPLE": {"clinc150": 8}}
    settings |= {"WSABIE": {"W++, 1/256": 1}, "OTHERS": ("Recall@5", "TopPush OVA", "W++, 1/256")}
    settings |= {"METHODS": {m: lapin_table1.METHODS[m] for m in FOUR_METHODS}}
    for name, value in settings.items():
        monkeypatch.setattr(lapin_table1, name, value)


FOUR_METHODS = ("SVM OVA", "top-1 SVM", "top-10 SVM alpha", "top-10 SVM beta")


def test_lapin_table1(tmp_path, small_lapin):
    pytest.importorskip("clarabel", reason="the planes' program needs Clarabel")
    found = run(lapin_table1, tmp_path, figure=False)
    rows = found["table"]["clinc150, a sample"]
    assert found["rows"]["clinc150, a sample"] == 12 * 8
    assert set(rows) == {*FOUR_METHODS, "Recall@5", "TopPush OVA", "W++, 1/256"}
    for method, row in rows.items():
        low, high = row["tried"]
        for k in lapin_table1.MEASURES:
            model = row[str(k)]  # one model, so that its accuracies grow with k
            assert model["accuracy"] == sorted(model["accuracy"])
            if method in FOUR_METHODS:
                assert model["gap"] <= lapin_table1.TOL
            elif method != "W++, 1/256":
                assert np.isfinite(model["gap"])
            if model["power"] in (low, high):  # extended as far as allowed
                assert model["power"] in ((-3, -1) if method.startswith("W") else (-4, -1))
    assert len(found["claims"]) == 7


def test_models_are_chosen_by_the_measure_they_are_reported_on(small_lapin):
    scores = {-3: np.array([0.5, 0, 0, 0, 0.6, 0.9]), -2: np.array([0.4, 0, 0, 0, 0.7, 0.9])}
    assert lapin_table1.chosen_powers(scores) == {1: -3, 5: -2, 10: -2}  # of equals the largest
    row = {"1": {"accuracy": [50, 1, 1, 1, 1, 1]}, "5": {"accuracy": [2, 2, 2, 2, 60, 2]}}
    assert [lapin_table1.accuracy_at(row, k) for k in (1, 5)] == [50, 60]


def test_the_whole_data_are_in_the_full_version_only(tmp_path, small_lapin, monkeypatch):
    monkeypatch.setattr(lapin_table1, "OTHERS", ())
    lapin_table1.experiment(Study(lapin_table1.NAME, False, tmp_path))
    found = json.loads((tmp_path / "lapin_table1.json").read_text())
    assert found["rows"] == {"clinc150, a sample": 96, "clinc150": 240}
    cells = json.loads((tmp_path / ".cache" / "lapin_table1.json").read_text())["cells"]
    assert {key.split(" fold ")[1][0] for key in cells if " 240 rows" in key and "fold" in key} == {
        "0", "1", "2",
    }  # fmt: skip


def test_which_example_comes_next(tmp_path, monkeypatch):
    monkeypatch.setattr(keerthi_section2, "DATA", ("usps",))
    monkeypatch.setattr(keerthi_section2, "HAS_NUMBA", True)
    found = run(keerthi_section2, tmp_path, figure=False)
    curves = found["problems"]["usps"]
    for curve in curves.values():
        assert min(curve["difference"]) > -1e-5
        assert curve["difference"][-1] <= keerthi_section2.TARGETS[-1]
    assert curves["largest violation"]["steps"][-1] < curves["sequential"]["steps"][-1]
    assert [claim["holds"] for claim in found["claims"]][1] == "yes"
    ends = found["stopped"]["usps"]
    assert ends["1"]["passes"] <= ends["0.1"]["passes"] <= ends["0.01"]["passes"]
    assert ends["1"]["gap"] > ends["0.01"]["gap"]


def test_top_push_beats_guessing():
    data = generated(4)
    coef, gap = lapin_table1.fit(data.X_train, data.y_train, 4, lapin_table1.TOP_PUSH, -2, 200)
    scores = np.asarray(data.X_test @ coef.T)
    assert lapin_table1.top_k_accuracies(scores, data.y_test)[0] > 0.4 and gap < 0.5


def test_top_k_accuracies_by_hand():
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    y = np.array([1, 0, 0])
    assert lapin_table1.top_k_accuracies(scores, y, (1, 2, 3)) == pytest.approx([0, 2 / 3, 1])


def test_fewer_rows_takes_so_many_of_every_class():
    data = lapin_table1.fewer_rows(generated(4), 7)
    np.testing.assert_array_equal(np.bincount(data.y_train), [7, 7, 7, 7])


def test_the_best_lambda_of_every_column():
    scores = {-1: np.array([0.5, 0.9]), 0: np.array([0.5, 0.2]), 1: np.array([0.1, 0.9])}
    assert lapin_table1.best_powers(scores) == [0, 1]


@pytest.mark.parametrize("upper", [1.0, 0.2, 0.05])
@pytest.mark.parametrize("shift", [-2.0, 0.0, 3.0])
def test_variable_fixing_is_the_projection(upper, shift):
    V = np.random.default_rng(0).standard_normal((40, 30)) + shift
    expected = project_capped_simplex(V, upper, equality=False)
    np.testing.assert_allclose(knapsack(V, upper), expected, atol=1e-12)


def test_lapin_projection(tmp_path, monkeypatch):
    monkeypatch.setattr(lapin_projection, "QUICK_SIZES", (60, 100))
    monkeypatch.setattr(lapin_projection, "ENTRIES", 1000)
    monkeypatch.setattr(lapin_projection, "HAS_NUMBA", True)
    found = run(lapin_projection, tmp_path)
    assert set(found["nanoseconds"]) == {"1", "5", "10", "50"}
