"""Peak memory of a kernel machine on all of mnist with a cache of 200 MB.

    python -m benchmarks.kernel_memory [--rows 60000] [--tol 0.1]

The Gram matrix of 60,000 rows would take 14 GB in float32. Wanted: data, model and 600 MB. The
resident memory is sampled twenty times a second during the fit, in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from polymargin import KernelMulticlassSVC

LIMIT_MB = 600.0
CACHE_MB = 200
RESULTS = Path(__file__).resolve().parent / "results"


@contextmanager
def sampled_peak(every: float = 0.05) -> Iterator[list[float]]:
    """The highest resident memory meanwhile, in MB, as the only item of a list."""
    process = psutil.Process()
    peak = [process.memory_info().rss / 2**20]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(every):
            peak[0] = max(peak[0], process.memory_info().rss / 2**20)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def measure(X: np.ndarray, y: np.ndarray, tol: float) -> dict[str, Any]:
    """Fit, and say how much memory that took beside data and model."""
    before = psutil.Process().memory_info().rss / 2**20  # the data and the interpreter
    clf = KernelMulticlassSVC(C=10, gamma=0.02, tol=tol, cache_size=CACHE_MB, random_state=0)
    with sampled_peak() as peak:
        clf.fit(X, y)
    model = (clf.support_vectors_.nbytes + clf.dual_coef_.nbytes) / 2**20
    return {
        "rows": len(y),
        "data_mb": X.nbytes / 2**20,
        "model_mb": model,
        "above_data_mb": peak[0] - before,
        "above_data_and_model_mb": peak[0] - before - model,
        "support": len(clf.support_),
        "gap": clf.dual_gap_,
    }


def table(row: dict[str, Any]) -> str:
    """The result as Markdown."""
    return (
        "| rows | data MB | model MB | above data and model MB | wanted | support | gap |\n"
        "|--:|--:|--:|--:|--:|--:|--:|\n"
        f"| {row['rows']} | {row['data_mb']:.0f} | {row['model_mb']:.0f} | "
        f"{row['above_data_and_model_mb']:.0f} | under {LIMIT_MB:.0f} | {row['support']} | "
        f"{row['gap']:.1e} |\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--tol", type=float, default=0.1)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    data = datasets.load("mnist")
    X = np.ascontiguousarray(data.X_train[: options.rows], np.float32)
    y = data.y_train[: options.rows]
    del data
    with threadpool_limits(1):
        row = measure(X, y, options.tol)
    print(table(row))
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "kernel_memory.md").write_text(table(row), encoding="utf-8")
    (options.output / "kernel_memory.json").write_text(json.dumps(row, indent=1) + "\n")
    return 0 if row["above_data_and_model_mb"] < LIMIT_MB else 1


if __name__ == "__main__":
    raise SystemExit(main())
