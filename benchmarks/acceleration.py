"""How many passes the accelerated solver needs, and what each constant of its outer loop does.

    python -m benchmarks.acceleration measure RESULTS.jsonl [--set growth=2] [--part tuned]
    python -m benchmarks.acceleration compare BASE.jsonl RESULTS.jsonl ...

The cost is the number of effective passes, visits / examples, to a certified gap: it does not
depend on the machine or its load. A measurement that was interrupted goes on where it stopped. To
compare with another commit, measure with its ``src`` first in ``PYTHONPATH``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from polymargin import DualSolver, Problem, get_loss
from polymargin.solvers import acceleration

PARTS = {
    "tuned": ("letter", "satimage", "clinc150", "news20", "mnist"),
    "checked": (
        "dna",
        "banking77",
        "usps",
        "banking77_minilm",
        "rcv1_multiclass_sub",
        "quickdraw345",
    ),
}
COSTS = (0.1, 1.0, 10.0)
LOSSES = ("crammer_singer", "weston_watkins", "one_vs_rest", "top_k_beta")
TOP_K = 2  # dna has three classes
TOLERANCES = (1e-3, 1e-4)
MOST_PASSES = 3000
FIRST_ROWS = {"mnist": 10_000}
FIRST_CLASSES = {"aloi": 100, "quickdraw345": 60}
KEY = ("data", "dtype", "loss", "C", "seed")
Case = dict[str, Any]


def load(name: str, dtype: str) -> tuple[Any, np.ndarray]:
    """Load the training part of a data set, or the sample that is used here."""
    layout: datasets.Layout = "csr" if name == "mnist" else "native"
    data = datasets.load(name, dtype=np.dtype(dtype), layout=layout)
    chosen = data.y_train < FIRST_CLASSES.get(name, data.n_classes)
    rows = np.flatnonzero(chosen)[: FIRST_ROWS.get(name)]
    return data.X_train[rows], data.y_train[rows]


def effective_passes(X: Any, y: np.ndarray, case: Case) -> dict[str, float | None]:
    """Count the visits per example to each tolerance; None where it was not reached."""
    problem = Problem(
        X=X,
        y=y,
        c=np.full(y.size, case["C"]),
        loss=get_loss(case["loss"], TOP_K),
        n_classes=int(y.max()) + 1,
        intercept_scaling=0.0,
    )

    def passes_to(tol: float) -> float | None:
        visits: list[int] = []
        found = DualSolver().solve(
            problem,
            tol=tol,
            max_iter=MOST_PASSES,
            random_state=case["seed"],
            progress=lambda record: visits.append(record["n_awake"]),
        )
        return sum(visits) / y.size if found.status == "converged" else None

    return {f"{tol:g}": passes_to(tol) for tol in TOLERANCES}


def read(path: Path) -> list[Case]:
    """Read the measurements of a file; none where it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measure(path: Path, cases: Iterator[Case]) -> None:
    """Append to the file those cases that are not in it."""
    done = {tuple(row[name] for name in KEY) for row in read(path)}
    loaded: tuple[Any, Any] = None, None
    with path.open("a") as file, threadpool_limits(1):
        for case in cases:
            if tuple(case[name] for name in KEY) in done:
                continue
            which = case["data"], case["dtype"]
            if loaded[0] != which:
                loaded = which, load(*which)
            file.write(json.dumps(case | {"passes": effective_passes(*loaded[1], case)}) + "\n")
            file.flush()


def mean_passes(rows: list[Case]) -> dict[tuple[Any, ...], float]:
    """Average over the seeds; not converged counts as `MOST_PASSES`."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        for tol, passes in row["passes"].items():
            key = (row["data"], row["dtype"], row["loss"], row["C"], tol)
            found.setdefault(key, []).append(passes or MOST_PASSES)
    return {key: sum(values) / len(values) for key, values in found.items()}


def compare(base: list[Case], other: list[Case]) -> tuple[float, list[tuple[float, str]]]:
    """Geometric mean of the ratios of what both have, and the ratio of each case, largest first."""
    seeds = [{tuple(row[name] for name in KEY) for row in rows} for rows in (base, other)]
    common = seeds[0] & seeds[1]
    before, after = (
        mean_passes([row for row in rows if tuple(row[name] for name in KEY) in common])
        for rows in (base, other)
    )
    ratios = {key: after[key] / before[key] for key in before}
    if not ratios:
        return math.nan, []
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    return mean, sorted(((r, " ".join(map(str, key))) for key, r in ratios.items()), reverse=True)


def print_comparison(base: list[Case], path: Path) -> None:
    """Print one row of the table for each part of the data."""
    other = read(path)
    for part, names in PARTS.items():
        mean, ratios = compare([row for row in base if row["data"] in names], other)
        if ratios:
            changed = sum(ratio != 1.0 for ratio, _ in ratios)
            worst, best = ratios[0], ratios[-1]
            print(
                f"| {path.stem} | {part} | {len(ratios)} | {changed} | {mean:.3f} "
                f"| {worst[0]:.2f} ({worst[1]}) | {best[0]:.2f} ({best[1]}) |"
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or compare what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("measure")
    run.add_argument("results", type=Path)
    run.add_argument("--set", nargs="*", default=[], metavar="CONSTANT=VALUE")
    run.add_argument("--part", choices=PARTS, nargs="*", default=list(PARTS))
    run.add_argument("--data", nargs="*", help="instead of --part")
    run.add_argument("--C", type=float, nargs="*", default=COSTS)
    run.add_argument("--loss", nargs="*", default=LOSSES[:1], choices=LOSSES)
    run.add_argument("--dtype", nargs="*", default=["float64"], choices=["float64", "float32"])
    run.add_argument("--seeds", type=int, default=3)
    show = commands.add_parser("compare")
    show.add_argument("base", type=Path)
    show.add_argument("results", type=Path, nargs="+")
    options = parser.parse_args(argv)
    if options.command == "compare":
        print("| measured | data | cases | changed | geometric mean | worst | best |")
        print("|---|---|--:|--:|--:|---|---|")
        for path in options.results:
            print_comparison(read(options.base), path)
        return 0
    if options.set:
        pairs = (setting.split("=") for setting in options.set)
        changed = {name: float(value) for name, value in pairs}
        acceleration.CONSTANTS = replace(acceleration.CONSTANTS, **changed)
    names = options.data or [name for part in options.part for name in PARTS[part]]
    cases = (
        {"data": name, "dtype": dtype, "loss": loss, "C": C, "seed": seed}
        for loss in options.loss
        for name in names
        for dtype in options.dtype
        for C in options.C
        for seed in range(options.seeds)
    )
    measure(options.results, cases)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
