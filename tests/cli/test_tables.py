"""Realistic tables through every command, with no option beyond the label and the text."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import polymargin
from polymargin import LinearMulticlassSVC
from polymargin.cli._errors import Exit
from polymargin.io import inspect_model
from tests.cli import realistic
from tests.cli.realistic import FORMATS

pytest.importorskip("pyarrow")


def reference(table: realistic.Realistic):
    """The pipeline that a person would write, fitted on what the columns mean; and these."""
    frame = pd.DataFrame({name: np.array(one, float) for name, one in table.numbers.items()})
    for name, values in table.categories.items():
        frame[name] = np.array(values, dtype=object)
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    parts = [("numbers", numbers, list(table.numbers)), ("kinds", rare, list(table.categories))]
    if table.text:
        frame[table.text] = [one or "" for one in table.columns[table.text]]
        parts.append(("words", TfidfVectorizer(), table.text))
    model = make_pipeline(ColumnTransformer(parts), LinearMulticlassSVC(random_state=0))
    return model.fit(frame, table.meant), frame


@pytest.mark.parametrize("name", realistic.ALL)
def test_every_command_on_a_realistic_table(run, tmp_path, name):
    table = realistic.ALL[name]()
    files = {suffix: table.write(tmp_path, suffix) for suffix in FORMATS}
    expected, frame = reference(table)
    lines = [label.replace("\n", " ") for label in expected.predict(frame).tolist()]
    for suffix, path in files.items():  # trained from each format, used on all
        model = f"{suffix}.pmz"
        ran = run("train", path, *table.options, "-o", model, "--report", "r.html", "--json")
        assert ran.code == Exit.OK, ran.err
        for other in files.values():
            assert run("predict", model, other, "-q").lines == lines
        loaded = polymargin.load(model)
        assert set(loaded[0].kinds) == {*frame.columns}
        np.testing.assert_allclose(  # called from Python with a frame, in another order
            loaded.decision_function(frame[frame.columns[::-1]]),
            expected.decision_function(frame),
            rtol=1e-9,
            atol=1e-12,
        )
    for other in files.values():
        found = run("evaluate", "csv.pmz", other, "--json", "--report", "r.html")
        assert found.json["accuracy"] == expected.score(frame, table.meant)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    shown = run("inspect", "csv.pmz")
    assert shown.code == Exit.OK
    for column in frame.columns:
        assert column in shown.out
        assert column.replace('"', "&quot;") in page
    exported = run("export", "csv.pmz", "--to", "onnx")
    assert exported.code == Exit.OK, exported.err
    assert_onnx_agrees("csv.onnx", loaded, frame, expected.predict(frame))
    ran = run("export", "csv.pmz", "--to", "liblinear")
    assert (ran.code, "export the last step" in ran.err) == (Exit.DATA, True)


def assert_onnx_agrees(path, loaded, frame, predicted):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    columns = loaded[0].transform(frame)
    names = loaded[0].get_feature_names_out()
    numbers = loaded[0].places("number", "date", "time")
    given = {}
    for place, one in enumerate(session.get_inputs()):
        kind = np.float32 if place in numbers else object
        given[one.name] = columns[:, [place]].astype(kind)
    assert len(given) == len(names)
    label, scores, *_ = session.run(None, given)
    np.testing.assert_array_equal(label, predicted)
    expected = loaded.decision_function(frame)
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_the_accuracy_is_that_of_the_pipeline_in_python(run, tmp_path, load):
    X, y = load(return_X_y=True, as_frame=True)
    names = load().target_names[y]
    X.assign(kind=names).to_csv(tmp_path / "data.csv")
    test = np.arange(len(y)) % 3 == 0
    X[test].assign(kind=names[test]).to_csv(tmp_path / "test.csv", index=False)
    X[~test].assign(kind=names[~test]).to_csv(tmp_path / "train.csv", index=False)
    model = make_pipeline(StandardScaler(), LinearMulticlassSVC(random_state=0))
    model.fit(X[~test].to_numpy(), names[~test])
    ran = run("train", "train.csv", "--label", "kind", "--test", "test.csv", "--json")
    assert ran.json["test"]["accuracy"] == model.score(X[test].to_numpy(), names[test])
    predicted = run("predict", "train.pmz", "data.csv", "-q").lines
    assert predicted == model.predict(X.to_numpy()).tolist()


ORDERS = """order id,Product Category,price,country,when,comment
17,toys,"1,200.50",DE,2024-01-03,great toy for the kids
23, toys,12.5,FR,2024-02-03,the kids love it
34,food,3.0,DE,2024-03-03,tasty and fresh
48,food,,,2024-01-09,not fresh at all
"""


@pytest.fixture
def orders(tmp_path):
    (tmp_path / "orders.csv").write_text(ORDERS)
    return ["orders.csv", "--label", "Product Category"]


def test_what_was_done_with_each_column_is_said(run, orders):
    ran = run("train", *orders, "--text", "comment", "-o", "m.pmz")
    for line in (
        "labels are taken without the spaces around them: ' toys' is 'toys'",
        "4 of 5 columns are used",
        "order id  left out: an identifier",
        "price     a number (1,200.50 is 1200.5), 1 missing",
        "country   a category of 2 values, 1 missing",
        "comment   text: its words",
        "'when' is left out: dates; --dates parts makes numbers of it",
    ):
        assert line in ran.err or line.startswith("4 of 5")
    assert "3 of 5 columns are used" in ran.err
    shown = run("inspect", "m.pmz").out
    assert "order id  left out: an identifier" in shown
    assert "price     a number (1,200.50 is 1200.5), 1 missing" in shown
    card = inspect_model("m.pmz")
    assert dict(card.columns)["comment"] == "text: its words"
    assert card.notes == {"label": "Product Category"}


def test_columns_are_chosen_dropped_and_taken_apart(run, orders):
    def kinds(*options):
        ran = run("train", *orders, "-o", "m.pmz", *options)
        assert ran.code == Exit.OK, ran.err
        return polymargin.load("m.pmz")[0].kinds

    assert kinds("--columns", "price,country") == {"price": "number", "country": "category"}
    assert kinds("--drop", "country", "--drop", "comment") == {"price": "number"}
    taken_apart = kinds("--dates", "parts", "--columns", "when", "--columns", "order id")
    assert taken_apart == {"order id": "number", "when": "date"}
    for options, said in (
        (["--columns", "prise"], "--columns: there is no column 'prise'"),
        (["--drop", "x"], "--drop: there is no column 'x'; there are 'order id'"),
        (["--text", "x"], "--text: there is no column 'x'"),
        (["--text", "when", "--drop", "when"], "--drop leaves out 'when'"),
        (["--columns", "when"], "no column is left for the features"),
    ):
        ran = run("train", *orders, "-o", "m.pmz", *options)
        assert ran.code in (Exit.DATA, Exit.USAGE) and said in ran.err


def test_numbers_are_scaled_as_asked(run, orders):
    for scale, last in (("none", "impute"), ("minmax", "scale"), ("standard", "scale")):
        ran = run("train", *orders, "-o", "m.pmz", "--columns", "price", "--scale", scale)
        assert ran.code == Exit.OK, ran.err
        numbers = polymargin.load("m.pmz")[1].named_transformers_["numbers"]
        assert numbers.steps[-1][0] == last


def test_a_new_table_that_does_not_fit_is_refused_with_its_line(run, orders, tmp_path):
    assert run("train", *orders, "--drop", "comment", "-o", "m.pmz").code == Exit.OK
    (tmp_path / "new.csv").write_text('country,price\n"D\nE",3\nFR,cheap\n')
    ran = run("predict", "m.pmz", "new.csv")
    assert ran.code == Exit.DATA
    assert "new.csv:4: the column 'price' holds 'cheap', which is not a number" in ran.err
    (tmp_path / "new.csv").write_text("country,prices\nDE,3\n")
    ran = run("predict", "m.pmz", "new.csv")
    assert (ran.code, "no column 'price'" in ran.err) == (Exit.DATA, True)
    np.savez(tmp_path / "new.npz", X=np.zeros((2, 5)))
    ran = run("predict", "m.pmz", "new.npz")
    assert (ran.code, "expected a table with the columns" in ran.err) == (Exit.DATA, True)
    (tmp_path / "new.svm").write_text("1 1:2\n")
    ran = run("predict", "m.pmz", "new.svm")
    assert (ran.code, "the model reads tables" in ran.err) == (Exit.DATA, True)
    assert run("train", "new.svm", "--drop", "a", "-o", "n.pmz").code == Exit.USAGE


def test_codes_keep_their_zeros_and_unknown_values_are_no_error(run, tmp_path):
    rows = "".join(f"0{i % 2},{'a' if i % 2 else 'b'}\n" for i in range(10))
    (tmp_path / "d.csv").write_text("code,label\nx1,a\n" + rows)
    assert run("train", "d.csv", "-o", "m.pmz").code == Exit.OK
    (tmp_path / "e.csv").write_text("code\n00\n01\n07\n")  # numbers, if nobody knew better
    assert run("predict", "m.pmz", "e.csv").lines[:2] == ["b", "a"]


class Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BufferedReader(io.BytesIO(content))


def test_models_remember_their_columns(run, tmp_path, monkeypatch):
    records = [{"said": f"{w} {w}", "what": f"is {w}"} for w in ("red", "green", "blue")] * 4
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert run("train", path, "--text", "said", "--label", "what", "-o", "m.pmz").code == Exit.OK
    ran = run("predict", "m.pmz", path)
    assert ran.lines == ["is red", "is green", "is blue"] * 4 and "accuracy 100.00 %" in ran.err
    assert run("evaluate", "m.pmz", path, "--json").json["accuracy"] == 1.0
    pd.DataFrame(records).drop(columns="what").to_csv(tmp_path / "d.csv", index=False)
    assert run("predict", "m.pmz", "d.csv").lines == ran.lines
    ran = run("evaluate", "m.pmz", "d.csv")
    assert (ran.code, "no labels: name their column" in ran.err) == (Exit.DATA, True)
    for content, expected in (
        (b"the red one\n", ["is red"]),
        (b"green, or so\nblue\n", ["is green", "is blue"]),
        (b'{"said": "green"}\n', ["is green"]),
        (b'said,more\n"green, or so",x\n', ["is green"]),
        (b"blue", ["is blue"]),
    ):
        monkeypatch.setattr("sys.stdin", Stdin(content))
        assert run("predict", "m.pmz", "-", "-q").lines == expected
    (tmp_path / "lines.txt").write_text("green 3:4\nblue\n")
    assert run("predict", "m.pmz", "lines.txt", "-q").lines == ["is green", "is blue"]


def test_several_files_are_one(run, tmp_path):
    table = realistic.missing()
    whole = table.write(tmp_path, "csv")
    header, *rows = whole.read_text().splitlines(keepends=True)
    (tmp_path / "part1.csv").write_text(header + "".join(rows[:40]))
    (tmp_path / "part2.csv").write_text(header + "".join(rows[40:]))
    assert run("train", whole, *table.options, "-o", "whole.pmz").code == Exit.OK
    ran = run("train", "part1.csv", "part2.csv", *table.options, "-o", "parts.pmz")
    assert ran.code == Exit.OK
    a, b = polymargin.load("whole.pmz"), polymargin.load("parts.pmz")
    np.testing.assert_array_equal(a[-1].coef_, b[-1].coef_)
    expected = run("predict", "whole.pmz", whole, "-q").lines
    assert run("predict", "whole.pmz", "part?.csv", "-q").lines == expected
    found = run("evaluate", "whole.pmz", "part1.csv", "part2.csv", "--json").json
    assert found["n_examples"] == 90
    assert "no file has such a name" in run("predict", "whole.pmz", "no*.csv").err
    assert run("predict", "whole.pmz", "-", "-").code == Exit.USAGE
    (tmp_path / "part3.csv").write_text(header + rows[0].replace(rows[0].split(",")[0], "??", 1))
    ran = run("predict", "whole.pmz", "part1.csv", "part3.csv")
    assert "part3.csv:2: the column 'x' holds '??'" in ran.err


def test_models_go_to_standard_output(run, orders, tmp_path, monkeypatch):
    class Stdout(io.StringIO):
        buffer = io.BytesIO()

    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", Stdout())
        ran = run("train", *orders, "-o", "-")
    assert ran.code == Exit.OK and "certified gap" in ran.err
    (tmp_path / "piped.pmz").write_bytes(Stdout.buffer.getvalue())
    assert run("train", *orders, "-o", "m.pmz").code == Exit.OK
    expected = run("predict", "m.pmz", "orders.csv").lines
    assert run("predict", "piped.pmz", "orders.csv").lines == expected


def test_tables_are_converted_to_tables(run, orders, tmp_path):
    for source, target in (("orders.csv", "a.parquet"), ("a.parquet", "b.csv")):
        ran = run("convert", source, target, "--label", "Product Category")
        assert ran.code == Exit.OK, ran.err
    options = ("--label", "Product Category", "--text", "comment")
    for source in ("orders.csv", "a.parquet", "b.csv"):
        assert run("train", source, *options, "-o", f"{source}.pmz").code == Exit.OK
    a, b, c = (polymargin.load(f"{name}.pmz") for name in ("orders.csv", "a.parquet", "b.csv"))
    np.testing.assert_array_equal(a[-1].coef_, b[-1].coef_)
    np.testing.assert_array_equal(a[-1].coef_, c[-1].coef_)


def test_rows_of_numbers_and_texts_become_tables_or_are_refused(run, svm, jsonl, numbers, tmp_path):
    assert run("convert", svm, "rows.parquet").code == Exit.OK
    back = pd.read_parquet(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(back.iloc[:, :-1].to_numpy(), numbers[0])
    np.testing.assert_array_equal(back["label"], numbers[1])
    assert run("convert", jsonl, "texts.csv", "--split", "test").code == Exit.OK
    assert pd.read_csv(tmp_path / "texts.csv").columns.tolist() == ["text", "label"]
    (tmp_path / "far.svm").write_text("1 20000:1\n2 3:1\n")
    ran = run("convert", "far.svm", "far.parquet")
    assert (ran.code, "20,000 features, too many" in ran.err) == (Exit.USAGE, True)
    ran = run("convert", svm, "rows.jsonl")
    assert (ran.code, ".jsonl files are not written" in ran.err) == (Exit.USAGE, True)
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_closed_pipe_is_no_error(tmp_path):
    """As behind `| head -1`: a file descriptor of which nobody reads the other end."""
    table = realistic.missing()
    path = table.write(tmp_path, "csv")
    code = (
        "import os, sys\n"
        "from polymargin.cli import main\n"
        "main(['train', sys.argv[1], '--label', 'y', '-q', '-o', sys.argv[2]])\n"
        "sys.stdout.flush()\n"
        "read, write = os.pipe()\n"
        "os.close(read)\n"
        "os.dup2(write, 1)\n"
        "sys.exit(main(['predict', sys.argv[2], *[sys.argv[1]] * 300, '-q']))\n"
    )
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "m.pmz")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (Exit.OK, "")
