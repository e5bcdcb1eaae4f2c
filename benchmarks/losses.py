"""Top-1 and top-5 accuracy of every loss, with C tuned for each.

    python -m benchmarks.losses [--data NAME ...] [--losses NAME ...]

Every loss gets the same: a fifth of the training part, drawn by class, is for validation; a path
along the grid of C (warm starts, gap 1e-2) is fitted on the rest, and the C with the best top-1
and the one with the best top-5 accuracy on the validation part are chosen (the smaller where they
tie). With each of the two, a fit on all of the training part (gap 1e-3) is tested. float32 with an
intercept, one thread. Where a full run takes too long the training part is a sample with as many
rows of every class (`ROWS`); the test part is always whole. Standard errors of an
accuracy are given: a difference of less than two of them says nothing.

What is found is kept at once in ``results/losses.json``; what is known is not run again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin import DualSolver, LinearMulticlassSVC, regularization_path
from polymargin.losses import loss_class

RESULTS = Path(__file__).resolve().parent / "results"
ROWS = {"quickdraw345": None, "aloi": 20_000, "clinc150": None}  # of training; None: all
TOP = 5
LOSSES: dict[str, dict[str, Any]] = {
    "crammer_singer": {},
    "weston_watkins": {},
    "top_k_alpha": {},
    "top_k_beta": {},
    "top_k_entropy": {},
    "softmax": {},
    "one_vs_rest": {},
    "one_vs_rest_squared": {},
    "crammer_singer smoothed": {"smoothing": 0.5},
    "top_k_alpha smoothed": {"smoothing": 0.5},
}
GRIDS = {
    "quickdraw345": (
        0.000001,
        0.000003,
        0.00001,
        0.00003,
        0.0001,
        0.0003,
        0.001,
        0.003,
        0.01,
        0.03,
        0.1,
    ),
    "aloi": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "clinc150": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
}
WITHOUT_MARGIN = 10.0  # times as large a C: softmax and top-k entropy
SECONDS = 60.0  # of one fit


def parameters(name: str) -> dict[str, Any]:
    """The parameters of an estimator with one of the losses above."""
    loss = name.split()[0]
    top_k = {"top_k": TOP} if "top_k" in loss_class(loss).parameters else {}
    return {"loss": loss, **top_k, **LOSSES[name]}


def load(name: str) -> datasets.Dataset:
    """A data set in float32, its training part as large as `ROWS` says."""
    data = datasets.load(name, np.float32)
    rows = ROWS[name]
    if rows is None:
        return data
    kept, _ = train_test_split(
        np.arange(len(data.y_train)), train_size=rows, stratify=data.y_train, random_state=0
    )
    kept.sort()
    return datasets.Dataset(name, data.X_train[kept], data.y_train[kept], data.X_test, data.y_test)


def accuracies(model: LinearMulticlassSVC, X: Any, y: np.ndarray) -> dict[str, float]:
    """Top-1 and top-5 accuracy."""
    right = model.predict_top_k(X, k=TOP) == y[:, None]
    return {"top1": float(right[:, 0].mean()), "top5": float(right.any(axis=1).mean())}


def measure(data: datasets.Dataset, name: str) -> dict[str, Any]:
    """One loss on one data set."""
    began = time.process_time()
    chosen = parameters(name)
    X, X_held, y, y_held = train_test_split(
        data.X_train, data.y_train, test_size=0.2, stratify=data.y_train, random_state=1
    )
    solver = DualSolver(time_limit=SECONDS)
    factor = WITHOUT_MARGIN if loss_class(chosen["loss"]).dense_dual else 1.0
    grid = [factor * C for C in GRIDS[data.name]]
    path = regularization_path(X, y, grid, **chosen, tol=1e-2, random_state=0, solver=solver)
    held = [accuracies(path.estimator(C), X_held, y_held) for C in path.Cs]
    found: dict[str, Any] = {"data": data.name, "loss": name, "validation": held}
    found["gaps"] = [float(gap) for gap in path.gaps]
    for metric in ("top1", "top5"):
        C = float(path.Cs[int(np.argmax([one[metric] for one in held]))])
        same = [found[other] for other in ("top1",) if other in found and found[other]["C"] == C]
        if same:
            found[metric] = same[0]
            continue
        model = LinearMulticlassSVC(**chosen, C=C, random_state=0, solver=solver)
        model.fit(data.X_train, data.y_train)
        found[metric] = {"C": C, "gap": float(model.dual_gap_)}
        found[metric] |= accuracies(model, data.X_test, data.y_test)
    return found | {"seconds": time.process_time() - began, "provenance": provenance()}


def report(rows: Sequence[dict[str, Any]], sizes: dict[str, list[int]]) -> str:
    """A table with a row per loss."""
    names = [name for name in ROWS if any(row["data"] == name for row in rows)]
    header = ["loss"]
    for name in names:
        header += [f"{name} top-1 %", "C", "top-5 %", "C"]
    lines = []
    for loss in LOSSES:
        line: list[str] = []
        for name in names:
            here = [row for row in rows if row["data"] == name and row["loss"] == loss]
            if not here:
                line += [""] * 4
                continue
            for metric in ("top1", "top5"):
                best = here[0][metric]
                line += [f"{100 * best[metric]:.2f}", f"{best['C']:g}"]
        if any(line):
            lines.append([loss, *line])
    text = "# Losses\n\nAccuracy on the test part, C tuned for each; k is 5.\n\n"
    for name in names:
        train, test = sizes[name]
        top1 = np.mean([row["top1"]["top1"] for row in rows if row["data"] == name])
        error = 100 * np.sqrt(top1 * (1 - top1) / test)
        text += f"- {name}: {train:,} rows of training, {test:,} of test; the standard error of a "
        text += f"top-1 accuracy is {error:.2f}.\n"
    return text + "\n" + markdown_table(header, lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and put the table into ``results/losses.{md,json}``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--losses", nargs="+", choices=list(LOSSES), default=list(LOSSES))
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    path = options.output / "losses.json"
    for name in options.data:
        data = load(name)
        for loss in options.losses:
            known = read_json(path)
            rows, sizes = known.get("rows", []), known.get("sizes", {})
            if any(row["data"] == name and row["loss"] == loss for row in rows):
                continue
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(measure(data, loss))
            sizes[name] = [len(data.y_train), len(data.y_test)]
            write_json(path, {"rows": rows, "sizes": sizes})
            path.with_suffix(".md").write_text(report(rows, sizes))
            print(name, loss, rows[-1]["top1"], rows[-1]["top5"], rows[-1]["seconds"], flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
