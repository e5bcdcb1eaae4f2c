"""Kernel machines: training and prediction beside scikit-learn's SVC, one thread.

    python -m benchmarks.kernel_machines [--quick] [--output FOLDER]

The same RBF kernel and C. SVC (libsvm, one-vs-one, float64) at its defaults; KernelMulticlassSVC
and LaRankClassifier (one epoch) with float32 kernels, the former at a gap of 1e-2; 200 MB of cache
each. They take turns; CPU seconds of the fastest run of each. A second table has seconds on the
clock of KernelMulticlassSVC with one thread and with two, in turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers import larank_data
from polymargin import KernelMulticlassSVC, LaRankClassifier

RESULTS = Path(__file__).parent / "results"
SETTINGS = {
    "usps": {"C": 10.0, "gamma": 0.025},
    "letter": {"C": 10.0, "gamma": 0.025},
    "mnist": {"C": 10.0, "gamma": 0.02},
}
MNIST_ROWS = 20_000
WANTED = {"usps": 2.0, "letter": 1.5, "mnist": 8.0}
REPEATS = {"usps": 7, "letter": 7, "mnist": 2}
THREADS = (1, 2)


def load(name: str, quick: bool) -> datasets.Dataset:
    """The data with features in their natural range; mnist: pixels in [0, 1], the first rows."""
    if name != "mnist":
        return larank_data.load(name, quick)
    data = datasets.load(name)
    rows = MNIST_ROWS // (10 if quick else 1)
    return datasets.Dataset(
        name,
        np.ascontiguousarray(data.X_train[:rows], np.float32),
        data.y_train[:rows],
        np.ascontiguousarray(data.X_test, np.float32),
        data.y_test,
    )


def cpu_seconds(job: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a run, and its result."""
    start = time.process_time()
    result = job()
    return time.process_time() - start, result


def measure(data: datasets.Dataset, name: str, repeats: int) -> list[dict[str, Any]]:
    """One row per classifier, SVC first; they take turns."""
    settings = SETTINGS[name]
    classifiers = {
        "SVC": lambda: SVC(**settings, cache_size=200),
        "KernelMulticlassSVC": lambda: KernelMulticlassSVC(**settings, tol=1e-2, random_state=0),
        "LaRankClassifier x1": lambda: LaRankClassifier(**settings, random_state=0),
    }
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for label, make in classifiers.items():
            dtype = np.float64 if label == "SVC" else np.float32
            X, X_test = data.X_train.astype(dtype), data.X_test.astype(dtype)
            train, fitted = cpu_seconds(lambda m=make, X=X: m().fit(X, data.y_train))
            predict, labels = cpu_seconds(lambda f=fitted, X=X_test: f.predict(X))
            known = rows.get(label, {"train": np.inf, "predict": np.inf})
            rows[label] = {
                "data": name,
                "classifier": label,
                "train": min(train, known["train"]),
                "predict": min(predict, known["predict"]),
                "error": 100 * float(np.mean(labels != data.y_test)),
                "support": len(fitted.support_),
                "gap": float(getattr(fitted, "dual_gap_", np.nan)),
                "evaluations": int(getattr(fitted, "n_kernel_evaluations_", 0)),
            }
    for row in rows.values():
        print(row, flush=True)
    return list(rows.values())


def measure_threads(data: datasets.Dataset, name: str, repeats: int) -> dict[str, Any]:
    """Seconds on the clock of fits and predictions with one and two threads, in turns."""
    X, X_test = (part.astype(np.float32) for part in (data.X_train, data.X_test))
    row: dict[str, Any] = {"data": name}
    for _ in range(repeats):
        for threads in THREADS:
            clf = KernelMulticlassSVC(**SETTINGS[name], tol=1e-2, random_state=0, n_jobs=threads)
            start = time.perf_counter()
            clf.fit(X, data.y_train)
            middle = time.perf_counter()
            clf.predict(X_test)
            found = {"train": middle - start, "predict": time.perf_counter() - middle}
            for what, seconds in found.items():
                key = f"{what} {threads}"
                row[key] = min(seconds, row.get(key, np.inf))
    return row


def threads_table(rows: Sequence[dict[str, Any]]) -> str:
    """What two threads give, as Markdown."""
    one, two = THREADS
    lines = [
        "| data | train s, one thread | two | ratio | predict s, one thread | two | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        cells = [row["data"]]
        for what in ("train", "predict"):
            a, b = row[f"{what} {one}"], row[f"{what} {two}"]
            cells += [f"{a:.3f}", f"{b:.3f}", f"{a / b:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown, with ratios to SVC."""
    lines = [
        "| data | classifier | train s | SVC / ours | wanted | predict s | SVC / ours | error % | "
        "support | gap |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    base: dict[str, Any] = {}
    for row in rows:
        base = row if row["classifier"] == "SVC" else base
        wanted = WANTED[row["data"]] if row["classifier"] == "KernelMulticlassSVC" else None
        lines.append(
            f"| {row['data']} | {row['classifier']} | {row['train']:.2f} | "
            f"{base['train'] / row['train']:.2f} | {'' if wanted is None else wanted} | "
            f"{row['predict']:.2f} | {base['predict'] / row['predict']:.1f} | {row['error']:.2f} | "
            f"{row['support']} | {'' if np.isnan(row['gap']) else format(row['gap'], '.1e')} |"
        )
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the training rows")
    parser.add_argument("--data", nargs="+", choices=tuple(SETTINGS), default=tuple(SETTINGS))
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    by_threads: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for name in options.data:
            data = load(name, options.quick)
            rows += measure(data, name, REPEATS[name])
            by_threads.append(measure_threads(data, name, REPEATS[name]))
    text = table(rows) + "\n" + threads_table(by_threads)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "kernel_machines.md").write_text(text, encoding="utf-8")
    path = options.output / "kernel_machines.json"
    found = {"one thread": rows, "threads": by_threads}
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
