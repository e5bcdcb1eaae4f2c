"""How well calibrated probabilities are, and what a temperature costs.

    python -m benchmarks.calibration [--data clinc150 ...] [--models ...] [--cost]

For each data set: Crammer-Singer with a temperature (``probability=True``), softmax, Crammer-Singer
in scikit-learn's ``CalibratedClassifierCV`` (sigmoid, five folds) and ``LogisticRegression``. C is
the one of the highest accuracy on a fifth of the training part, held out, where values are tried
upwards until the accuracy falls; the hinge is searched once for both models with it, softmax once
for itself and LogisticRegression, which minimise the same. Shown are the accuracy, the expected
calibration error (15 bins) and the log loss of the test part, and CPU seconds of the fit with the
chosen C on one thread. With --cost, only the CPU seconds of fits with and without a temperature at
C = 1, the smallest of three.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin import LinearMulticlassSVC
from polymargin.evaluation import compare

RESULTS = Path(__file__).resolve().parent / "results"
DATA = ("clinc150", "banking77", "letter", "mnist")
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
Maker = Callable[[float], BaseEstimator]


def hinge(C: float, **params: Any) -> LinearMulticlassSVC:
    """What is searched for the models with a hinge loss."""
    return LinearMulticlassSVC(C=C, random_state=0, **params)


def softmax(C: float) -> LinearMulticlassSVC:
    """What is searched for the others."""
    return hinge(C, loss="softmax")


# name: what C is searched with, and the model
MODELS: dict[str, tuple[Maker, Maker]] = {
    "temperature": (hinge, lambda C: hinge(C, probability=True)),
    "softmax": (softmax, softmax),
    "sigmoid": (hinge, lambda C: CalibratedClassifierCV(hinge(C), method="sigmoid", cv=5)),
    "LogisticRegression": (softmax, lambda C: LogisticRegression(C=C, max_iter=1000)),
}
TITLES = {
    "temperature": "Crammer-Singer, `probability=True`",
    "softmax": '`loss="softmax"`',
    "sigmoid": "Crammer-Singer, `CalibratedClassifierCV`",
    "LogisticRegression": "`LogisticRegression`",
}


def search(data: datasets.Dataset, make: Maker, grid: Sequence[float]) -> float:
    """The C of the highest accuracy on a fifth that is held out; upwards until it falls."""
    rows = np.arange(len(data.y_train))
    train, held = train_test_split(rows, test_size=0.2, stratify=data.y_train, random_state=0)
    X, y = data.X_train, data.y_train
    best, accuracy = grid[0], -1.0
    for C in grid:
        found = make(C).fit(X[train], y[train]).score(X[held], y[held])
        if found < accuracy:
            break
        if found > accuracy:
            best, accuracy = C, found
    return float(best)


def seconds_of(model: BaseEstimator, data: datasets.Dataset) -> float:
    """CPU seconds of a fit."""
    began = time.process_time()
    model.fit(data.X_train, data.y_train)
    return time.process_time() - began


def measure(data: datasets.Dataset, name: str, C: float) -> dict[str, Any]:
    """One model on one data set."""
    model = MODELS[name][1](C)
    seconds = seconds_of(model, data)
    P = model.predict_proba(data.X_test)
    predicted = model.classes_[P.argmax(axis=1)]
    found = replace(compare(data.y_test, predicted), confidence=P.max(axis=1))
    return {
        "data": data.name,
        "model": name,
        "C": C,
        "accuracy": found.accuracy,
        "calibration_error": found.calibration_error,
        "log_loss": float(log_loss(data.y_test, P, labels=model.classes_)),
        "seconds": seconds,
    }


def cost(data: datasets.Dataset, repeats: int = 3) -> dict[str, Any]:
    """What a temperature adds to a fit, in turns."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats):
        for probability, seconds in found.items():
            seconds.append(seconds_of(hinge(1.0, probability=probability), data))
    plain, whole = min(found[False]), min(found[True])
    return {"data": data.name, "plain": plain, "temperature": whole, "ratio": whole / plain}


def report(results: dict[str, Any]) -> str:
    """The tables."""
    text = "# Calibration\n\nTest part; CPU seconds of the fit, one thread.\n\n"
    lines = [
        [
            row["data"],
            TITLES[row["model"]],
            f"{row['C']:g}",
            f"{100 * row['accuracy']:.2f}",
            f"{100 * row['calibration_error']:.2f}",
            f"{row['log_loss']:.3f}",
            f"{row['seconds']:.3g}",
        ]
        for row in results.get("rows", [])
    ]
    header = ["data", "model", "C", "accuracy %", "calibration error %", "log loss", "fit s"]
    text += markdown_table(header, lines)
    added = [
        [row["data"], f"{row['plain']:.3g}", f"{row['temperature']:.3g}", f"{row['ratio']:.2f}"]
        for row in results.get("cost", [])
    ]
    if added:
        text += "\n## What a temperature costs\n\nCrammer-Singer, C = 1.\n\n"
        text += markdown_table(["data", "fit s", "with probabilities s", "ratio"], added)
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and put the tables into ``results/calibration.{md,json}``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--cost", action="store_true", help="only what a temperature costs")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    path = options.output / "calibration.json"
    results: dict[str, Any] = {"rows": [], "cost": []} | read_json(path)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.data:
            data = datasets.load(name)
            chosen: dict[Maker, float] = {}
            for model in ["cost"] if options.cost else options.models:
                if options.cost:
                    found, part, key = cost(data), "cost", ("data",)
                else:
                    make = MODELS[model][0]
                    if make not in chosen:
                        chosen[make] = search(data, make, GRID)
                    found, part, key = measure(data, model, chosen[make]), "rows", KEY
                keep(results, part, found | {"provenance": provenance()}, key)
                write_json(path, results)
                path.with_suffix(".md").write_text(report(results))
                print(found, flush=True)
    return 0


KEY = ("data", "model")


def keep(results: dict[str, Any], part: str, row: dict[str, Any], key: tuple[str, ...]) -> None:
    """Replace the row of the same data (and model), in the order of the tables."""
    others = [one for one in results[part] if any(one[name] != row[name] for name in key)]
    models = list(MODELS)
    results[part] = sorted(
        [*others, row],
        key=lambda one: (DATA.index(one["data"]), models.index(one.get("model", models[0]))),
    )


if __name__ == "__main__":
    raise SystemExit(main())
