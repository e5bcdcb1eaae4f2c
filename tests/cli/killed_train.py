"""Train in child processes, kill them, and see what is left of the model: run by test_killed.py.

A child is forked from a process that has imported everything, so that its whole life is the work
of ``polymargin train``, and a moment drawn at random is likely to be in the middle of it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

import polymargin
from polymargin.cli import main


def train(data: str, target: str, C: int) -> int:
    return main(["train", data, "-q", "--C", str(C), "-o", target])


def killed(data: str, target: str, C: int, delay: float | None, patched: str | None) -> None:
    """Train in a child; kill it after a delay, or before or after a call that writes the file."""
    pid = os.fork()
    if pid == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        if patched is not None:
            kill_at(patched)
        os._exit(train(data, target, C))
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def kill_at(moment: str) -> None:
    when, name = moment.split()
    original = getattr(os, name)

    def deadly(*args, **kwargs):
        if when == "after":
            original(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(os, name, deadly)


def run(data: str, target: str, kills: int) -> dict:
    rng = random.Random(0)
    train(data, target, 1)
    start = time.perf_counter()
    killed(data, target, 1, None, None)  # nobody kills this one
    usual = time.perf_counter() - start
    old, outcomes = 1, {"old": 0, "new": 0, "bad": []}
    moments = ["before fsync", "before replace", "after replace"]
    plan = [(0.0, None)]  # before anything, however fast the machine has become
    plan += [(rng.uniform(0, 1.6 * usual), None) for _ in range(kills - 1)]
    plan += [(None, moment) for moment in moments]
    for C, (delay, moment) in enumerate(plan, start=2):
        killed(data, target, C, delay, moment)
        try:
            found = polymargin.load(target)
            kept = int(found.C)
            found.predict([[1.0, 2.0, 3.0, 4.0]])
        except Exception as error:
            outcomes["bad"].append(f"{moment or delay}: {error}")
            continue
        outcomes["new" if kept == C else "old"] += 1
        if kept not in (C, old) or (moment and (kept == C) != (moment == "after replace")):
            outcomes["bad"].append(f"{moment or delay}: C={kept}, expected {C} or {old}")
        old = kept
    return outcomes


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
