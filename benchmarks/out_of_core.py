"""Training on data larger than the memory it may hold, against the same fit in memory.

    python -m benchmarks.out_of_core generate FOLDER [--rows 5000000] [--sorted]
    python -m benchmarks.out_of_core fit FOLDER [--memory 500MB] [--tol 1e-2]

``generate`` writes rows of about 60 nonzeros, 100,000 features and 100 classes as a data directory,
block by block. ``fit`` trains (without ``--memory``: in memory) and prints one line of JSON: CPU
seconds, passes, the certified gap, the peak of resident memory, how often the file was read. With
``--memory``, allocated memory (``RLIMIT_DATA``) is limited to that plus the weights, the dual and
150 MB, so that a fit that holds more fails.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polymargin import LinearMulticlassSVC
from polymargin.io import BlockSource, write_blocks
from polymargin.problem import Problem
from polymargin.solvers import DualSolver, Solution

FEATURES, CLASSES, NONZEROS, BLOCK = 100_000, 100, 60, 50_000
WEIGHT_ARRAYS = 10  # of a fit, at most: W, its centre, the one before, the mean, the best, V (in
# double: two), its copy, the model; and one for what is made of them
DUAL_BYTES = 60  # of an example: its row, at most a few entries, and where it is
INTERPRETER = 150e6


def rows_of(first: int, last: int, labels: np.ndarray) -> sparse.csr_array:
    """Words of a common vocabulary with a long tail, and of the label's own."""
    rng, n = np.random.default_rng(first), last - first
    common = (FEATURES * rng.random((n, NONZEROS)) ** 3).astype(np.int64)
    own = (labels[:, None] * 977 + (2000 * rng.random((n, NONZEROS)) ** 2).astype(np.int64)) * 7
    columns = np.where(rng.random((n, NONZEROS)) < 0.25, own % FEATURES, common)
    columns.sort(axis=1)
    values = rng.random((n, NONZEROS), np.float32) + np.float32(0.5)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    X = sparse.csr_array(
        (values.ravel(), columns.ravel(), np.arange(n + 1) * NONZEROS), shape=(n, FEATURES)
    )
    X.sum_duplicates()
    return X


def generate(folder: Path, n: int, *, is_sorted: bool) -> None:
    """Write the data directory."""
    labels = np.random.default_rng(0).integers(CLASSES, size=n)
    seen = np.where(np.random.default_rng(1).random(n) < 0.1, labels[::-1], labels)  # some noise
    order = np.argsort(seen, kind="stable") if is_sorted else np.arange(n)

    def blocks() -> Iterator[tuple[sparse.csr_array, np.ndarray]]:
        for first in range(0, n, BLOCK):
            part = order[first : first + BLOCK]
            yield rows_of(first, first + len(part), labels[part]), seen[part]

    write_blocks(BlockSource(blocks), folder)


class Recording(DualSolver):
    """The solver, and the rows it was given."""

    rows: Any = None

    def solve(self, problem: Problem, **settings: Any) -> Solution:
        """Solve, and say what for."""
        Recording.rows = problem.rows
        return super().solve(problem, **settings)


def fit(folder: Path, memory: str | None, tol: float) -> dict[str, object]:
    """Train, and measure."""
    y = np.load(folder / "y.npy", mmap_mode="r")
    n = len(y)
    padded = -(-CLASSES // 16) * 16
    extra = WEIGHT_ARRAYS * 4 * FEATURES * padded + DUAL_BYTES * n + INTERPRETER
    if memory is not None:
        limit = int(float(memory.removesuffix("MB")) * 1e6 + extra)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    model = LinearMulticlassSVC(tol=tol, random_state=0, memory_limit=memory, solver=Recording())
    began, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(folder)
    cpu, wall = time.process_time() - began, time.perf_counter() - wall
    size = sum((folder / f"{part}.npy").stat().st_size for part in ("data", "indices", "indptr"))
    read = getattr(Recording.rows, "bytes_read", size)
    return {
        "rows": n,
        "sorted": bool((y[1:] >= y[:-1]).all()),
        "memory": memory,
        "cpu_seconds": round(cpu, 1),
        "wall_seconds": round(wall, 1),
        "passes": model.n_iter_,
        "certificates": int(np.isfinite(model.history_["gap"]).sum()),
        "gap": model.dual_gap_,
        "objective": model.objective_,
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
        "allowed_mb": None if memory is None else round(limit / 1e6),
        "weights_mb": round(4 * FEATURES * padded / 1e6),
        "file_mb": round(size / 1e6),
        "times_read": round(read / size, 1),
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["generate", "fit"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--sorted", action="store_true")
    parser.add_argument("--memory")
    parser.add_argument("--tol", type=float, default=1e-2)
    given = parser.parse_args()
    if given.what == "generate":
        generate(given.folder, given.rows, is_sorted=given.sorted)
    else:
        print(json.dumps(fit(given.folder, given.memory, given.tol)), flush=True)


if __name__ == "__main__":
    main()
