"""Training from the command line has a bar on a terminal, and only there."""

from __future__ import annotations

import re
import sys

import pytest

from tests.terminal import on_a_terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]m|\x1b\[[0-9;]*38;")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_on_a_terminal_there_are_a_bar_and_colours(svm, tmp_path):
    command = [sys.executable, "-m", "polymargin", "train", str(svm), "-o", str(tmp_path / "m.pmz")]
    shown = on_a_terminal(command)
    assert "training" in shown
    assert COLOUR.search(shown)
    plain = on_a_terminal(command, NO_COLOR="1")
    assert "training" in plain
    assert not COLOUR.search(plain)
    assert "training" not in on_a_terminal([*command, "--quiet"])
