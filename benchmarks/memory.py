"""Peak memory of three passes over a million sparse examples of 1,000 classes.

    python -m benchmarks.memory [--n 1000000]

A dense dual of that size would take 4 GB in float32; the whole process must stay under 3 GB. Every
run is a fresh process, generates its data in place, trains, and reports its own peak. The parent
imports nothing heavy: on Linux a new process starts with the peak of the one that made it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LIMIT_GB = 3.0
LOSSES = ("crammer_singer", "weston_watkins")


def peak_gb() -> float:
    """Return the peak resident memory of this process in GB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e9 if sys.platform == "darwin" else peak * 1024 / 1e9


def train(loss: str, n: int, certify: bool) -> dict[str, Any]:
    """Generate, train three passes in float32, and report.

    Parameters
    ----------
    loss : str
        Name of the loss.
    n : int
        Examples.
    certify : bool
        Whether to compute the duality gap.

    Returns
    -------
    dict
        Peak in GB after generating and after training, seconds, gap.
    """
    from benchmarks.datasets import generate_sparse
    from benchmarks.passes import make_problem
    from polymargin import DualSolver

    X, y = generate_sparse(n, n_features=50_000, n_classes=1_000, nonzeros=20)
    problem = make_problem(X, y, loss)
    generated = peak_gb()
    start = time.perf_counter()
    solution = DualSolver(certify=certify).solve(problem, max_iter=3, random_state=0)
    return {
        "generated_gb": generated,
        "peak_gb": peak_gb(),
        "seconds": time.perf_counter() - start,
        "gap": solution.gap,
    }


def train_in_fresh_process(loss: str, n: int, certify: bool) -> dict[str, Any]:
    """Call `train` in a new interpreter, because a process's peak never falls."""
    command = [sys.executable, "-m", "benchmarks.memory", "--n", str(n), "--loss", loss]
    command += ["--certify"] if certify else []
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or (with ``--loss``) train once and print the report as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="examples (default 1000000)")
    parser.add_argument("--loss", choices=LOSSES, help="one run in this process, report as JSON")
    parser.add_argument("--certify", action="store_true", help="with --loss: compute the gap")
    options = parser.parse_args(argv)
    if options.loss:
        print(json.dumps(train(options.loss, options.n, options.certify)))
        return 0
    print(f"{options.n} examples, 20 nonzeros, 50,000 features, 1,000 classes, float32, 3 passes\n")
    print("| loss | gap computed | data GB | peak GB | wanted | wall s | gap |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for loss in LOSSES:
        for certify in (False, True):
            report = train_in_fresh_process(loss, options.n, certify)
            print(
                f"| {loss} | {'yes' if certify else 'no'} | {report['generated_gb']:.2f} "
                f"| {report['peak_gb']:.2f} | under {LIMIT_GB:g} | {report['seconds']:.1f} "
                f"| {report['gap']:.2g} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
