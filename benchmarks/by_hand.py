"""What the parts that are written by hand are worth, beside what could stand in their place.

    python -m benchmarks.by_hand [--parts simd gemm models] [--note TEXT] [--page-only]

- simd: CPU seconds of fits, with the instruction sets that are built; each in a process of its own.
- gemm: the core's product of matrices beside NumPy's BLAS, one thread, GFLOP/s. Compiles
  ``by_hand_gemm.cpp`` with the machine's instruction set; needs a C++20 compiler (``CXX``).
- models: seconds and megabytes to save and load a model, beside joblib and skops.

The svmlight parser has a program of its own (`benchmarks.svmlight`). Results go to
``benchmarks/results/by_hand.json``, the tables between markers of ``docs/written_by_hand.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import polymargin
from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import ROOT, provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin.core import LEVELS

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "written_by_hand.md"
FITS = (
    ("letter", 10.0, "float64"),
    ("clinc150", 1.0, "float64"),
    ("mnist", 0.1, "float32"),
    ("clinc150_minilm", 1.0, "float32"),
)
SHAPES = ((64, 384, 152), (256, 784, 352), (512, 1024, 1024))  # rows, features, classes
MODEL = (1000, 2000)  # classes, features
REPEATS = 3


def least(action: Callable[[], object]) -> float:
    """The least CPU seconds of some runs."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return min(times)


# --- instruction sets ----------------------------------------------------------------------------


def fit_seconds(name: str, C: float, dtype: str) -> float:
    """One problem with the instruction set of this process."""
    data = datasets.load(name, dtype=np.dtype(dtype), download=False)
    clf = polymargin.LinearMulticlassSVC(C=C, fit_intercept=False, random_state=0)
    with threadpool_limits(1):
        return least(lambda: clf.fit(data.X_train, data.y_train))


def simd() -> list[dict[str, Any]]:
    """Fits with every instruction set that is built."""
    rows = []
    for name, C, dtype in FITS:
        row: dict[str, Any] = {"data": name, "C": C, "dtype": dtype, "seconds": {}}
        for level in LEVELS:
            if find_spec(f"polymargin._core_{level}") is None:
                continue
            code = f"from benchmarks.by_hand import fit_seconds as f; print(f{(name, C, dtype)!r})"
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"POLYMARGIN_ISA": level},
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            row["seconds"][level] = float(done.stdout)
        rows.append(row)
    return rows


# --- products of matrices ------------------------------------------------------------------------


def blas_kernels() -> str:
    """The BLAS of NumPy, and for which processor it has chosen its kernels."""
    blas = next(pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return f"{blas['internal_api']} {blas['version']}, {blas.get('architecture', 'unknown')}"


def gemm() -> list[dict[str, Any]]:
    """Products of the sizes that sweeps and certificates make."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "gemm"
        compiler = os.environ.get("CXX", "c++")
        sources = ["-I", str(ROOT / "src" / "core"), str(ROOT / "benchmarks" / "by_hand_gemm.cpp")]
        options = ["-std=c++20", "-O3", "-march=native", "-mprefer-vector-width=512"]
        subprocess.run([compiler, *options, *sources, "-o", program], check=True)
        for m, k, n in SHAPES:
            repeats = max(1, 10**9 // (m * k * n))
            ran = subprocess.run(
                [program, *map(str, (m, n, k, repeats))], capture_output=True, text=True, check=True
            )
            ours = {line.split()[0]: float(line.split()[1]) for line in ran.stdout.splitlines()}
            for dtype in ("float32", "float64"):
                A, B = np.full((m, k), 1 / 3, dtype), np.full((k, n), 1 / 7, dtype)
                C = np.zeros((m, n), dtype)

                def product(A: Any = A, B: Any = B, C: Any = C, repeats: int = repeats) -> None:
                    for _ in range(repeats):
                        np.matmul(A, B, out=C)

                with threadpool_limits(1):
                    product()
                    speed = 2e-9 * m * n * k * repeats / least(product)
                blas = {"speed": speed, "kernels": blas_kernels()}
                rows.append(
                    {"shape": [m, k, n], "dtype": dtype, "ours": ours[dtype], "numpy": blas}
                )
    return rows


# --- model files ---------------------------------------------------------------------------------


def model() -> polymargin.LinearMulticlassSVC:
    """A model of many classes, whose weights are random."""
    rng = np.random.default_rng(0)
    classes, features = MODEL
    X = np.eye(classes, features)
    clf = polymargin.LinearMulticlassSVC(max_iter=1, solver=polymargin.DualSolver(certify=False))
    clf.fit(X, np.array([f"class {i}" for i in range(classes)]))
    clf.coef_ = rng.normal(size=clf.coef_.shape)
    return clf


def models() -> list[dict[str, Any]]:
    """Save and load, each format as its library does it by default."""
    import joblib
    import skops.io

    clf = model()

    def skops_load(path: Path) -> None:
        skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))

    formats: dict[str, tuple[Callable[[Path], object], Callable[[Path], object], bool]] = {
        "polymargin": (lambda p: polymargin.save(clf, p), polymargin.load, False),
        "skops": (lambda p: skops.io.dump(clf, p), skops_load, False),
        "joblib": (lambda p: joblib.dump(clf, p), joblib.load, True),
        "pickle": (
            lambda p: p.write_bytes(pickle.dumps(clf)),
            lambda p: pickle.loads(p.read_bytes()),
            True,
        ),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (save, load, runs_code) in formats.items():
            path = Path(folder) / name
            saving = least(lambda save=save, path=path: save(path))
            loading = least(lambda load=load, path=path: load(path))
            size = path.stat().st_size / 1e6
            rows.append(
                {"format": name, "save": saving, "load": loading, "mb": size, "code": runs_code}
            )
    return rows


# --- the page ------------------------------------------------------------------------------------


def parts(found: dict[str, Any], text: Any) -> Iterator[tuple[str, str]]:
    """Names of the markers, and what belongs between them."""
    if "simd" in found:
        levels = [level for level in LEVELS if level in found["simd"]["rows"][0]["seconds"]]
        rows = [
            [
                f"{row['data']}, C = {row['C']:g}, {row['dtype']}",
                *(row["seconds"][level] for level in levels),
                f"{row['seconds'][levels[0]] / row['seconds'][levels[-1]]:.1f}x",
            ]
            for row in found["simd"]["rows"]
        ]
        header = ["fit, CPU seconds", *levels, "first / last"]
        yield "simd", markdown_table(header, rows) + origin(found["simd"])
    if "gemm" in found:
        rows = [
            [
                f"{' x '.join(map(str, row['shape']))}, {row['dtype']}",
                row["ours"],
                row["numpy"]["speed"],
                f"{row['ours'] / row['numpy']['speed']:.2f}",
            ]
            for row in found["gemm"]["rows"]
        ]
        kernels = found["gemm"]["rows"][0]["numpy"]["kernels"]
        header = [
            "rows x features x classes",
            "ours, GFLOP/s",
            f"NumPy's BLAS ({kernels})",
            "ours / BLAS",
        ]
        yield "gemm", markdown_table(header, rows) + origin(found["gemm"])
    if "models" in found:
        rows = [
            [
                row["format"],
                row["save"],
                row["load"],
                f"{row['mb']:.1f}",
                "yes" if row["code"] else "no",
            ]
            for row in found["models"]["rows"]
        ]
        header = ["format", "save, CPU s", "load, CPU s", "MB", "loading can run code"]
        yield "models", markdown_table(header, rows) + origin(found["models"])
    texts = text if isinstance(text, list) else []
    if texts:
        rows = [
            [
                f"{row['megabytes']:.0f} MB, {row['file']}",
                row["scikit-learn"]["seconds"],
                row["polymargin"]["seconds"],
                f"{row['ratio']:.1f}x",
            ]
            for row in texts
        ]
        header = ["file", "scikit-learn, CPU s", "polymargin, CPU s", "ratio"]
        yield "svmlight", markdown_table(header, rows)


def origin(part: dict[str, Any]) -> str:
    """One line that says where the figures come from."""
    made = part["provenance"]
    note = f"; {part['note']}" if part.get("note") else ""
    machine = f"{made['machine']['cpu']}, {made['machine']['cores']} cores"
    return f"\n{made['date']}, {machine}{note}.\n"


def with_tables(page: str, tables: Iterator[tuple[str, str]]) -> str:
    """The page with what stands between its markers replaced."""
    for name, table in tables:
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page needs the lines {begin} and {end}")
        page = f"{before}{begin}\n{table}{end}{after}"
    return page


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    programs = {"simd": simd, "gemm": gemm, "models": models}
    parser.add_argument("--parts", nargs="+", choices=programs, default=list(programs))
    parser.add_argument("--note", default="", help="what to say of the machine beside the figures")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    options = parser.parse_args(argv)
    path = RESULTS / "by_hand.json"
    found = read_json(path)
    for name in [] if options.page_only else options.parts:
        found[name] = {"rows": programs[name](), "note": options.note, "provenance": provenance()}
        write_json(path, found)
        print(json.dumps(found[name]["rows"], indent=1))
    tables = parts(found, read_json(RESULTS / "svmlight.json"))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
