"""``polymargin train`` does what the Python API does, and says what it did."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import polymargin
from polymargin import KernelMulticlassSVC, LinearMulticlassSVC
from polymargin.cli._errors import Exit
from tests.cli.conftest import CLASSES, write_csv, write_svmlight

# models of tables know the names of their columns; the arrays given to them here have none
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
Linear, Kernel = LinearMulticlassSVC, KernelMulticlassSVC


def split_of(records, part):
    """Texts and labels of the records with this split."""
    chosen = [record for record in records if record["split"] == part]
    return [record["text"] for record in chosen], [record["label"] for record in chosen]


def same_model(path, reference):
    """The saved model equals one trained in Python, bit by bit."""
    loaded = polymargin.load(path)
    ours = loaded.steps[-1][1] if isinstance(loaded, Pipeline) else loaded
    theirs = reference.steps[-1][1] if isinstance(reference, Pipeline) else reference
    assert type(ours) is type(theirs)
    name = "coef_" if isinstance(theirs, LinearMulticlassSVC) else "dual_coef_"
    np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    return loaded


def test_svmlight_gives_the_model_of_the_python_api(run, svm, numbers):
    X, y = numbers
    ran = run("train", svm, "--loss", "weston_watkins", "--C", "0.5", "-o", "m.pmz", "--json")
    assert ran.code == Exit.OK
    reference = LinearMulticlassSVC(loss="weston_watkins", C=0.5, random_state=0)
    reference.fit(sparse.csr_array(X), y)
    same_model("m.pmz", reference)
    assert ran.json["status"] == "converged"
    assert ran.json["gap"] == pytest.approx(reference.dual_gap_)
    assert ran.json["objective"] == pytest.approx(reference.objective_)
    assert ran.json["passes"] == reference.n_iter_


@pytest.mark.parametrize(
    ("options", "model"),
    [  # numbers of tables are standardised unless --scale says something else
        ("", make_pipeline(StandardScaler(), Linear())),
        ("--scale none --tol 1e-5 --no-intercept", Linear(tol=1e-5, fit_intercept=False)),
        ("--scale none --loss top_k_beta --top-k 2", Linear(loss="top_k_beta", top_k=2)),
        ("--scale none --class-weight balanced", Linear(class_weight="balanced")),
        ("--scale none --weight pear=3", Linear(class_weight={"pear": 3.0})),
        ("--scale none --intercept-scaling 2", Linear(intercept_scaling=2.0)),
        ("--scale standard", make_pipeline(StandardScaler(), Linear())),
        ("--scale none --normalize", make_pipeline(Normalizer(), Linear())),
        ("--scale none --kernel rbf --gamma 0.5", Kernel(gamma=0.5)),
        (
            "--scale none --online --epochs 2 --gamma 0.5",
            polymargin.LaRankClassifier(n_epochs=2, gamma=0.5),
        ),
        (
            "--scale none --kernel poly --degree 2 --coef0 1",
            Kernel(kernel="poly", degree=2, coef0=1),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_reach_the_estimator(run, csv, numbers, options, model):
    X, y = numbers
    assert run("train", csv, "-o", "m.pmz", *options.split()).code == Exit.OK
    reference = clone(model)
    last = reference.steps[-1][1] if isinstance(reference, Pipeline) else reference
    last.set_params(random_state=0)
    reference.fit(X, np.array(CLASSES)[y - 1])
    loaded = same_model("m.pmz", reference)
    np.testing.assert_array_equal(loaded.predict(X), reference.predict(X))


def test_single_precision_stays_single(run, csv):
    assert run("train", csv, "--float32", "-o", "m.pmz").code == Exit.OK
    assert polymargin.load("m.pmz")[-1].coef_.dtype == np.float32
    assert run("train", csv, "--float32", "--scale", "none", "-o", "m.pmz").code == Exit.OK
    assert polymargin.load("m.pmz").coef_.dtype == np.float32


def test_text_gives_the_pipeline_of_the_python_api(run, jsonl, texts):
    ran = run(
        "train",
        jsonl,
        "--split",
        "train",
        "--test-split",
        "split=test",
        "--json",
        "--ngrams",
        "1,2",
    )
    assert ran.code == Exit.OK
    parts = {part: split_of(texts, part) for part in ("train", "test")}
    reference = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), LinearMulticlassSVC(random_state=0)
    )
    reference.fit(*parts["train"])
    loaded = same_model("fruit.pmz", reference)  # the name of the data
    assert ran.json["test"]["accuracy"] == reference.score(*parts["test"])
    assert loaded.predict(parts["test"][0]).tolist() == reference.predict(parts["test"][0]).tolist()


def test_hashed_text_trains_and_predicts(run, jsonl):
    ran = run(
        "train", jsonl, "--features", "hash", "--hash-bits", "10", "--holdout", "0.3", "--json"
    )
    assert ran.code == Exit.OK
    assert ran.json["test"]["accuracy"] > 0.8
    assert ran.json["n_features"] == 1024


def test_test_file_report_and_lines_for_people(run, svm, numbers, tmp_path):
    X, y = numbers
    test = write_svmlight(tmp_path / "test.svm", X[:30], y[:30])
    ran = run("train", svm, "--test", test, "--report", "report.html", "-o", "m.pmz")
    assert ran.code == Exit.OK
    accuracy = np.mean(polymargin.load("m.pmz").predict(X[:30]) == y[:30])
    assert f"{100 * accuracy:.2f} %" in ran.out
    assert "certified gap" in ran.out
    assert "wrote m.pmz and report.html" in ran.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{100 * accuracy:.2f} %" in page
    assert svm.name in page and str(svm.parent) not in page
    assert '"estimates":{"pass":[1' in page  # every pass, not only the certificates


def test_quiet_and_piped_output_is_plain(run, svm):
    ran = run("train", svm, "-q", "-o", "m.pmz")
    assert ran.err == ""
    assert "\x1b" not in ran.out


def test_cross_validation_prints_and_writes_nothing(run, svm, tmp_path):
    ran = run("train", svm, "--cv", "4", "--json")
    assert ran.code == Exit.OK
    folds = ran.json["cross_validation"]["folds"]
    assert len(folds) == 4
    assert ran.json["cross_validation"]["accuracy"] == pytest.approx(np.mean(folds))
    assert [path.name for path in tmp_path.glob("*.pmz")] == []
    assert run("train", svm, "--cv", "4", "--report", "r.html").code == Exit.USAGE
    both = run("train", svm, "--cv", "4", "--json", "-o", "m.pmz").json  # one object
    assert both["cross_validation"]["folds"] == folds
    assert both["status"] == "converged"


def test_compressed_data_stdin_and_a_default_name(run, svm, tmp_path, monkeypatch):
    packed = tmp_path / "packed.svm.gz"
    packed.write_bytes(gzip.compress(svm.read_bytes()))
    assert run("train", packed).code == Exit.OK
    plain, unpacked = polymargin.load("packed.pmz"), run("train", svm, "-o", "plain.pmz")
    assert unpacked.code == Exit.OK
    np.testing.assert_array_equal(plain.coef_, polymargin.load("plain.pmz").coef_)

    class Stdin:
        buffer = None

    with open(packed, "rb") as file:
        Stdin.buffer = file
        monkeypatch.setattr("sys.stdin", Stdin)
        assert run("train", "-", "-o", "stdin.pmz").code == Exit.OK
    np.testing.assert_array_equal(plain.coef_, polymargin.load("stdin.pmz").coef_)
    assert run("train", "-").code == Exit.USAGE


def test_the_numbering_of_features_travels_with_the_model(run, numbers, tmp_path):
    X, y = numbers
    zero = write_svmlight(tmp_path / "zero.svm", X, y, base=0)
    assert run("train", zero, "-o", "zero.pmz").code == Exit.OK
    # no feature 0 in this file: by itself it would be taken as numbered from 1
    without = X.copy()
    without[:, 0] = 0
    other = write_svmlight(tmp_path / "other.svm", without, y, base=0)
    expected = polymargin.load("zero.pmz").predict(without)
    assert run("predict", "zero.pmz", other).lines == [str(label) for label in expected]
    # and features from 1 mean the same model
    one = write_svmlight(tmp_path / "one.svm", X, y, base=1)
    assert run("train", one, "-o", "one.pmz").code == Exit.OK
    np.testing.assert_array_equal(
        polymargin.load("one.pmz").coef_, polymargin.load("zero.pmz").coef_
    )
    assert run("predict", "one.pmz", zero).code == Exit.DATA
    # the model itself knows nothing of files, but version 0.1.0 put it there
    model = polymargin.load("zero.pmz")
    assert not hasattr(model, "svmlight_base_")
    model.svmlight_base_ = 0
    polymargin.save(model, "old.pmz")
    assert run("predict", "old.pmz", other).lines == [str(label) for label in expected]


def test_not_converged_is_an_exit_code_of_its_own_and_a_usable_model(run, svm, numbers):
    ran = run("train", svm, "--tol", "1e-12", "--max-iter", "2", "-o", "m.pmz", "--json")
    assert ran.code == Exit.NOT_CONVERGED
    assert ran.json["status"] == "not converged"
    assert "stopped at its --max-iter" in ran.err
    assert polymargin.load("m.pmz").predict(numbers[0]).shape == (120,)


def test_an_npz_of_parts_trains_and_tests(run, numbers, tmp_path):
    X, y = numbers
    np.savez(tmp_path / "d.npz", train_X=X[:80], train_y=y[:80], test_X=X[80:], test_y=y[80:])
    ran = run("train", "d.npz", "--split", "train", "--test-split", "test", "--json", "-o", "m.pmz")
    assert ran.code == Exit.OK
    assert ran.json["test"]["accuracy"] == np.mean(
        polymargin.load("m.pmz").predict(X[80:]) == y[80:]
    )


def test_parquet_gives_the_model_of_the_same_csv(run, csv, numbers, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = numbers
    columns = {f"f{j}": X[:, j] for j in range(4)}
    table = pyarrow.table({**columns, "label": np.array(CLASSES)[y - 1]})
    parquet.write_table(table, tmp_path / "d.parquet")
    assert run("train", "d.parquet", "-o", "a.pmz").code == Exit.OK
    assert run("train", csv, "-o", "b.pmz").code == Exit.OK
    same_model("a.pmz", polymargin.load("b.pmz"))


def test_tables_are_matched_by_the_names_of_their_columns(run, csv, numbers, tmp_path):
    X, y = numbers
    assert run("train", csv, "-o", "m.pmz").code == Exit.OK
    order = [2, 0, 3, 1]
    shuffled = write_csv(tmp_path / "s.csv", X[:, order], y, [f"f{j}" for j in order])
    straight = write_csv(tmp_path / "t.csv", X, y)
    a, b = (run("predict", "m.pmz", path, "-q") for path in (shuffled, straight))
    assert a.code == b.code == Exit.OK
    assert a.lines == b.lines
    missing = write_csv(tmp_path / "u.csv", X[:, :3], y)
    ran = run("predict", "m.pmz", missing)
    assert ran.code == Exit.DATA
    assert "f3" in ran.err


@pytest.mark.parametrize("name", ["clinc150", "banking77"])
def test_real_texts_give_the_accuracy_of_the_python_api(run, name):
    from benchmarks.datasets import data_folder

    path = data_folder() / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    parts = {part: split_of(records, part) for part in ("train", "test")}
    ran = run("train", path, "--split", "train", "--test-split", "test", "-o", "m.pmz", "--json")
    assert ran.code == Exit.OK
    reference = make_pipeline(TfidfVectorizer(), LinearMulticlassSVC(random_state=0))
    reference.fit(*parts["train"])
    assert ran.json["test"]["accuracy"] == reference.score(*parts["test"])
    evaluated = run("evaluate", "m.pmz", path, "--split", "test", "--json")
    assert evaluated.json["accuracy"] == ran.json["test"]["accuracy"]
    predicted = run("predict", "m.pmz", path, "--split", "test")
    assert predicted.lines == reference.predict(parts["test"][0]).tolist()
    assert f"{100 * reference.score(*parts['test']):.2f} %" in predicted.err
    if (
        name == "clinc150"
    ):  # what the README prints; other instruction sets differ in the last digits
        readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
        printed = float(re.search(r"accuracy  ([0-9.]+) % \(", readme).group(1))
        assert printed == pytest.approx(100 * reference.score(*parts["test"]), abs=0.1)


def test_a_checkpoint_goes_on_to_the_same_model(run, svm, tmp_path):
    assert run("train", svm, "--tol", "1e-6", "-o", "whole.pmz").code == Exit.OK
    few = run("train", svm, "--tol", "1e-6", "-o", "m.pmz", "--checkpoint", "c", "--max-iter", "3")
    assert few.code == Exit.NOT_CONVERGED and (tmp_path / "c").exists()
    other = run("train", svm, "--tol", "1e-6", "-o", "m.pmz", "--checkpoint", "c", "--C", "3")
    assert other.code == Exit.DATA and "something else" in other.err and "C, " in other.err
    assert run("train", svm, "--tol", "1e-6", "-o", "m.pmz", "--checkpoint", "c").code == Exit.OK
    same_model("m.pmz", polymargin.load("whole.pmz"))
    assert not (tmp_path / "c").exists()
    assert polymargin.load("m.pmz").checkpoint is None
    assert run("train", svm, "--kernel", "rbf", "--checkpoint", "c").code == Exit.USAGE


def test_data_larger_than_memory_are_read_in_blocks(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((1500, 30))
    y = (X @ rng.normal(size=(30, 4))).argmax(axis=1)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    path = write_svmlight(tmp_path / "big.svm", X, y)
    ran = run("train", path, "--memory", "300KB", "-o", "m.pmz", "--test", path, "--json")
    assert ran.code == Exit.OK
    whole = LinearMulticlassSVC().fit(sparse.csr_array(X), y)
    assert ran.json["gap"] <= 1e-3
    assert ran.json["objective"] == pytest.approx(whole.objective_, rel=2e-3)
    assert ran.json["test"]["n_examples"] == 1500
    assert sorted(file.name for file in tmp_path.iterdir()) == ["big.svm", "m.pmz"]
    assert run("convert", path, "big.data").code == Exit.OK
    again = run("train", "big.data", "--memory", "300KB", "-o", "n.pmz", "--json")
    assert again.json["objective"] == ran.json["objective"]
    assert run("evaluate", "m.pmz", "big.data", "--json").json["n_examples"] == 1500


def test_memory_is_refused_where_it_cannot_be_kept(run, svm, tmp_path, numbers):
    ran = run("train", svm, "--memory", "1KB", "-o", "m.pmz")
    assert ran.code == Exit.DATA
    assert "Give at least" in ran.err
    assert run("train", svm, "--memory", "1GB", "--cv", "3").code == Exit.USAGE
    assert run("train", svm, "--memory", "1GB", "--kernel", "rbf").code == Exit.USAGE
    table = write_csv(tmp_path / "t.csv", *numbers)
    assert "polymargin convert" in run("train", table, "--memory", "1GB").err
