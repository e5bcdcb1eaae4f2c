"""What can go wrong says what, where and what to do, with an exit code that means it."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

import polymargin
from polymargin.cli import _data, main
from polymargin.cli._errors import Exit
from polymargin.cli._main import COMMANDS
from polymargin.solvers import watching
from tests.cli.conftest import write_csv, write_jsonl


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_has_an_example(run, command):
    ran = run(command, "--help")
    assert ran.code == Exit.OK
    assert f"Example:\n  polymargin {command}" in ran.out
    assert "\x1b" not in ran.out
    assert "--json" in ran.out and "--quiet" in ran.out


def test_without_arguments_there_is_help_or_a_word_about_what_is_missing(run):
    assert run().out == run("--help").out
    ran = run("train")
    assert ran.code == Exit.USAGE
    assert ran.err == "error: Missing argument 'DATA...'. (see polymargin train --help)\n"


def test_help_lists_every_command_and_the_version_is_that_of_the_package(run):
    ran = run("--help")
    listed = [line.split()[0] for line in ran.lines[ran.lines.index("Commands:") + 1 :]]
    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    assert run("--version").out.strip() == f"polymargin {polymargin.__version__}"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["train", "absent.svm"], Exit.DATA, "absent.svm: there is no such file"),
        (["predict", "absent.pmz", "DATA"], Exit.DATA, "absent.pmz: there is no such file"),
        (["train", "DATA", "--C", "0"], Exit.USAGE, "'0' is not a positive number"),
        (["train", "DATA", "--C", "nan"], Exit.USAGE, "'nan' is not a positive number"),
        (["train", "DATA", "--loss", "hinge"], Exit.USAGE, "crammer_singer"),
        (["train", "DATA", "--loss", "top_k_alpha"], Exit.USAGE, "needs --top-k"),
        (
            ["train", "DATA", "--loss", "top_k_alpha", "--top-k", "9"],
            Exit.DATA,
            "--top-k 9 is too large",
        ),
        (["train", "DATA", "--ngrams", "2,1"], Exit.USAGE, "LOW,HIGH"),
        (["train", "DATA", "--holdout", "1.5"], Exit.USAGE, "holdout"),
        (["train", "DATA", "--n-jobs", "0"], Exit.USAGE, "-1 for all cores"),
        (["train", "DATA", "--holdout", "0.5", "--test", "DATA"], Exit.USAGE, "--holdout"),
        (["train", "DATA", "--split", "train"], Exit.USAGE, "no field 'split'"),
        (["train", "DATA", "--text", "text"], Exit.USAGE, "names a column"),
        (["convert", "DATA", "d", "--split", "train"], Exit.USAGE, "no field 'split'"),
        (["train", "DATA", "--weight", "7=2"], Exit.DATA, "no example has the label '7'"),
        (["train", "DATA", "--weight", "heavy"], Exit.USAGE, "LABEL=WEIGHT"),
        (["train", "DATA", "--online", "--weight", "1=2"], Exit.USAGE, "--weight needs"),
        (["train", "DATA", "--online", "--loss", "one_vs_rest"], Exit.USAGE, "--loss needs"),
        (["train", "DATA", "--gamma", "2"], Exit.USAGE, "--gamma needs --kernel or --online"),
        (["train", "DATA", "--top-k", "2"], Exit.USAGE, "--top-k needs --loss"),
        (["train", "DATA", "--kernel", "rbf", "--no-intercept"], Exit.USAGE, "a linear model"),
        (["train", "DATA", "--sublinear"], Exit.USAGE, "--sublinear is for text"),
        (["train", "DATA", "--scale", "minmax"], Exit.USAGE, "would fill sparse data"),
        (["train", "DATA", "-o", "no/such/m.pmz"], Exit.OUTPUT, "no/such does not exist"),
        (["train", "DATA", "-o", "."], Exit.OUTPUT, "is a directory"),
        (["train", "DATA", "--report", "no/r.html"], Exit.OUTPUT, "no does not exist"),
        (["train", "DATA", "-o", "DATA"], Exit.USAGE, "is an input, too"),
        (["train", "DATA", "-o", "r", "--report", "r"], Exit.USAGE, "the same file"),
        (["train", "DATA", "--wrong"], Exit.USAGE, "--wrong"),
    ],
)
def test_mistakes_are_explained(run, svm, arguments, code, said):
    before = svm.read_bytes()
    arguments = [str(svm) if argument == "DATA" else argument for argument in arguments]
    ran = run(*arguments, "-q")
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.startswith("error: ")
    assert "Traceback" not in ran.err
    assert svm.read_bytes() == before
    as_json = run(*arguments, "--json")
    assert json.loads(as_json.err.splitlines()[-1])["exit_code"] == as_json.code == code


def test_the_output_is_checked_before_the_data_are_read(run, svm, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("the data were read")

    monkeypatch.setattr(_data, "read_data", fail)
    assert run("train", svm, "-o", "no/m.pmz").code == Exit.OUTPUT
    assert run("train", svm, "-o", "m.pmz", "--report", "no/r.html").code == Exit.OUTPUT


def test_test_data_are_checked_before_training(
    run, csv, svm, jsonl, numbers, tmp_path, monkeypatch
):
    def fail(*args, **kwargs):
        raise AssertionError("a model was trained")

    monkeypatch.setattr(polymargin.LinearMulticlassSVC, "fit", fail)
    X, y = numbers
    np.savez(tmp_path / "train.npz", X=X, y=y)
    np.savez(tmp_path / "wide.npz", X=np.column_stack([X, X]), y=y)
    for training, test, said in (
        ("train.npz", "wide.npz", "has 8 features"),
        (jsonl, "train.npz", "holds a table, but train.npz numbers"),
        ("train.npz", jsonl, "train.npz holds numbers, but"),
        ("train.npz", svm, "in svmlight format"),
        (csv, "absent.csv", "no such file"),
    ):
        ran = run("train", training, "--test", test)
        assert (ran.code, said in ran.err) == (Exit.DATA, True), ran.err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.svm", "", "no examples"),
        ("bad.svm", "1 1:2\n2 1:x\n", "bad.svm:2:"),
        ("one.svm", "1 1:2\n1 1:3\n", "at least 2 classes"),
        ("cut.svm", "1 1:2\n2 3:", "cut.svm:2:"),
        ("bad.csv", "a,label\n1,x\n2,\n", "bad.csv:3:2: the label is empty"),
        ("bad.csv", "a,label\n1,x\n1,y\n", "no column is left for the features (a: constant (1))"),
        ("short.csv", "a,b,label\n1,2,x\n1,y\n", "short.csv:3"),
        ("bad.jsonl", '{"text": "a b", "label": "x"}\n{"text": \n', "bad.jsonl:2"),
        ("no.jsonl", '{"text": "aa bb"}\n{"text": "cc dd"}\n', "--label"),
        (
            "words.jsonl",
            '{"text": "?", "label": "x"}\n{"text": "!", "label": "y"}\n',
            "empty vocab",
        ),
    ],
)
def test_bad_data_have_a_place(run, tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    ran = run("train", name, "-o", "m.pmz")
    assert ran.code == Exit.DATA
    assert said in ran.err
    assert not (tmp_path / "m.pmz").exists()


def test_bad_models_are_refused(run, svm, tmp_path):
    (tmp_path / "text.pmz").write_text("not a model")
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    (tmp_path / "cut.pmz").write_bytes((tmp_path / "m.pmz").read_bytes()[:-100])
    for name in ("text.pmz", "cut.pmz"):
        for arguments in (("predict", name, svm), ("inspect", name), ("evaluate", name, svm)):
            ran = run(*arguments)
            assert ran.code == Exit.DATA
            assert name in ran.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_or_a_device_is_not_replaced(run, svm, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    ran = run("train", svm, "-o", "pipe")
    assert (ran.code, "is no regular file" in ran.err) == (Exit.OUTPUT, True)
    assert (tmp_path / "pipe").is_fifo()


def test_missing_permissions_are_said(run, svm, tmp_path):
    svm.chmod(0)
    if os.access(svm, os.R_OK):
        pytest.skip("permissions do not bind here (root, or Windows)")
    ran = run("train", svm)
    assert (ran.code, "no permission to read" in ran.err) == (Exit.DATA, True)
    svm.chmod(0o644)
    (tmp_path / "locked").mkdir(mode=0o555)
    ran = run("train", svm, "-o", "locked/m.pmz")
    assert (ran.code, "no permission to write" in ran.err) == (Exit.OUTPUT, True)


def test_a_guessed_label_column_is_said(run, numbers, tmp_path):
    X, y = numbers
    path = write_csv(tmp_path / "d.csv", X, y)
    path.write_text(path.read_text().replace("label", "kind"))
    ran = run("train", path, "-o", "m.pmz")
    assert ran.code == Exit.OK
    assert "'kind', is taken as the label" in ran.err
    assert "--label" in ran.err
    quiet = run("train", path, "-o", "m.pmz", "--label", "kind", "-q")
    assert quiet.err == ""
    assert run("train", path, "-o", "m.pmz", "--label", "5", "-q").err == ""


def test_text_and_label_columns_by_name(run, tmp_path):
    records = [{"said": f"{w} {w}", "what": f"is {w}", "n": 3} for w in ("red", "green", "blue")]
    path = write_jsonl(tmp_path / "d.jsonl", records * 4)
    ran = run("train", path, "--text", "said", "--label", "what", "-o", "m.pmz")
    assert ran.code == Exit.OK
    ran = run("predict", "m.pmz", path, "--text", "said")
    assert ran.lines == ["is red", "is green", "is blue"] * 4


def test_ctrl_c_writes_the_best_model_and_says_so(run, svm):
    def interrupted(record):
        if record["pass"] == 3:
            signal.raise_signal(signal.SIGINT)

    with watching(interrupted):
        ran = run("train", svm, "--tol", "1e-12", "-o", "m.pmz", "--json")
    assert ran.code == Exit.INTERRUPTED
    assert ran.json["status"] == "interrupted"
    assert "best model so far, certified gap" in ran.err
    model = polymargin.load("m.pmz")
    assert np.isfinite(model.dual_gap_)
    assert model.solver is None


def test_ctrl_c_before_there_is_a_model_keeps_the_old_one(run, svm, tmp_path, monkeypatch):
    assert run("train", svm, "-o", "m.pmz").code == Exit.OK
    before = (tmp_path / "m.pmz").read_bytes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(_data, "read_data", interrupted)
    ran = run("train", svm, "-o", "m.pmz", "--C", "3")
    assert ran.code == Exit.INTERRUPTED
    assert "nothing was written" in ran.err
    assert (tmp_path / "m.pmz").read_bytes() == before


def test_what_nobody_foresaw_is_one_line_and_code_1(run, svm, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(_data, "read_data", broken)
    ran = run("train", svm)
    assert (ran.code, ran.out) == (Exit.FAILED, "")
    assert "ZeroDivisionError: oh" in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("POLYMARGIN_DEBUG", "1")
    assert "Traceback" in run("train", svm).err


def test_main_is_the_entry_point():
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group="console_scripts") if entry.name == "polymargin"]
    if not found:
        pytest.skip("the package is not installed")
    assert found[0].load() is main
