"""Every method of the restricted problem inside the same engine.

    python -m benchmarks.methods [--quick] [--output FOLDER]

Per data set, loss and method: the cost of an unshrunk pass, and the CPU time to a certified
relative gap of 1e-2 and 1e-3 with the default schedule, each relative to the loss's default method.
A dash: not reached in 300 passes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.passes import make_problem, pass_seconds
from polymargin import DualSolver, Problem

DATA = ("letter", "news20", "clinc150")
QUICK = ("letter",)
LOSSES = ("crammer_singer", "weston_watkins")
TARGETS = (1e-2, 1e-3)
MOST_PASSES = 300
RESULTS = Path(__file__).parent / "results"


def seconds_to(problem: Problem, method: str, tol: float, repeats: int = 2) -> float | None:
    """CPU time of a solution to ``tol``, the fastest of `repeats`; None when it is not reached."""
    fastest = None
    for seed in range(repeats):
        start = time.process_time()
        found = DualSolver(restricted=method).solve(
            problem, tol=tol, max_iter=MOST_PASSES, random_state=seed
        )
        seconds = time.process_time() - start
        if found.status != "converged":
            return None
        fastest = seconds if fastest is None else min(fastest, seconds)
    return fastest


def measure(name: str, problem: Problem) -> list[dict[str, Any]]:
    """One row per method of the problem's loss, the default first."""
    return [
        {
            "data": name,
            "classes": problem.n_classes,
            "loss": problem.loss.name,
            "method": method,
            "pass": pass_seconds(problem, restricted=method, repeats=2),
            **{f"{tol:g}": seconds_to(problem, method, tol) for tol in TARGETS},
        }
        for method in problem.loss.restricted_methods
    ]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown, relative to the default method of each data set and loss."""
    lines = [
        "| data | classes | loss | method | pass | to 1e-2 | to 1e-3 |",
        "|---|--:|---|---|--:|--:|--:|",
    ]
    base: dict[str, Any] = {}
    for row in rows:
        if (row["data"], row["loss"]) != (base.get("data"), base.get("loss")):
            base = row
        cells = [
            "-" if row[key] is None or base[key] is None else f"{row[key] / base[key]:.2f}"
            for key in ("pass", "0.01", "0.001")
        ]
        lines.append(
            f"| {row['data']} | {row['classes']} | {row['loss']} | {row['method']} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for name in QUICK if options.quick else DATA:
            data = datasets.load(name)
            for loss in LOSSES:
                rows += measure(name, make_problem(data.X_train, data.y_train, loss))
    text = table(rows)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "methods.md").write_text(text, encoding="utf-8")
    (options.output / "methods.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
