"""What the command says: in its own words, with hints for those who know other programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

import polymargin
from polymargin.cli._errors import Exit
from polymargin.cli._main import COMMANDS, app
from polymargin.cli._words import OF_LIBLINEAR, in_options

HEAVY = {"numpy", "scipy", "sklearn", "joblib", "pyarrow", "pandas", "matplotlib"}


def command_of(name):
    return app.get_command(click.Context(app), name)


def imported_by(*arguments):
    """The modules that a run of the command imports."""
    code = (
        "import sys; from polymargin.cli import main; main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout, set(done.stderr.split())


# --- quick ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_version_and_help_import_nothing_heavy(arguments):
    shown, modules = imported_by(*arguments)
    assert "polymargin" in shown
    assert not modules & HEAVY
    ours = {name for name in modules if name.startswith("polymargin.")}
    assert "polymargin._core" not in ours
    assert not {name for name in ours if name.count(".") == 2 and name.split(".")[2][0] != "_"}


def test_the_package_imports_what_is_asked_for():
    code = (
        "import sys, polymargin; print(*sys.modules); polymargin.get_loss; "
        "print('polymargin.losses' in sys.modules, 'polymargin.estimators' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert not set(first.split()) & (HEAVY | {"click", "polymargin._core"})
    assert second == "True False"


def test_every_public_name_can_be_had():
    for name in polymargin.__all__:
        assert getattr(polymargin, name) is not None
    assert set(polymargin.__all__) <= set(dir(polymargin))
    assert polymargin.solvers.watching is not None  # a module that nobody imported by name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        polymargin.nothing  # noqa: B018
    namespace: dict = {}
    exec("from polymargin import *", namespace)
    assert set(polymargin.__all__) <= set(namespace)


def test_the_list_of_commands_says_what_their_pages_say():
    for name, said in COMMANDS.items():
        assert command_of(name).get_short_help_str(200) == said
    assert app.get_command(click.Context(app), "nothing") is None


def test_words_are_completed():
    def completed(words):
        count = len(words.split()) - (0 if words.endswith(" ") else 1)
        environment = {"COMP_WORDS": words, "COMP_CWORD": str(count)}
        environment["_POLYMARGIN_COMPLETE"] = "bash_complete"
        done = subprocess.run(
            [sys.executable, "-m", "polymargin"],
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
        return [line.split(",")[1] for line in done.stdout.splitlines()]

    assert completed("polymargin ") == list(COMMANDS)
    assert completed("polymargin ev") == ["evaluate"]
    assert completed("polymargin train --max") == ["--max-features", "--max-iter"]
    assert completed("polymargin train --loss one") == ["one_vs_rest", "one_vs_rest_squared"]


# --- in the words of the command -----------------------------------------------------------------


def test_parameters_become_options():
    for name in COMMANDS:
        command_of(name)  # so that its options are known
    assert in_options("give format=, one of csv, tsv") == "give --format, one of csv, tsv"
    assert in_options("(tol=0.001): try max_iter=270 or a smaller C, such as C=0.0003.") == (
        "(--tol 0.001): try --max-iter 270 or a smaller C, such as --C 0.0003."
    )
    assert in_options("cost_matrix=[[0, 1]] and label='a b'") == "--costs [[0, 1]] and --label a b"
    assert in_options("Raise time_limit or tol.") == "Raise --time-limit or --tol."
    assert in_options("normalise the rows (sklearn.preprocessing.Normalizer)") == (
        "normalise the rows (--normalize)"
    )
    # what is no parameter stays
    for said in ("/data/text=a/x.csv: there is no such file", "--max-iter 3", "the label 'C=3'"):
        assert in_options(said) == said


def test_a_fit_that_gives_up_says_so_in_options(run, svm):
    ran = run("train", svm, "--C", "1000", "--max-iter", "3", "-o", "m.pmz")
    assert ran.code == Exit.NOT_CONVERGED
    assert "stopped at its --max-iter after 3 passes" in ran.err and "(--tol 0.001)" in ran.err
    assert "normalise the rows (--normalize)" in ran.err and "such as --C " in ran.err
    assert "max_iter" not in ran.err and "sklearn" not in ran.err


def test_formats_that_are_not_understood_are_listed(run, svm, tmp_path):
    (tmp_path / "README.md").write_text(
        "# A project\n\nIt does this, that, and more.\nIt is fast,\nand small, too.\n"
    )
    ran = run("train", "README.md")
    assert ran.code == Exit.DATA
    assert "README.md: cannot tell the format of this file, neither by its name nor by" in ran.err
    for said in ("svmlight (LABEL INDEX:VALUE ...)", "csv and tsv", "jsonl", "parquet", "npz"):
        assert said in ran.err
    assert "give --format, one of svmlight" in ran.err
    assert "format=" not in ran.err


@pytest.mark.parametrize(
    "text", ["a,label\n9,x\n2,y\n5,x\n", 'a;label\n9;"x,\nz"\n2;y\n5;"x,\nz"\n']
)
def test_a_table_is_known_by_its_content(run, tmp_path, text):
    (tmp_path / "data").write_text(text)
    assert run("train", "data", "-o", "m.pmz", "--scale", "none").code == Exit.OK


def test_a_model_of_a_table_says_what_it_wants(run, csv, monkeypatch, tmp_path):
    assert run("train", csv, "-q", "-o", "m.pmz").code == Exit.OK
    (tmp_path / "words").write_text("hello\n")
    ran = run("predict", "m.pmz", "words")
    assert ran.code == Exit.DATA
    assert ran.err == (
        "error: the model reads tables with the columns f0, f1, f2, f3: CSV with a line of names, "
        "TSV, JSON lines or Parquet; words is none of these\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "polymargin", "predict", "m.pmz", "-"],
        input="hello\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == Exit.DATA
    assert "the columns f0, f1, f2, f3" in done.stderr
    assert "standard input is none of these" in done.stderr


# --- hints ---------------------------------------------------------------------------------------


def test_options_of_liblinear_have_hints(run, svm):
    ran = run("train", svm, "-s", "4")
    assert ran.code == Exit.USAGE
    assert "LIBLINEAR's -s is --loss here: -s 4 is --loss crammer_singer, the default" in ran.err
    for option, said in OF_LIBLINEAR.items():
        assert said in run("train", svm, option, "1").err
    assert "LIBLINEAR" not in run("predict", "m.pmz", svm, "-s", "4").err
    options = {name for one in command_of("train").params for name in one.opts}
    assert not options & set(OF_LIBLINEAR)  # what is an option needs no hint


def test_a_tolerance_of_liblinear_is_called_coarse(run, svm):
    ran = run("train", svm, "-e", "0.1", "-o", "m.pmz")
    assert ran.code == Exit.OK
    assert "--tol 0.1 is a relative duality gap of 10 %, which is coarse" in ran.err
    assert "not the tolerance of LIBLINEAR's -e; left out, it is 1e-3" in ran.err
    assert "coarse" not in run("train", svm, "-e", "0.01", "-o", "m.pmz").err


def test_losses_of_linear_svc_have_hints(run, svm):
    ran = run("train", svm, "--loss", "squared_hinge")
    assert ran.code == Exit.USAGE
    assert "'squared_hinge' is no loss: LinearSVC's" in ran.err
    assert '"one_vs_rest_squared" here' in ran.err


# --- cross-validation ----------------------------------------------------------------------------


def test_folds_that_give_up_are_said_and_have_their_exit_code(run, svm):
    ran = run("train", svm, "--cv", "3", "--C", "100", "--max-iter", "2")
    assert ran.code == Exit.NOT_CONVERGED
    assert "3 of 3 folds did not converge, so their accuracy may be off." in ran.err
    assert "stopped at its --max-iter after 2 passes" in ran.err
    assert ran.err.count("(not converged)") == 3
    assert "cross-validation accuracy" in ran.out
    as_json = run("train", svm, "--cv", "3", "--C", "100", "--max-iter", "2", "--json")
    assert as_json.code == Exit.NOT_CONVERGED
    assert json.loads(as_json.out)["cross_validation"]["not_converged"] == 3
    # with a model that does converge, the folds still count
    good = run("train", svm, "--cv", "3")
    assert good.code == Exit.OK and "not converge" not in good.err
    assert "not_converged" not in run("train", svm, "--cv", "3", "--json").json["cross_validation"]
