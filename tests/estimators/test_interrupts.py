"""Ctrl-C at any instruction: what it comes into is as it was, or whole, and goes on working."""

from __future__ import annotations

import sys

import pytest

from tests.estimators.ctrl_c import CtrlC, points
from tests.estimators.interrupted import SCENARIOS, attempts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
FEW = {"probability", "cv", "kernel_cv", "path", "checkpoint", "linear_long", "blocks"}  # long ones


@pytest.mark.parametrize("name", SCENARIOS)
def test_ctrl_c_at_some_instructions(name):
    total, tried, wrong = attempts(name, 8 if name in FEW else 20)
    assert tried > 0 and total > 1000
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_ctrl_c_at_every_instruction(name):
    """At every one where it makes a difference; of the longest calls, at many."""
    _, tried, wrong = attempts(name, 4000, seed=1)
    assert tried > 500
    assert wrong == {}


def test_the_interpreter_is_interrupted_at_the_chosen_instruction():
    """Every point of a small function is hit, and what was done before it is done."""

    def call():
        for i in range(3):
            done.append(i)
            done.copy()

    done = []
    total, found = points(call)
    assert done == [0, 1, 2] and 6 <= len(found) <= total
    lengths = set()
    for at in found:
        done = []
        assert CtrlC(at).during(call)
        lengths.add(len(done))
    assert lengths >= {1, 2, 3}
    done = []
    assert not CtrlC(total + 1000).during(call)
    assert done == [0, 1, 2]
