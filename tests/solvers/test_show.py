"""What a person sees of a fit: a bar on a terminal and in a notebook, lines elsewhere."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
)
from polymargin.solvers import show, watching
from polymargin.solvers.watch import Watch
from tests.terminal import on_a_terminal

DIGITS = """
from sklearn.datasets import load_digits
from polymargin import LinearMulticlassSVC
X, y = load_digits(return_X_y=True)
"""
# a fit that waits, pass after pass, until the bar has been drawn anew
WAITS = """
from polymargin.solvers import show, watching
drawn, write = [], show.TerminalLine.draw
def note(self, watch, seconds):
    write(self, watch, seconds)
    drawn.append(watch.describe())
show.TerminalLine.draw = note
show.BETWEEN = 0.01
def wait(record):
    while len(drawn) < 3 + record["pass"] and record["pass"] < 20:
        pass
with watching(wait):
    LinearMulticlassSVC(C=1.0, tol=1e-5, random_state=0, verbose=1).fit(X, y)
"""


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


@pytest.fixture
def terminal(monkeypatch):
    """A terminal in place of standard error."""

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def __init__(self):
            super().__init__()
            self.drawn = threading.Semaphore(0)

        def write(self, text):
            self.drawn.release()
            return super().write(text)

        def isatty(self):
            return True

    made = Terminal()
    # pytest puts its own in place of sys.stderr after the fixtures
    monkeypatch.setattr(show, "sys", SimpleNamespace(stderr=made, modules={}))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return made


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_verbose_draws_a_bar_on_a_terminal_and_leaves_a_line():
    shown = on_a_terminal([sys.executable, "-c", DIGITS + WAITS])
    drawings = [part for part in shown.split("\r") if "training" in part]
    assert len(drawings) >= 20
    assert any("estimated) → 1e-05, about" in part and "left" in part for part in drawings)
    assert "━" in drawings[-1]
    last = [line for line in shown.splitlines() if line.strip()][-1].split("\r")[-1]
    found = re.fullmatch(r"pass +(\d+)  gap (\S+) \(certified\)  time \d+\.\d\d s", last)
    assert found and float(found[2]) <= 1e-5


def test_without_a_terminal_there_are_lines_and_no_bar():
    code = DIGITS + "LinearMulticlassSVC(C=1.0, tol=1e-4, random_state=0, verbose=1).fit(X, y)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\r" not in done.stdout
    assert re.match(r"pass +\d+  primal \S+  dual \S+  gap \S+  awake", done.stdout)


def test_lines_of_estimates_come_where_nothing_was_printed_for_long(capsys):
    lines = show.Lines("pass")
    times = np.concatenate([np.arange(0.1, 10, 0.1), np.arange(10, 4000, 1.0)])
    for i, now in enumerate(times):
        record = {"pass": i, "time": float(now), "gap": 0.1, "certified_gap": 1.0, "tol": 1e-3}
        lines.after_pass(record, "")
    printed = capsys.readouterr().out.splitlines()
    at = np.array([float(re.search(r"time (\S+) s", line)[1]) for line in printed])
    assert all("(estimated)" in line for line in printed)
    assert np.diff(at).min() >= show.QUIET
    assert 10 < len(at) < 50  # of more than an hour


@pytest.mark.parametrize("make", [LinearMulticlassSVC, KernelMulticlassSVC, LaRankClassifier])
def test_the_bar_changes_nothing(make, digits, terminal, capsys):
    plain = make(random_state=0).fit(*digits)
    assert terminal.getvalue() == ""
    with_bar = make(random_state=0, verbose=1).fit(*digits)
    np.testing.assert_array_equal(
        with_bar.decision_function(digits[0]), plain.decision_function(digits[0])
    )
    assert capsys.readouterr().out == ""
    step = {LinearMulticlassSVC: "pass", KernelMulticlassSVC: "set", LaRankClassifier: "epoch"}
    assert f"first {step[make]}" in terminal.getvalue()
    assert re.search(rf"{step[make]} +{with_bar.n_iter_}  .*time", terminal.getvalue())


def test_twice_verbose_means_lines_on_a_terminal_too(digits, terminal, capsys):
    LinearMulticlassSVC(random_state=0, verbose=2).fit(*digits)
    assert terminal.getvalue() == ""
    assert "primal" in capsys.readouterr().out


def test_the_bar_is_drawn_while_a_pass_goes_on(terminal, monkeypatch):
    monkeypatch.setattr(show, "BETWEEN", 0.01)
    with show.telling("pass", 1):
        for _ in range(4):
            assert terminal.drawn.acquire(timeout=600)
    assert "first pass" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # nothing is left of it


def test_one_of_two_fits_has_the_bar_the_other_prints_lines(digits, terminal, capsys):
    def second(record):
        if record["pass"] == 1:
            with show.telling("pass", 1) as teller:
                kinds.append(type(teller))

    kinds = []
    with watching(second):
        LinearMulticlassSVC(random_state=0, verbose=1).fit(*digits)
    assert kinds == [show.Lines]
    with show.telling("pass", 1) as teller:
        assert not isinstance(teller, show.Lines)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_bar_ends_with_its_fit(error, digits, terminal):
    def stop(record):
        if record["pass"] == 2:
            raise error

    before = set(threading.enumerate())
    with watching(stop), pytest.raises(error):
        LinearMulticlassSVC(random_state=0, verbose=1, tol=1e-9).fit(*digits)
    assert set(threading.enumerate()) == before


def test_a_terminal_that_goes_away_ends_no_fit(digits, terminal, monkeypatch):
    def closed(text):
        raise OSError("gone")

    monkeypatch.setattr(terminal, "write", closed)
    assert LinearMulticlassSVC(random_state=0, verbose=1).fit(*digits).dual_gap_ <= 1e-3


@pytest.mark.parametrize("columns", ["20", "60", "120"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_line_fits_its_terminal(columns, encoding, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(type(terminal), "encoding", encoding)
    line, watch = show.TerminalLine(terminal), Watch()
    for i in range(1, 8):
        record = {"pass": i, "time": i, "gap": 10.0**-i, "certified_gap": np.nan, "tol": 1e-9}
        watch(record)
        line.draw(watch, float(i))
    drawn = terminal.getvalue().split("\r")
    assert max(len(part) for part in drawn) < int(columns)
    drawn[-1].encode(encoding)
    assert ("pass 7" in drawn[-1]) or columns == "20"


def test_dumb_terminals_have_lines(digits, terminal, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "dumb")
    LinearMulticlassSVC(random_state=0, verbose=1).fit(*digits)
    assert terminal.getvalue() == ""
    assert "primal" in capsys.readouterr().out


def test_in_a_notebook_the_cell_has_a_bar_that_becomes_the_result():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    watched = textwrap.dedent(WAITS).replace("TerminalLine", "NotebookCell")
    code = (DIGITS, watched, "print(len(drawn) > 20, any('left' in d for d in drawn))")
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    nb = nbclient.NotebookClient(nb, timeout=600, startup_timeout=600).execute()
    (shown,) = nb.cells[1].outputs  # one display, which was updated
    assert shown.output_type == "display_data"
    assert re.fullmatch(r"pass +\d+  gap \S+ \(certified\)  time \S+ s", shown.data["text/plain"])
    assert shown.data["text/html"].startswith("<code>pass")
    assert nb.cells[2].outputs[0].text.split() == ["True", "True"]


# --- what stays: a row per pass ------------------------------------------------------------------


@pytest.mark.parametrize("make", [LinearMulticlassSVC, KernelMulticlassSVC])
def test_the_history_has_a_row_per_pass_and_says_what_was_proved(make, digits):
    clf = make(C=0.1, tol=1e-4, random_state=0)
    if make is KernelMulticlassSVC:  # small sets, and examples that are left out meanwhile
        clf.set_params(solver=KernelSolver(working_set=20))
    history = clf.fit(*digits).history_
    assert list(history["pass"]) == sorted(set(history["pass"]))
    assert history["pass"][0] == 1 and history["pass"][-1] == clf.n_iter_
    proved = np.isfinite(history["gap"])
    assert proved[-1] and not proved.all()
    assert history["gap"][-1] == clf.dual_gap_
    assert history["primal"][-1] == clf.objective_
    for name in ("primal", "dual"):
        np.testing.assert_array_equal(np.isfinite(history[name]), proved)
    # estimates of the dual are bounds up to rounding (of kernel machines, but for the examples that
    # are left out), and those of the gap mean something
    estimated = history["estimated_dual"]
    most = 1e-6 if make is LinearMulticlassSVC else clf.tol
    assert (estimated[np.isfinite(estimated)] <= clf.objective_ * (1 + most)).all()
    late = np.isfinite(history["estimated_gap"][-2:])
    assert late.any() and (history["estimated_gap"][-2:][late] < 1e-2).all()


def test_estimates_without_any_certificate_prove_nothing(digits):
    clf = LinearMulticlassSVC(
        solver=DualSolver(certify=False), max_iter=20, random_state=0, C=1e-3
    ).fit(*digits)
    assert len(clf.history_["pass"]) == 20
    assert np.isnan(clf.history_["gap"]).all() and np.isnan(clf.dual_gap_)
    gaps = clf.history_["estimated_gap"]
    assert gaps[-1] < gaps[np.isfinite(gaps)][0]
