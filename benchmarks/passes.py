"""What an unshrunk pass costs: Weston-Watkins against Crammer-Singer, and against bare GEMMs.

    python -m benchmarks.passes [--quick]

The first table is CPU time on one thread. The second is wall-clock time on dense float32 data of
10,000 x 2,048 with 1,000 classes, against the two products a blocked pass cannot do without: the
scores ``X W`` and the update ``X^T A``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from polymargin import DualSolver, Problem, get_loss

LOSS_DATA = ("news20", "letter", "mnist", "clinc150")
LOSS_LIMIT = 1.5
GEMM_LIMITS = {1: 1.5, 2: 1.8}


def make_problem(X: Any, y: np.ndarray, loss: str = "crammer_singer", C: float = 1.0) -> Problem:
    """Build the unweighted problem without an intercept."""
    return Problem(
        X=X,
        y=y,
        c=np.full(y.size, C),
        loss=get_loss(loss),
        n_classes=int(y.max()) + 1,
        intercept_scaling=0.0,
    )


def pass_seconds(
    problem: Problem,
    *,
    passes: int = 3,
    repeats: int = 3,
    n_jobs: int = 1,
    clock: Callable[[], float] = time.process_time,
    restricted: str = "auto",
) -> float:
    """Time an unshrunk pass.

    Parameters
    ----------
    problem : Problem
        What to solve.
    passes : int, default=3
        Passes to average over, after a first one that is left out with the set-up before it.
    repeats : int, default=3
        The fastest average of so many runs is returned.
    n_jobs : int, default=1
        Threads.
    clock : callable, default=time.process_time
        CPU time by default; `time.perf_counter` for several threads.
    restricted : str, default="auto"
        How the restricted problems are solved.

    Returns
    -------
    float
        Seconds per pass.
    """
    solver = DualSolver(restricted=restricted, shrinking=False, acceleration=False, certify=False)

    def average(seed: int) -> float:
        stamps: list[float] = []

        def stamp(record: dict[str, Any]) -> None:
            stamps.append(clock())

        solver.solve(problem, max_iter=passes + 1, random_state=seed, n_jobs=n_jobs, progress=stamp)
        return (stamps[-1] - stamps[0]) / (len(stamps) - 1)

    return min(average(seed) for seed in range(repeats))


def gemm_seconds(X: np.ndarray, n_classes: int, repeats: int = 3) -> float:
    """Time ``X W`` and ``X^T A`` once each, wall-clock, the fastest of `repeats`."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((X.shape[1], n_classes)).astype(X.dtype)
    A = rng.standard_normal((X.shape[0], n_classes)).astype(X.dtype)
    scores, update = np.empty_like(A), np.empty_like(W)
    fastest = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        np.matmul(X, W, out=scores)
        np.matmul(X.T, A, out=update)
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def compare_losses(names: Sequence[str] = LOSS_DATA) -> None:
    """Print the cost of a Weston-Watkins pass relative to a Crammer-Singer one."""
    print("| data | Crammer-Singer ms | Weston-Watkins ms | ratio | wanted |")
    print("|---|--:|--:|--:|--:|")
    for name in names:
        data = datasets.load(name, layout="csr" if name == "mnist" else "native")
        seconds = [
            pass_seconds(make_problem(data.X_train, data.y_train, loss))
            for loss in ("crammer_singer", "weston_watkins")
        ]
        print(
            f"| {name} | {1e3 * seconds[0]:.2f} | {1e3 * seconds[1]:.2f} "
            f"| {seconds[1] / seconds[0]:.2f} | at most {LOSS_LIMIT} |",
            flush=True,
        )


def compare_gemm(n: int = 10_000, n_features: int = 2_048, n_classes: int = 1_000) -> None:
    """Print the cost of a dense pass relative to two bare GEMMs, on one thread and on two."""
    X, y = datasets.generate_dense(n, n_features, n_classes)
    problem = make_problem(X, y)
    print("| threads | two GEMMs s | pass s | ratio | wanted |")
    print("|--:|--:|--:|--:|--:|")
    for threads, limit in GEMM_LIMITS.items():
        with threadpool_limits(threads):
            bare = gemm_seconds(X, n_classes)
            ours = pass_seconds(problem, n_jobs=threads, clock=time.perf_counter)
        print(
            f"| {threads} | {bare:.3f} | {ours:.3f} | {ours / bare:.2f} | at most {limit} |",
            flush=True,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data only")
    options = parser.parse_args(argv)
    with threadpool_limits(1):
        compare_losses(("letter", "clinc150") if options.quick else LOSS_DATA)
    print()
    if options.quick:
        compare_gemm(2_000, 512, 250)
    else:
        compare_gemm()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
