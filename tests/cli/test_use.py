"""predict, evaluate, inspect, convert and export on models and files of every kind."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

import polymargin
from polymargin.cli._errors import Exit
from polymargin.io import open_directory, read_data
from tests.cli.conftest import CLASSES, write_csv, write_jsonl, write_svmlight

# models of tables know the names of their columns; the arrays given to them here have none
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture
def fruit(run, csv):
    """A model of words with spaces as labels, of a table of numbers as they are."""
    assert run("train", csv, "-q", "-o", "fruit.pmz", "--scale", "none").code == Exit.OK
    return polymargin.load("fruit.pmz")


def test_predict_writes_a_label_per_line(run, fruit, csv, numbers):
    X, y = numbers
    expected = fruit.predict(X)
    ran = run("predict", "fruit.pmz", csv)
    assert ran.lines == expected.tolist()
    assert f"{100 * np.mean(expected == np.array(CLASSES)[y - 1]):.2f} %" in ran.err
    to_file = run("predict", "fruit.pmz", csv, "-o", "labels.txt")
    assert to_file.out == ""
    with open("labels.txt", encoding="utf-8") as file:
        assert file.read() == ran.out


def test_predict_gives_the_best_k_and_the_scores(run, fruit, csv, numbers):
    X, _ = numbers
    best = run("predict", "fruit.pmz", csv, "--top-k", "2", "-q").lines
    assert [line.split("\t") for line in best] == fruit.predict_top_k(X, 2).tolist()
    header, *rows = run("predict", "fruit.pmz", csv, "--scores", "-q").lines
    assert header.split("\t") == ["label", *fruit.classes_]
    scores = np.array([line.split("\t")[1:] for line in rows], float)
    np.testing.assert_allclose(scores, fruit.decision_function(X), rtol=1e-6)
    assert run("predict", "fruit.pmz", csv, "--top-k", "4").code == Exit.USAGE


def test_predict_as_json_lines(run, fruit, csv, numbers):
    X, _ = numbers
    lines = run("predict", "fruit.pmz", csv, "--json", "--top-k", "2", "--scores").lines
    records = [json.loads(line) for line in lines]
    assert [record["label"] for record in records] == fruit.predict(X).tolist()
    scores = fruit.decision_function(X)
    assert records[0]["scores"] == dict(zip(fruit.classes_, scores[0].tolist(), strict=True))
    assert [entry["label"] for entry in records[0]["top_k"]] == fruit.predict_top_k(X, 2)[
        0
    ].tolist()


@pytest.mark.parametrize("options", [["--probability"], ["--loss", "softmax"]], ids=str)
def test_probabilities(run, csv, numbers, options):
    X, _ = numbers
    assert run("train", csv, "-q", "-o", "p.pmz", *options).code == Exit.OK
    model = polymargin.load("p.pmz")
    header, *rows = run("predict", "p.pmz", csv, "--proba", "-q").lines
    assert header.split("\t") == ["label", *model.classes_]
    found = np.array([line.split("\t")[1:] for line in rows], float)
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-6)
    assert [line.split("\t")[0] for line in rows] == model.predict(X).tolist()
    record = json.loads(run("predict", "p.pmz", csv, "--proba", "--json", "--top-k", "2").lines[0])
    assert record["probabilities"][record["label"]] == record["top_k"][0]["probability"]
    assert run("predict", "p.pmz", csv, "--proba", "--scores").code == Exit.USAGE
    said = run("evaluate", "p.pmz", csv, "--json", "--report", "r.html").json
    assert 0 <= said["calibration_error"] <= 1
    assert "calibration error" in run("evaluate", "p.pmz", csv).out
    with open("r.html", encoding="utf-8") as file:
        assert "reliability-chart" in file.read()
    temperature = getattr(model[-1], "temperature_", None)
    assert run("inspect", "p.pmz", "--json").json["temperature"] == temperature
    line = "" if temperature is None else f"temperature    {temperature:.4g}"
    assert line in run("inspect", "p.pmz").out
    assert ("temperature" in run("inspect", "p.pmz").out) == (temperature is not None)


def test_models_without_probabilities_say_so(run, fruit, csv):
    ran = run("predict", "fruit.pmz", csv, "--proba")
    assert (ran.code, "train with --probability" in ran.err) == (Exit.DATA, True)
    assert "calibration_error" not in run("evaluate", "fruit.pmz", csv, "--json").json


def test_a_label_with_a_line_break_stays_on_its_line(run, tmp_path):
    records = [
        {"text": f"{word} {word}", "label": label}
        for word, label in (("aa", "x\ty\nz"), ("bb", "w"))
    ]
    path = write_jsonl(tmp_path / "d.jsonl", records * 5)
    assert run("train", path, "-o", "m.pmz").code == Exit.OK
    assert run("predict", "m.pmz", path, "-q").lines == ["x y z", "w"] * 5
    assert json.loads(run("predict", "m.pmz", path, "--json").lines[0])["label"] == "x\ty\nz"


def test_evaluate_agrees_with_scikit_learn(run, fruit, csv, numbers):
    X, y = numbers
    labels = np.array(CLASSES)[y - 1]
    found = run("evaluate", "fruit.pmz", csv, "--json").json
    predicted = fruit.predict(X)
    assert found["accuracy"] == metrics.accuracy_score(labels, predicted)
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(labels, predicted, average="macro"))
    first = found["confused_pairs"][0]
    pair = (labels == first["true"]) & (predicted == first["predicted"])
    assert first["count"] == np.count_nonzero(pair)
    ran = run("evaluate", "fruit.pmz", csv, "--report", "r.html")
    assert f"{first['count']}" in ran.out
    assert "red apple" in ran.out
    with open("r.html", encoding="utf-8") as file:
        assert "red apple" in file.read()


def test_unseen_labels_are_counted_as_errors_and_reported(run, fruit, numbers, tmp_path):
    X, y = numbers
    labels = np.array(CLASSES)[y - 1].astype(object)
    labels[:7] = "plum tree"
    path = write_csv(tmp_path / "new.csv", X, labels)
    ran = run("evaluate", "fruit.pmz", path, "--json")
    assert ran.code == Exit.OK
    assert ran.json["n_unseen"] == 7
    assert ran.json["unseen_labels"] == ["plum tree"]
    assert ran.json["accuracy"] == np.mean(fruit.predict(X) == labels)
    assert "7 of 120 examples have a label that the model does not know (plum tree)" in ran.err
    assert "plum tree" in run("predict", "fruit.pmz", path).err


def test_numbers_as_words_are_the_same_labels(run, svm, numbers, tmp_path):
    X, y = numbers
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    records = [
        {**{f"f{j}": value for j, value in enumerate(row)}, "label": str(label)}
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    path = write_jsonl(tmp_path / "words.jsonl", records)
    expected = run("evaluate", "m.pmz", svm, "--json").json["accuracy"]
    found = run("evaluate", "m.pmz", path, "--json")
    assert found.json["accuracy"] == expected
    assert found.json["n_unseen"] == 0


def test_some_labels_may_be_words_where_the_model_has_numbers(run, svm, numbers, tmp_path):
    X, y = numbers
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    labels = y.astype(str).astype(object)
    labels[5] = "plum"
    found = run("evaluate", "m.pmz", write_csv(tmp_path / "d.csv", X, labels), "--json")
    assert found.json["unseen_labels"] == ["plum"]
    expected = polymargin.load("m.pmz").predict(X).astype(str) == labels
    assert found.json["accuracy"] == np.mean(expected)


def test_two_classes_and_online_models_work_like_the_others(run, csv, numbers, tmp_path):
    X, y = numbers
    two = write_csv(tmp_path / "two.csv", X[y < 3], np.where(y[y < 3] == 1, "no", "yes"))
    assert run("train", two, "-o", "two.pmz").code == Exit.OK
    model = polymargin.load("two.pmz")
    assert run("predict", "two.pmz", two, "-q").lines == model.predict(X[y < 3]).tolist()
    header, first, *_ = run("predict", "two.pmz", two, "-q", "--scores").lines
    assert header.split("\t") == ["label", "no", "yes"]
    score = model.decision_function(X[y < 3][:1])[0]
    np.testing.assert_allclose(
        [float(v) for v in first.split("\t")[1:]], [-score, score], rtol=1e-6
    )
    online = polymargin.LaRankClassifier(random_state=0).fit(X, np.array(CLASSES)[y - 1])
    polymargin.save(online, "online.pmz")
    assert run("predict", "online.pmz", csv, "-q").lines == online.predict(X).tolist()
    assert run("evaluate", "online.pmz", csv, "--report", "r.html").code == Exit.OK
    assert "certified gap  none" in run("inspect", "online.pmz").out


def test_fewer_features_are_zeros_and_more_are_ignored_aloud(run, svm, numbers, tmp_path):
    X, y = numbers
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    model = polymargin.load("m.pmz")
    narrow = write_svmlight(tmp_path / "narrow.svm", X[:, :2], y)
    padded = np.column_stack([X[:, :2], np.zeros((len(X), 2))])
    ran = run("predict", "m.pmz", narrow)
    assert ran.lines == [str(label) for label in model.predict(padded)]
    wide = write_svmlight(tmp_path / "wide.svm", np.column_stack([X, X, X]), y)
    ran = run("predict", "m.pmz", wide)
    assert ran.lines == [str(label) for label in model.predict(X)]
    assert "960 values of features beyond the model's 4 are ignored" in ran.err
    np.savez(tmp_path / "wide.npz", X=np.column_stack([X, X]), y=y)
    ran = run("predict", "m.pmz", "wide.npz")
    assert ran.code == Exit.DATA
    assert "has 8 features, the model was trained on 4" in ran.err


def test_text_without_a_known_word_is_said(run, jsonl, tmp_path):
    assert run("train", jsonl, "-o", "m.pmz").code == Exit.OK
    path = write_jsonl(
        tmp_path / "new.jsonl", [{"text": "qqq"}, {"text": "sour citrus"}, {"text": ""}]
    )
    ran = run("predict", "m.pmz", path)
    assert ran.code == Exit.OK
    assert ran.lines[1] == "Zitrone"
    assert len(ran.lines) == 3
    assert "2 of 3 texts have no word that the model knows" in ran.err


def test_the_wrong_kind_of_data_is_said(run, jsonl, svm):
    assert run("train", jsonl, "-o", "text.pmz").code == Exit.OK
    assert run("train", svm, "-o", "numbers.pmz").code == Exit.OK
    ran = run("predict", "text.pmz", svm)
    assert (ran.code, "reads text" in ran.err) == (Exit.DATA, True)
    ran = run("predict", "numbers.pmz", jsonl)
    assert (ran.code, "reads numbers" in ran.err) == (Exit.DATA, True)


def test_inspect_prints_the_card(run, fruit):
    ran = run("inspect", "fruit.pmz")
    assert ran.code == Exit.OK
    for text in ("LinearMulticlassSVC", "red apple", "crammer_singer", "certified gap", "f0, f1"):
        assert text in ran.out
    card = run("inspect", "fruit.pmz", "--json").json
    assert card["certificate"]["dual_gap"] == fruit.dual_gap_
    assert card["classes"] == sorted(CLASSES)
    assert card["feature_names"] == ["f0", "f1", "f2", "f3"]


def test_convert_to_a_directory_and_an_archive(run, svm, csv, jsonl, numbers):
    X, y = numbers
    ran = run("convert", svm, "svm.data", "--json")
    assert (ran.code, ran.json["n_examples"], ran.json["n_features"]) == (Exit.OK, 120, 4)
    opened = open_directory("svm.data")
    np.testing.assert_array_equal(opened.X.toarray(), X)
    np.testing.assert_array_equal(opened.y, y)
    assert run("convert", svm, "svm.data").code == Exit.OUTPUT
    assert run("convert", svm, "svm.data", "--force").code == Exit.OK
    assert run("convert", csv, "csv.npz").code == Exit.OK
    archive = read_data("csv.npz")
    np.testing.assert_array_equal(archive.X, X)
    assert run("convert", "svm.data", "back.svm").code == Exit.OK
    np.testing.assert_array_equal(read_data("back.svm").X.toarray(), X)
    assert run("convert", csv, "words.svm").code == Exit.DATA  # its labels are numbers
    assert run("convert", jsonl, "text.data", "--split", "test").code == Exit.OK
    assert open_directory("text.data").n_examples == 24
    assert run("convert", jsonl, "text.npz").code == Exit.USAGE
    # what was converted trains the same model
    assert (
        run("train", "svm.data", "-o", "a.pmz").code == run("train", svm, "-o", "b.pmz").code == 0
    )
    np.testing.assert_array_equal(polymargin.load("a.pmz").coef_, polymargin.load("b.pmz").coef_)
    assert run("train", "text.data", "-o", "c.pmz").code == Exit.OK


def test_export_to_liblinear_comes_back(run, svm, numbers):
    X, _ = numbers
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    ran = run("export", "m.pmz", "--to", "liblinear")
    assert ran.code == Exit.OK
    back = polymargin.export.from_liblinear("m.model")
    np.testing.assert_array_equal(back.predict(X), polymargin.load("m.pmz").predict(X))


def test_export_to_onnx_or_a_word_about_the_extra(run, svm):
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    ran = run("export", "m.pmz", "--to", "onnx", "-o", "m.onnx")
    try:
        import onnx  # noqa: F401
    except ImportError:
        assert (ran.code, "polymargin[onnx]" in ran.err) == (Exit.FAILED, True)
    else:
        assert ran.code == Exit.OK
