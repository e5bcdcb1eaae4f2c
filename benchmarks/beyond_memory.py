"""The tables of ``docs/beyond_memory.md``: fits out of core, against the same fits in memory.

    python -m benchmarks.beyond_memory generated FOLDER [--memory 500MB]
    python -m benchmarks.beyond_memory real [--data news20] [--rounds 4]
    python -m benchmarks.beyond_memory page

``generated`` runs ``python -m benchmarks.out_of_core fit`` on a folder that it has generated, in a
process of its own, whose memory is limited. ``real`` cuts data sets into 20 blocks, with memory for
three, and fits them in turns with the same fit in memory: shuffled files, and files sorted by
label. The least CPU seconds count.

Results go to ``benchmarks/results/beyond_memory.json``; ``page`` measures nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.by_hand import origin, with_tables
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import ROOT, provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin import get_loss
from polymargin.data import PER_EXAMPLE, BlockRows
from polymargin.files import StoredMatrix
from polymargin.io import Dataset, write_directory
from polymargin.problem import Problem
from polymargin.solvers import DualSolver, Solution

RESULTS = ROOT / "benchmarks" / "results" / "beyond_memory.json"
PAGE = ROOT / "docs" / "beyond_memory.md"
DATA = ("news20", "clinc150", "rcv1_multiclass_sub", "mnist")
BLOCKS, IN_MEMORY, C, TOL = 20, 3, 1.0, 1e-3


def generated(folder: Path, memory: str | None) -> dict[str, Any]:
    """A fit of generated data, in a process of its own."""
    limit = [] if memory is None else ["--memory", memory]
    command = [sys.executable, "-m", "benchmarks.out_of_core", "fit", str(folder), *limit]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=one_thread)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- real data, cut into blocks ------------------------------------------------------------------


def directories(name: str, folder: Path) -> dict[str, Path]:
    """The training part on disk, its rows shuffled and sorted by label."""
    data = datasets.load(name)
    shuffled = np.random.default_rng(0).permutation(len(data.y_train))
    by_label = shuffled[np.argsort(data.y_train[shuffled], kind="stable")]
    found = {}
    for order, rows in (("shuffled", shuffled), ("sorted", by_label)):
        part = Dataset(X=data.X_train[rows], y=data.y_train[rows])
        write_directory(part, folder / order)
        found[order] = folder / order
    return found


def loaded(folder: Path) -> tuple[Any, np.ndarray]:
    """Features and labels of a directory, in memory."""
    parts = [np.load(file) for file in (folder / f"{n}.npy" for n in ("y", "X")) if file.exists()]
    if len(parts) == 2:
        return parts[1], parts[0]
    data, indices, indptr = (np.load(folder / f"{n}.npy") for n in ("data", "indices", "indptr"))
    width = int(indices.max()) + 1
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width)), parts[0]


def solved(X: Any, y: np.ndarray) -> Solution:
    """Crammer and Singer's machine with an intercept."""
    codes, n_classes = y.astype(np.int32), int(y.max()) + 1
    problem = Problem(X, codes, np.full(len(y), C), get_loss("crammer_singer"), n_classes, 1.0)
    return DualSolver().solve(problem, tol=TOL, random_state=0)


def blocks(folder: Path, shape: tuple[int, int], *, dense: bool) -> BlockRows:
    """Its rows in 20 blocks, of which three fit in memory beside the solver's arrays."""
    stored = StoredMatrix(folder, shape, dense=dense)
    row = stored.entry_bytes * stored.n_stored / shape[0] + 8
    room = IN_MEMORY * row * shape[0] / BLOCKS * (1 + 1e-9)
    return BlockRows(stored, PER_EXAMPLE * shape[0] + room, BLOCKS)


def measured(name: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Fits in turns; of each kind the one of the least CPU seconds."""
    places = directories(name, folder)
    X, y = loaded(places["shuffled"])
    labels = {order: np.load(place / "y.npy") for order, place in places.items()}
    dense = not sparse.issparse(X)
    fits: dict[str, Callable[[], Solution]] = {"memory": lambda: solved(X, y)} | {
        order: lambda order=order, place=place: solved(
            blocks(place, X.shape, dense=dense), labels[order]
        )
        for order, place in places.items()
    }
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for kind, one in fits.items():
            gc.collect()
            began = time.process_time()
            solution = one()
            seconds = time.process_time() - began
            if seconds < best.get(kind, {"seconds": np.inf})["seconds"]:
                best[kind] = {"seconds": seconds, "passes": solution.n_iter, "gap": solution.gap}
                best[kind]["objective"] = solution.primal
    return {"data": name, "rounds": rounds, **best}


# --- the page ------------------------------------------------------------------------------------


def of_generated(rows: Sequence[dict[str, Any]]) -> str:
    """A row per fit of generated data."""
    whole = {row["rows"]: row["cpu_seconds"] for row in rows if row["memory"] is None}
    lines = []
    for row in sorted(rows, key=lambda row: (row["rows"], row["memory"] or "", row["sorted"])):
        what = f"{row['rows']:,} rows ({row['file_mb']:,} MB)" + ", sorted" * row["sorted"]
        limit = "none: in memory"
        if row["memory"] is not None:
            limit = f"{row['memory']}; {row['allowed_mb']:,} MB to allocate"
        times = f"{row['cpu_seconds'] / whole[row['rows']]:.2f}" if whole.get(row["rows"]) else ""
        cells = [what, limit, f"{row['cpu_seconds']:.0f}", times, row["passes"]]
        cells += [f"{row['gap']:.1e}", f"{row['times_read']:.1f}", f"{row['peak_rss_mb']:,} MB"]
        lines.append(cells)
    header = ["data", "`memory_limit`", "CPU s", "times in memory", "passes", "certified gap"]
    return markdown_table([*header, "times the file was read", "peak resident memory"], lines)


def of_real(rows: Sequence[dict[str, Any]]) -> str:
    """A row per data set."""
    lines = []
    for row in sorted(rows, key=lambda row: DATA.index(row["data"])):
        memory, shuffled, by_label = (row[kind] for kind in ("memory", "shuffled", "sorted"))
        apart = max(abs(one["objective"] / memory["objective"] - 1) for one in (shuffled, by_label))
        lines.append(
            [
                row["data"].removesuffix("_multiclass_sub"),
                f"{memory['seconds']:.2f} ({memory['passes']} passes)",
                f"{shuffled['seconds']:.2f} ({shuffled['passes']})",
                f"{shuffled['seconds'] / memory['seconds']:.2f}",
                f"{by_label['seconds']:.2f} ({by_label['passes']})",
                f"{by_label['seconds'] / shuffled['seconds']:.2f}",
                f"{apart:.0e}",
            ]
        )
    header = ["CPU s", "in memory", "20 blocks", "times in memory", "20 blocks, sorted by label"]
    return markdown_table([*header, "times shuffled", "objectives apart"], lines)


def tables(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of the markers, and what belongs between them."""
    for name, table in (("generated", of_generated), ("real", of_real)):
        if name in found:
            yield name, table(found[name]) + origin(found[name][-1])


def keep(name: str, row: dict[str, Any], same: Sequence[str], note: str) -> None:
    """Put a row into the results, in the place of one that is about the same."""
    found = read_json(RESULTS)
    known = found.get(name, [])
    others = [one for one in known if any(one[key] != row[key] for key in same)]
    print(json.dumps(row), flush=True)
    found[name] = [*others, row | {"note": note, "provenance": provenance()}]
    write_json(RESULTS, found)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["generated", "real", "page"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--memory")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--note", default="", help="what to say of the machine beside the figures")
    given = parser.parse_args()
    if given.what == "generated":
        if given.folder is None:
            parser.error("which folder?")
        row = generated(given.folder, given.memory)
        keep("generated", row, ["rows", "memory", "sorted"], given.note)
    if given.what == "real":
        for name in given.data:
            with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
                keep("real", measured(name, given.rounds, Path(folder)), ["data"], given.note)
    page = with_tables(PAGE.read_text(encoding="utf-8"), tables(read_json(RESULTS)))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
