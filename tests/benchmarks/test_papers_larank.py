"""The benchmarks of the LaRank paper: its data, and how the tables show them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.baselines.kernel_online import KernelPerceptron
from benchmarks.datasets import Dataset
from benchmarks.papers import larank_data, larank_figures, larank_table2
from polymargin.kernel_functions import KernelFunction


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYMARGIN_DATA", str(tmp_path))
    return tmp_path


def save(folder, name, train, test):
    arrays = {"train_X": train, "test_X": test}
    for part, X in (("train", train), ("test", test)):
        arrays[f"{part}_y"] = np.arange(len(X), dtype=np.int32) % 3
    np.savez(folder / f"{name}.npz", **arrays)


def test_letter_has_raw_features_and_the_split_of_the_paper(folder):
    raw = np.random.default_rng(0).integers(0, 16, (16_010, 2)).astype(np.int8)
    save(folder, "letter", raw[:15_000], raw[15_000:])
    data = larank_data.load("letter")
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(data.X_train, raw[:16_000])
    np.testing.assert_array_equal(data.X_test, raw[16_000:])
    assert (
        len(data.y_train) == 16_000 and len(larank_data.load("letter", quick=True).y_train) == 1600
    )


def test_usps_has_pixels_from_zero(folder):
    save(folder, "usps", np.array([[-1.0, 1.0], [0.0, 0.5]]), np.array([[1.0, -1.0]]))
    np.testing.assert_array_equal(larank_data.load("usps").X_train, [[0, 1], [0.5, 0.75]])
    np.testing.assert_array_equal(larank_data.load("usps*1.25").X_test, [[1.25, 0]])


def test_the_paper_is_quoted_beside_full_data_only():
    row = {"data": "usps", "method": "x1", "error": 4.3, "dual": 500.4, "kernels": 9.0, "epochs": 1}
    assert "| 4.30 (4.25, +0.05) | 500 (503, -1%) |  | 9.0 (9.4, -4%) |" in larank_table2.line(
        row | {"quick": False}
    )
    assert "(" not in larank_table2.line(row | {"quick": True})
    assert "| 1.0 (85) |" in larank_table2.line(row | {"quick": False, "seconds": 1.0})


def test_a_method_that_was_stopped_proves_only_what_it_needed():
    def row(method, kernels, gap):
        figures = {"error": 4.0, "kernels": kernels, "argmax": 1.0, "gap": gap, "examples": 250}
        return {"data": "usps", "method": method, **figures}

    def seen(mcsvm):
        rows = [row("x1", 1.0, None), row("gap", 2.0, 1.0) | {"argmax": 2.0}, mcsvm]
        found = [c for c in larank_table2.claims(rows) if "MCSVM" in c.claim]
        return [(c.holds, c.measured) for c in found]

    def beside(share):
        return f"({share} without those of the gap)"

    assert seen(row("MCSVM", 4.0, 9.0)) == [("yes", f"usps: 50% {beside('50%')}")]
    assert seen(row("MCSVM", 1.0, 9.0)) == [("no", f"usps: 200% {beside('200%')}")]
    assert seen(row("MCSVM", 4.0, 99.0)) == [("yes", f"usps: below 50% {beside('50%')}")]
    assert seen(row("MCSVM", 1.0, 99.0)) == []


@pytest.mark.parametrize(("argmax", "holds"), [(3.0, "yes"), (14.0, "no")])
def test_arg_max_calculations_are_counted_in_multiples_of_n(argmax, holds):
    row = {"data": "usps", "error": 4.0, "kernels": 1.0, "argmax": argmax, "examples": 1000}
    rows = [row | {"method": "x1"}, row | {"method": "gap"}]
    (claim,) = [c for c in larank_table2.claims(rows) if "arg max" in c.claim]
    assert claim.holds == holds
    assert claim.measured.startswith(f"usps: {argmax:.1f} n")


def test_the_averaged_perceptron_averages():
    rng = np.random.default_rng(0)
    y = np.arange(90, dtype=np.int32) % 3
    X = (rng.standard_normal((90, 4)) + 4 * np.eye(3, 4)[y]).astype(np.float32)
    perceptron = KernelPerceptron(X, y, KernelFunction("rbf", gamma=0.025))
    total = np.zeros((3, 90))
    add = perceptron._add

    def add_and_sum(i, change):
        add(i, change)  # in every later sum, this one included
        total[:, perceptron.slot[i]] += change * (90 - perceptron.n_argmax + 1)

    perceptron._add = add_and_sum
    perceptron.epoch()
    average = perceptron.beta - perceptron.sums / (perceptron.n_argmax + 1)
    np.testing.assert_allclose(average, total / 91, atol=1e-6)
    assert perceptron.error(X, y) < 10


def test_gap_evaluations_count_as_kernel_evaluations():
    figures = {"data": "usps", "error": 4.0, "examples": 250, "argmax": 1.0}
    gap = figures | {"method": "gap", "kernels": 2.0, "gap_kernels": 5.0, "gap": 1.0}
    rows = [figures | {"method": "x1", "kernels": 1.0}, gap]
    rows.append(figures | {"method": "MCSVM", "kernels": 4.0, "gap": 1.0})
    (claim,) = [c for c in larank_table2.claims(rows) if "MCSVM" in c.claim]
    assert claim.holds == "no"
    assert claim.measured == "usps: 175% (50% without those of the gap)"


def test_svmstruct_is_compared_by_what_it_stores_and_takes():
    def seen(struct, **changes):
        figures = {"data": "usps", "examples": 1000, "classes": 10}
        gap = {"method": "gap", "error": 4.0, "kernels": 2.0, "gap_kernels": 4.0, "argmax": 60.0}
        gap |= {"seconds": 2.0, "gradient": 1.0}
        rows = [figures | {"method": "x1", "error": 4.0, "kernels": 1.0, "argmax": 1.0}]
        rows += [figures | gap, figures | {"method": "SVMstruct"} | struct | changes]
        return {c.claim: (c.holds, c.measured) for c in larank_table2.claims(rows)}

    struct = {"error": 4.1, "kernels": 60.0, "argmax": 50.0, "seconds": 8.0, "gradient": 0.6}
    found = seen(struct, stopped=False)
    holds, text = found["LaRank uses gradients as sparingly as SVMstruct"]
    assert holds == "yes" and "usps: 10.0% and 6.0%" in text
    holds, text = found["LaRank runs considerably faster than SVMstruct"]
    assert holds == "yes" and "usps: 4.0 times" in text and "usps: 10.0 times" in text
    assert found["LaRank provides the performance of SVMstruct"][0] == "yes"
    assert found["SVMstruct takes fewer arg max calculations than LaRankGap"][0] == "yes"

    found = seen(struct, stopped=False, gradient=0.4, seconds=3.0, error=3.0, argmax=70.0)
    assert {holds for claim, (holds, _) in found.items() if "SVMstruct" in claim} == {"no"}

    found = seen(struct, stopped=True)  # it would have needed more
    assert "usps: above 4.0 times" in found["LaRank runs considerably faster than SVMstruct"][1]
    assert "LaRank provides the performance of SVMstruct" not in found
    assert "LaRank runs considerably faster than SVMstruct" not in seen(
        struct, stopped=True, seconds=3.0
    )


def test_the_tables_and_figures_run_on_small_data(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(120, dtype=np.int32) % 3
    X = (rng.standard_normal((120, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32)

    def small(name, quick=False):
        return Dataset(name, X[:80], y[:80], X[80:], y[80:])

    for module in (larank_table2, larank_figures):
        monkeypatch.setattr(module, "load", small)
        monkeypatch.setattr(module, "SEEDS", 1)
    monkeypatch.setattr(larank_table2, "DATA", ("usps", "mnist"))
    assert larank_table2.main(["--quick", "--output", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "larank_table2.json").read_text())
    assert len(content["rows"]) == 2 * len(larank_table2.METHODS) - 2
    assert len(content["claims"]) == 8
    by = {(row["data"], row["method"]): row for row in content["rows"]}
    for name, C in (("usps", 10), ("mnist", 1000)):
        for method in ("gap", "batch", "MCSVM"):  # they solve the same problem
            assert by[name, method]["gap"] <= C
        struct = by[name, "SVMstruct"]
        assert 0 <= struct["gap"] <= 2 * larank_table2.EPSILON * C * 80 and not struct["stopped"]
        assert abs(struct["dual"] - by[name, "gap"]["dual"]) <= C
        assert by[name, "batch"]["dual"] <= by[name, "MCSVM"]["dual"] + C
    assert larank_figures.main(["--quick", "--output", str(tmp_path)]) == 0
    assert len(json.loads((tmp_path / "larank_figures.json").read_text())["claims"]) == 6
    assert (tmp_path / "larank_figures.png").stat().st_size > 10_000
