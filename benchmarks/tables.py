"""Reading tables: CSV of numbers and JSON lines of texts, beside pandas' and pyarrow's own readers.

Run as ``python -m benchmarks.tables [--megabytes 200] [--write]``. The files are made in a
temporary folder; each reader reads them in turns, and the best of three rounds counts. What pandas
and pyarrow give are columns; ours are an array of numbers with its labels, or a list of texts with
theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv
import pyarrow.json

from polymargin.io import read_data

COLUMNS = 100
ROUNDS = 3
RESULT = Path(__file__).parent / "results" / "tables.md"


def write_numbers(path: Path, megabytes: float) -> None:
    """CSV: columns of normal numbers of six digits, and a label of ten classes."""
    rng = np.random.default_rng(0)
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join([f"f{j}" for j in range(COLUMNS)]) + ",label\n")
        while file.tell() < megabytes * 1e6:
            for row, label in zip(
                rng.normal(size=(1000, COLUMNS)), rng.integers(0, 10, 1000), strict=True
            ):
                file.write(",".join(map("{:.6g}".format, row.tolist())) + f",{label}\n")


def write_texts(path: Path, megabytes: float) -> None:
    """JSON lines: texts of some 60 characters, and a label of 100 classes."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5000)])
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            chosen = words[rng.integers(0, len(words), (1000, 7))].tolist()
            for text, label in zip(chosen, rng.integers(0, 100, 1000).tolist(), strict=True):
                record = {"text": " ".join(text), "label": f"intent {label}"}
                file.write(json.dumps(record) + "\n")


READERS: dict[str, dict[str, Callable[[Path], object]]] = {
    "CSV of numbers": {
        "polymargin `read_data`": read_data,
        "pandas `read_csv`": pd.read_csv,
        "pandas `read_csv(engine='pyarrow')`": lambda path: pd.read_csv(path, engine="pyarrow"),
        "pyarrow `csv.read_csv`": pyarrow.csv.read_csv,
    },
    "JSON lines of texts": {
        "polymargin `read_data`": read_data,
        "pandas `read_json(lines=True)`": lambda path: pd.read_json(path, lines=True),
        "pyarrow `json.read_json`": pyarrow.json.read_json,
    },
}
WRITERS = {
    "CSV of numbers": (write_numbers, "data.csv"),
    "JSON lines of texts": (write_texts, "data.jsonl"),
}


def measure(megabytes: float) -> list[str]:
    """Rows of the table of results."""
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for what, (write, name) in WRITERS.items():
            path = Path(folder) / name
            write(path, megabytes)
            size = path.stat().st_size / 1e6
            best = dict.fromkeys(READERS[what], float("inf"))
            for _ in range(ROUNDS):
                for reader, read in READERS[what].items():
                    start = time.perf_counter()
                    read(path)
                    best[reader] = min(best[reader], time.perf_counter() - start)
            rows += [
                f"| {what}, {size:.0f} MB | {reader} | {seconds:.2f} | {size / seconds:.0f} |"
                for reader, seconds in best.items()
            ]
            path.unlink()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT}")
    options = parser.parse_args()
    page = [
        "# Reading tables",
        "",
        f"`python -m benchmarks.tables`, best of {ROUNDS}; {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, pyarrow {pyarrow.__version__}, "
        f"pandas {pd.__version__}.",
        "",
        "| file | reader | s | MB/s |",
        "|---|---|--:|--:|",
        *measure(options.megabytes),
    ]
    print("\n".join(page))
    if options.write:
        RESULT.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
