"""What threads give: the wall clock of fits with 1, 2, 4 and 8 of them.

    python -m benchmarks.threads [--data letter] [--losses one_vs_rest] [--threads 1 2] [--rounds 5]

float64, C = 1 (quickdraw345: 0.01), a certified gap of 1e-3. The numbers of threads take turns, and
the fastest of all rounds counts. The serial fraction f is that of Amdahl's law,
``t(n) = t(1) (f + (1 - f) / n)``, fitted to the numbers of threads that the machine has processors
for; more threads than processors only show what they cost.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin import LinearMulticlassSVC

RESULTS = Path(__file__).resolve().parent / "results"
DATA = (
    "clinc150",
    "rcv1_multiclass_sub",
    "news20",
    "letter",
    "satimage",
    "quickdraw345",
    "aloi",
)
LOSSES = ("one_vs_rest", "crammer_singer", "weston_watkins")
C = {"quickdraw345": 0.01}
TOL = 1e-3


def seconds_of_fit(data: datasets.Dataset, loss: str, threads: int) -> float:
    """Wall-clock seconds of one fit."""
    model = LinearMulticlassSVC(
        loss=loss, C=C.get(data.name, 1.0), tol=TOL, n_jobs=threads, random_state=0
    )
    gc.collect()
    began = time.perf_counter()
    model.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - began
    assert model.dual_gap_ <= TOL
    return seconds


def in_turns(
    data: datasets.Dataset, loss: str, threads: Sequence[int], rounds: int
) -> dict[int, float]:
    """The fastest fit with each number of threads."""
    best = dict.fromkeys(threads, np.inf)
    for _ in range(rounds):
        for n in threads:
            best[n] = min(best[n], seconds_of_fit(data, loss, n))
    return best


def serial_fraction(seconds: Mapping[int, float], processors: int) -> float:
    """The f of Amdahl's law that fits best; NaN where there is one number of threads only."""
    known = [n for n in seconds if 1 < n <= processors]
    if not known or 1 not in seconds:
        return float("nan")
    rest = np.array([1 - 1 / n for n in known])  # t(n) / t(1) - 1 / n = f (1 - 1 / n)
    found = np.array([seconds[n] / seconds[1] - 1 / n for n in known])
    return float(np.clip(rest @ found / (rest @ rest), 0.0, 1.0))


def table(rows: Sequence[Mapping[str, Any]], threads: Sequence[int]) -> str:
    """Seconds with one thread, how many times as fast it is with more, and the serial fraction."""
    header = ["data", "loss", "1 thread, s", *(f"{n} threads" for n in threads[1:]), "serial"]
    lines = []
    for row in rows:
        seconds = {int(n): s for n, s in row["seconds"].items()}
        ratios = [f"{seconds[1] / seconds[n]:.2f}" if n in seconds else "" for n in threads[1:]]
        lines.append(
            [row["data"], row["loss"], f"{seconds[1]:.3f}", *ratios, f"{row['serial']:.2f}"]
        )
    return markdown_table(header, lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it beside the other results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--losses", nargs="+", default=list(LOSSES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    threads = sorted({1, *arguments.threads})
    place = RESULTS / "threads.json"
    known = read_json(place).get("rows", [])
    for name in arguments.data:
        data = datasets.load(name)
        for loss in arguments.losses:
            with threadpool_limits(1):
                seconds = in_turns(data, loss, threads, arguments.rounds)
            row = {"data": name, "loss": loss, "seconds": {str(n): s for n, s in seconds.items()}}
            row |= {"serial": serial_fraction(seconds, os.cpu_count() or 1), **provenance()}
            known = [one for one in known if (one["data"], one["loss"]) != (name, loss)] + [row]
            print(table([row], threads).splitlines()[-1], flush=True)
            write_json(place, {"rows": known})
    every = sorted({int(n) for row in known for n in row["seconds"]})
    (RESULTS / "threads.md").write_text(table(known, every) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
