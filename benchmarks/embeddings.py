"""Linear probes on sentence embeddings, beside what people use for them.

    python -m benchmarks.embeddings [--data clinc150_minilm ...] [--models ...] [--limit 600]

Dense float32 rows of unit length: the MiniLM embeddings of clinc150 and banking77, and a generated
set of 100,000 x 768 with 1,000 classes. For each model: the whole grid of its regularisation by
five-fold cross-validation and the refit (`LinearMulticlassSVCCV` for ours, one C after the other
and fold by fold for the others), the fit with the best value alone (the faster of two), test
accuracy and peak memory. Every model runs in a process of its own, on one thread, CPU seconds. No
further value of the grid is begun once a search has taken `limit` seconds: its time is then a lower
bound, and the best value is the best of those that were tried. Models keep their default
tolerances; ours stops at a certified relative gap of 1e-3.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin import LinearMulticlassSVC, LinearMulticlassSVCCV

RESULTS = Path(__file__).resolve().parent / "results"
DATA = ("clinc150_minilm", "banking77_minilm", "generated")
GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
OURS = "polymargin"
PEER = "LogisticRegression"  # that ratios are of

# What makes a model of a value of the grid; C grows with 1 / regularisation for all of them.
Maker = Callable[[float, int], BaseEstimator]
MODELS: dict[str, Maker] = {
    OURS: lambda C, n: LinearMulticlassSVC(C=C, random_state=0),
    PEER: lambda C, n: LogisticRegression(C=C, max_iter=1000),
    "LinearSVC": lambda C, n: LinearSVC(C=C, random_state=0),
    "SGDClassifier": lambda C, n: SGDClassifier(alpha=1.0 / (n * C), random_state=0),
    "RidgeClassifier": lambda C, n: RidgeClassifier(alpha=1.0 / C),
}


def load(name: str) -> datasets.Dataset:
    """One data set as float32."""
    if name == "generated":
        X, y = datasets.generate_dense(110_000, 768, 1000, dtype=np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return datasets.Dataset(name, X[:100_000], y[:100_000], X[100_000:], y[100_000:])
    data = datasets.load(name)
    X, X_test = (np.ascontiguousarray(part, np.float32) for part in (data.X_train, data.X_test))
    return datasets.Dataset(name, X, data.y_train, X_test, data.y_test)


def search_by_folds(
    make: Maker, X: np.ndarray, y: np.ndarray, grid: Sequence[float], limit: float
) -> dict[str, Any]:
    """Five-fold cross-validation of one value after the other, and the refit."""
    folds = list(StratifiedKFold(5).split(X, y))
    scores: dict[float, float] = {}
    began = time.process_time()
    for C in grid:
        if scores and time.process_time() - began > limit:
            break
        found = [make(C, len(a)).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]
        scores[C] = float(np.mean(found))
    best = max(scores, key=lambda C: scores[C])
    make(best, len(y)).fit(X, y)
    seconds = time.process_time() - began
    return {
        "C": best,
        "seconds": seconds,
        "tried": len(scores),
        "complete": len(scores) == len(grid),
    }


def search_by_path(X: np.ndarray, y: np.ndarray, grid: Sequence[float]) -> dict[str, Any]:
    """The same by our cross-validated estimator."""
    began = time.process_time()
    found = LinearMulticlassSVCCV(Cs=grid, cv=5, random_state=0).fit(X, y)
    seconds = time.process_time() - began
    return {"C": float(found.C_), "seconds": seconds, "tried": len(grid), "complete": True}


def memory(name: str) -> float:
    """A line of Linux's account of this process, in kB; NaN elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def start_of_peak() -> float:
    """Forget the peak so far (loading takes more than the data); memory now, in kB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return float("nan")
    return memory("VmRSS")


def measure(
    data: datasets.Dataset, model: str, limit: float, grid: Sequence[float] = GRID
) -> dict[str, Any]:
    """One model on one data set; memory is the peak above what the process had with the data."""
    X, y = data.X_train, data.y_train
    before = start_of_peak()
    make = MODELS[model]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = (
            search_by_path(X, y, grid)
            if model == OURS
            else search_by_folds(make, X, y, grid, limit)
        )
        seconds = []
        for _ in range(1 if search["seconds"] > limit else 2):
            began = time.process_time()
            fitted = make(search["C"], len(y)).fit(X, y)
            seconds.append(time.process_time() - began)
    after = memory("VmHWM")
    return {
        "data": data.name,
        "model": model,
        "search": search,
        "fit": min(seconds),
        "accuracy": float(fitted.score(data.X_test, data.y_test)),
        "memory_mb": (after - before) / 1024,  # NaN where the system does not tell
    }


def report(rows: Sequence[dict[str, Any]]) -> str:
    """The tables, a data set each."""
    text = "# Linear probes on embeddings\n\nCPU seconds, one thread.\n"
    for name in dict.fromkeys(row["data"] for row in rows):
        here = {row["model"]: row for row in rows if row["data"] == name}
        ours = here.get(OURS)
        lines = []
        for row in here.values():
            search = row["search"]
            over = "" if search["complete"] else f"over, {search['tried']} of {len(GRID)} values: "
            lines.append(
                [
                    row["model"],
                    f"{search['C']:g}",
                    f"{100 * row['accuracy']:.2f}",
                    f"{row['fit']:.3g}",
                    "" if ours is None else f"{row['fit'] / ours['fit']:.2f}",
                    f"{over}{search['seconds']:.3g}",
                    "" if ours is None else f"{search['seconds'] / ours['search']['seconds']:.1f}",
                    f"{row['memory_mb']:.0f}",
                ]
            )
        header = ["model", "best C", "test accuracy %", "fit s", "times ours"]
        header += ["whole grid s", "times ours", "memory MB"]
        text += f"\n## {name}\n\n" + markdown_table(header, lines)
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and put them into ``results/embeddings.{md,json}``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a grid")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # in a process
    options = parser.parse_args(argv)
    if options.one:
        found = measure(load(options.data[0]), options.models[0], options.limit)
        print(json.dumps(found))
        return 0
    known = {(r["data"], r["model"]): r for r in read_json(_file(options)).get("rows", [])}
    for name in options.data:
        for model in options.models:
            command = [sys.executable, "-m", "benchmarks.embeddings", "--one", "--data", name]
            command += ["--models", model, "--limit", str(options.limit)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            known[name, model] = json.loads(done.stdout) | {"provenance": provenance()}
            rows = sorted(known.values(), key=lambda r: DATA.index(r["data"]))
            write_json(_file(options), {"rows": rows})
            _file(options).with_suffix(".md").write_text(report(rows))
            print(report([known[name, model]]), flush=True)
    return 0


def _file(options: argparse.Namespace) -> Path:
    return Path(options.output) / "embeddings.json"


if __name__ == "__main__":
    raise SystemExit(main())
