"""The benchmark of threads: Amdahl's law, and a table of a small run."""

import math

import pytest

from benchmarks import threads
from benchmarks.datasets import load


def test_the_serial_fraction_is_amdahls():
    seconds = {n: 3.0 * (0.2 + 0.8 / n) for n in (1, 2, 4, 8)}
    assert threads.serial_fraction(seconds, 8) == pytest.approx(0.2)
    seconds[8] = 100.0  # more threads than processors do not count
    assert threads.serial_fraction(seconds, 4) == pytest.approx(0.2)
    assert math.isnan(threads.serial_fraction({1: 3.0}, 4))


def test_a_small_run_makes_a_row():
    found = threads.in_turns(load("digits"), "one_vs_rest", (1, 2), rounds=1)
    assert set(found) == {1, 2} and min(found.values()) > 0
    row = {"data": "digits", "loss": "one_vs_rest", "seconds": found, "serial": 0.25}
    assert "| digits |" in threads.table([row], (1, 2)) and "0.25" in threads.table([row], (1, 2))
