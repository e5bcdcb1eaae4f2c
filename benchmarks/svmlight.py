"""Seconds to read svmlight text, beside scikit-learn's loader: one file, one run, one thread.

    python -m benchmarks.svmlight [--megabytes 200] [--quick]

Two kinds of files of the given size: short decimals (as of counts and tf-idf weights with six
digits) and the shortest decimals that give back the same float64 (15 to 17 digits). Both readers
take turns, three times each; the smallest CPU time counts. The peak of memory is that of a fresh
process each, beyond what it has after its imports; for `iter_svmlight`, of a walk through the file
in chunks. Results go to ``benchmarks/results/svmlight.{md,json}``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from polymargin.io import iter_svmlight, read_data

RESULTS = Path(__file__).resolve().parent / "results"
WANTED = 5.0
KINDS = {"short decimals": "%.6g", "17 digits": None}


def write_file(path: Path, size: int, number: str | None, seed: int = 0) -> None:
    """Write about `size` bytes: 100 classes, 50,000 features, 10 to 190 entries a row.

    The same 10 MB of random rows, over and over.
    """
    rng = np.random.default_rng(seed)
    lines: list[str] = []
    n_bytes = 0
    while n_bytes < min(size, 10_000_000):
        n = int(rng.integers(10, 190))
        columns = np.sort(rng.choice(50_000, n, replace=False) + 1)
        values = rng.exponential(0.1, n)
        shown = map(repr, values.tolist()) if number is None else _short(values, number)
        entries = " ".join(map("{}:{}".format, columns.tolist(), shown))
        lines.append(f"{rng.integers(100)} {entries}\n")
        n_bytes += len(lines[-1])
    block = "".join(lines).encode()
    with open(path, "wb") as file:
        for _ in range(-(-size // len(block))):
            file.write(block)


def _short(values: np.ndarray, number: str) -> list[str]:
    return [number % value for value in values]


def read_with_scikit_learn(path: Path) -> Any:
    return load_svmlight_file(str(path))


def read_with_polymargin(path: Path) -> Any:
    data = read_data(path, format="svmlight")
    return data.X, data.y


def walk(path: Path) -> Any:
    n = 0
    for X, _ in iter_svmlight(path, rows=10_000):
        n += X.nnz
    return n


READERS: dict[str, Callable[[Path], Any]] = {
    "scikit-learn": read_with_scikit_learn,
    "polymargin": read_with_polymargin,
    "iter_svmlight": walk,
}


def peak_mb() -> float:
    """Peak memory of this process; getrusage would count its parent's too, on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def peak_of(reader: str, path: Path) -> float:
    """Megabytes that reading adds to the peak of a fresh process."""
    command = [sys.executable, "-m", "benchmarks.svmlight", "--peak", reader, str(path)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def measure(path: Path, repeats: int) -> dict[str, float]:
    """Smallest CPU seconds of each reader, taking turns."""
    seconds = dict.fromkeys(READERS, np.inf)
    for _ in range(repeats):
        for name, reader in READERS.items():
            start = time.process_time()
            reader(path)
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def check_equal(path: Path) -> None:
    ours, theirs = read_with_polymargin(path), read_with_scikit_learn(path)
    assert ours[0].shape == theirs[0].shape and np.array_equal(ours[1], theirs[1])
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(ours[0], part), getattr(theirs[0], part)), part


def run(size: int, repeats: int) -> list[dict[str, Any]]:
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        for kind, number in KINDS.items():
            write_file(path, size, number)
            check_equal(path)
            seconds = measure(path, repeats)
            report: dict[str, Any] = {"file": kind, "megabytes": path.stat().st_size / 1e6}
            for name in READERS:
                report[name] = {"seconds": seconds[name], "peak_mb": peak_of(name, path)}
            report["ratio"] = seconds["scikit-learn"] / seconds["polymargin"]
            reports.append(report)
            print(_row(report), flush=True)
    return reports


def _row(report: dict[str, Any]) -> str:
    cells = [report["file"], f"{report['megabytes']:.0f}"]
    cells += [f"{report[name]['seconds']:.2f}" for name in READERS]
    cells += [
        f"{report['ratio']:.1f}x",
        f"{report['megabytes'] / report['polymargin']['seconds']:.0f}",
    ]
    cells += [f"{report[name]['peak_mb']:.0f}" for name in READERS]
    return "| " + " | ".join(cells) + " |"


HEADER = """\
| file | MB | scikit-learn s | polymargin s | iter_svmlight s | ratio | MB/s | \
peak MB scikit-learn | polymargin | iter_svmlight |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the results, or (with ``--peak``) print one reader's peak."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=200.0)
    parser.add_argument("--quick", action="store_true", help="5 MB, once, nothing written")
    parser.add_argument("--peak", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.peak:
        before = peak_mb()
        READERS[options.peak[0]](Path(options.peak[1]))
        print(peak_mb() - before)
        return 0
    print(HEADER)
    reports = run(int(5e6 if options.quick else options.megabytes * 1e6), 1 if options.quick else 3)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        text = "\n".join([HEADER, *map(_row, reports)])
        (RESULTS / "svmlight.md").write_text(f"# Reading svmlight text\n\n{_intro()}\n\n{text}\n")
        (RESULTS / "svmlight.json").write_text(json.dumps(reports, indent=1) + "\n")
    worst = min(report["ratio"] for report in reports)
    print(f"\nsmallest ratio {worst:.1f}x (wanted: {WANTED:g}x)")
    return 0


def _intro() -> str:
    return (
        "`python -m benchmarks.svmlight`: CPU seconds, the smallest of three turns, both results "
        "equal to the last bit; what reading adds to the peak memory of a fresh process. "
        "`iter_svmlight` walks through the file twice, in chunks of 10,000 rows."
    )


if __name__ == "__main__":
    raise SystemExit(main())
