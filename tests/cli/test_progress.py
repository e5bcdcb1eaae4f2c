"""The bar shows the gap on a log scale, and only on a terminal."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys

import pytest
from sklearn.datasets import load_iris

from polymargin import KernelMulticlassSVC, LinearMulticlassSVC
from polymargin.cli._progress import Watch
from polymargin.solvers import watching

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]m|\x1b\[[0-9;]*38;")


def watch_of(gaps, tol=1e-4, certified=math.nan):
    watch = Watch()
    for i, gap in enumerate(gaps, start=1):
        watch({"pass": i, "time": 2.0 * i, "gap": gap, "certified_gap": certified, "tol": tol})
    return watch


def test_half_of_the_decades_are_half_of_the_way():
    assert watch_of([1.0, 1e-1, 1e-2]).done == pytest.approx(0.5)
    assert watch_of([math.inf]).done == 0.0
    assert watch_of([1.0, 1e-2, 1e-1]).done == pytest.approx(0.5)  # never backwards


def test_only_a_certificate_completes_the_bar():
    assert watch_of([1.0, 1e-5]).done < 1
    assert watch_of([1.0, 1e-5], certified=9e-5).done == 1
    assert "estimated" in watch_of([1.0, 1e-2]).describe()
    assert "certified" in watch_of([1.0, 1e-2], certified=1e-2).describe()


def test_the_time_left_follows_the_recent_speed():
    # a decade per pass of 2 seconds: two decades to go
    watch = watch_of([1.0, 1e-1, 1e-2, 1e-3, 1e-4], tol=1e-6)
    assert watch.seconds_left == pytest.approx(4.0)
    assert "about 4 s left" in watch.describe()
    assert watch_of([1.0, 1e-1]).seconds_left is None
    assert watch_of([0.5] * 8).seconds_left is None


@pytest.mark.parametrize("model", [LinearMulticlassSVC, KernelMulticlassSVC])
def test_a_watched_solver_gives_the_same_model(model):
    X, y = load_iris(return_X_y=True)
    watch = Watch()
    with watching(watch):
        watched = model(C=0.1, random_state=0).fit(X, y)
    plain = model(C=0.1, random_state=0).fit(X, y)
    assert (watched.decision_function(X) == plain.decision_function(X)).all()
    assert watch.trace["pass"] == list(range(1, watched.n_iter_ + 1))
    assert watch.done >= 0.99
    if model is LinearMulticlassSVC:  # kernel machines certify the last round afterwards
        assert watch.done == 1.0
        assert watch.certified == pytest.approx(watched.dual_gap_)


def on_a_terminal(arguments, **environment):
    """Run the command with its output on a terminal, and return what that shows."""
    import pty

    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment}
    env.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    process = subprocess.Popen(
        [sys.executable, "-m", "polymargin", *arguments], stdout=slave, stderr=slave, env=env
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait() == 0, shown
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_on_a_terminal_there_are_a_bar_and_colours(svm, tmp_path):
    arguments = ["train", str(svm), "-o", str(tmp_path / "m.pmz")]
    shown = on_a_terminal(arguments)
    assert "training" in shown
    assert COLOUR.search(shown)
    plain = on_a_terminal(arguments, NO_COLOR="1")
    assert not COLOUR.search(plain)
    assert "training" not in on_a_terminal([*arguments, "--quiet"])
