"""``--costs``: a CSV file becomes the margins of the model, and what predictions cost is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest

import polymargin
from polymargin import LinearMulticlassSVC
from polymargin.cli._errors import Exit
from polymargin.costs import mean_cost
from tests.cli.conftest import CLASSES

LABELS = sorted(CLASSES)
COSTS = np.array([[0.0, 4.0, 0.5], [1.0, 0.0, 2.0], [0.25, 3.0, 0.0]])

# models of tables know the names of their columns; the arrays given to them here have none
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def write_costs(path, costs=COSTS, labels=LABELS, order=(2, 0, 1)):
    lines = [",".join(["", *(str(labels[j]) for j in order)])]
    lines += [
        ",".join([str(labels[i]), *("" if i == j else f"{costs[i, j]:g}" for j in order)])
        for i in order
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def costs(tmp_path):
    return write_costs(tmp_path / "costs.csv")


def test_training_takes_them_and_the_model_remembers(run, csv, costs, numbers):
    X, y = numbers
    labels = np.array(CLASSES)[y - 1]
    arguments = ("--test", csv, "-o", "m.pmz", "--json", "--scale", "none")
    ran = run("train", csv, "--costs", costs, *arguments)
    assert ran.code == Exit.OK
    model = polymargin.load("m.pmz")
    np.testing.assert_array_equal(model.cost_matrix, COSTS)
    same = LinearMulticlassSVC(cost_matrix=COSTS, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    expected = mean_cost(labels, model.predict(X), COSTS, model.classes_)
    assert ran.json["test"]["mean_cost"] == pytest.approx(expected)
    assert "3 x 3 numbers, 0 to 4" in run("inspect", "m.pmz").out


def test_evaluate_shows_the_mean_cost_and_the_dearest_confusions_first(run, csv, costs):
    assert run("train", csv, "--costs", costs, "-q", "-o", "m.pmz").code == Exit.OK
    ran = run("evaluate", "m.pmz", csv, "--report", "r.html")
    assert "mean cost" in ran.out
    assert "cost of each" in ran.out
    pairs = run("evaluate", "m.pmz", csv, "--json").json["confused_pairs"]
    totals = [pair["cost"] * pair["count"] for pair in pairs]
    assert totals == sorted(totals, reverse=True)
    with open("r.html", encoding="utf-8") as file:
        page = file.read()
    assert "mean cost" in page
    assert "most expensive" in page


def test_evaluate_takes_costs_for_any_model(run, csv, tmp_path, numbers):
    X, y = numbers
    assert run("train", csv, "-q", "-o", "m.pmz").code == Exit.OK
    assert "mean_cost" not in run("evaluate", "m.pmz", csv, "--json").json
    path = write_costs(tmp_path / "c.csv", 2 * COSTS)
    found = run("evaluate", "m.pmz", csv, "--json", "--costs", path).json
    predicted = polymargin.load("m.pmz").predict(X)
    expected = mean_cost(np.array(CLASSES)[y - 1], predicted, 2 * COSTS, LABELS)
    assert found["mean_cost"] == pytest.approx(expected)


def test_labels_may_be_numbers(run, svm, tmp_path):
    path = write_costs(tmp_path / "costs.csv", labels=[1, 2, 3])
    assert run("train", svm, "--costs", path, "-o", "m.pmz").code == Exit.OK
    np.testing.assert_array_equal(polymargin.load("m.pmz").cost_matrix, COSTS)


@pytest.mark.parametrize("options", ["--online", "--kernel rbf", "--memory 1MB", "--cv 3"])
def test_every_way_of_training(run, svm, tmp_path, options):
    path = write_costs(tmp_path / "costs.csv", labels=[1, 2, 3])
    ran = run("train", svm, "--costs", path, *options.split(), "-o", "m.pmz", "--json")
    assert ran.code == Exit.OK
    np.testing.assert_array_equal(polymargin.load("m.pmz").cost_matrix, COSTS)
    if "--cv" in options:
        assert ran.json["cross_validation"]["mean_cost"] > 0


def test_unknown_labels_of_the_test_data_have_no_cost(run, csv, costs, numbers, tmp_path):
    assert run("train", csv, "--costs", costs, "-q", "-o", "m.pmz").code == Exit.OK
    lines = csv.read_text().splitlines()
    fields = lines[1].split(",")
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join([*lines, ",".join([*fields[:-1], "plum"])]) + "\n")
    known = run("evaluate", "m.pmz", csv, "--json").json
    found = json.loads(run("evaluate", "m.pmz", odd, "--json").out)
    assert found["mean_cost"] == pytest.approx(known["mean_cost"])
    assert [pair["cost"] for pair in found["confused_pairs"] if pair["true"] == "plum"] == [None]
    assert "(of 120 examples)" in run("evaluate", "m.pmz", odd).out


GOOD = ",a,b\na,0,1\nb,2,0\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a first row"),
        (GOOD.replace("1", "-1"), "is negative"),
        (GOOD.replace("1", "nan"), "not a finite number"),
        (GOOD.replace("1", "much"), "line 2: the cost of predicting 'b' where 'a' is true must be"),
        (GOOD.replace("a,0", "a,1"), "on its diagonal, for 'a'"),
        (GOOD.replace("b,2,0", "b,2"), "line 3: expected 2 costs"),
        (GOOD.replace("b,2,0\n", ""), "'b' has a column, but no row"),
        (GOOD.replace("b,2", "c,2"), "the label 'c' has a row, but no column"),
        (GOOD.replace("b,2", "a,2"), "the first column has the label 'a' twice"),
        (GOOD.replace(",a,b", ",a,"), "a cell without a label"),
        (GOOD.replace("b", "c"), "does not know: 'b'"),
        (GOOD.replace("1", " "), "must be a number, got ''"),
    ],
)
def test_files_that_make_no_sense(run, tmp_path, text, said):
    data = tmp_path / "data.csv"
    data.write_text("x,label\n" + "1,a\n2,b\n" * 4)
    path = tmp_path / "costs.csv"
    path.write_text(text)
    ran = run("train", data, "--costs", path, "-o", "m.pmz")
    assert ran.code == Exit.DATA
    assert str(path) in ran.err
    assert said in ran.err


def test_refusals(run, csv, costs):
    assert run("train", csv, "--costs", "absent.csv").code == Exit.DATA
    for loss in ("one_vs_rest", "softmax"):
        ran = run("train", csv, "--costs", costs, "--loss", loss)
        assert (ran.code, "--costs needs --loss crammer_singer" in ran.err) == (Exit.USAGE, True)
    assert run("train", csv, "--costs", costs, "-o", costs).code == Exit.USAGE
