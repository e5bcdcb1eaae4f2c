"""The data of the LaRank paper's experiments, its settings and its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import datasets

SETTINGS = {"C": 10.0, "kernel": "rbf", "gamma": 0.025, "cache_size": 500}  # table 1


@dataclass(frozen=True)
class Published:
    """What the paper's tables 2 and 3 say; kernel evaluations in millions, arg max in thousands."""

    error: float
    dual: float
    kernels: float
    seconds: float
    argmax: float | None


PAPER = {
    ("letter", "x1"): Published(2.80, 5226, 55, 940, 190),
    ("letter", "gap"): Published(2.40, 5462, 156, 2900, 550),
    ("letter", "MCSVM"): Published(2.42, 5548, 241, 1200, None),
    ("usps", "x1"): Published(4.25, 503, 9.4, 85, 25),
    ("usps", "gap"): Published(4.38, 518, 13.7, 175, 86),
    ("usps", "MCSVM"): Published(4.24, 537, 51.2, 60, None),
}


def load(name: str, quick: bool = False) -> datasets.Dataset:
    """Load ``letter`` (raw, 16,000 and 4,000 rows), ``usps`` ([0, 1]) or ``usps*1.25``.

    The files hold other scales and, for letter, another split; both are undone. ``quick`` takes
    every tenth training row.
    """
    data = datasets.load(name.split("*")[0])
    X, X_test, y, y_test = data.X_train, data.X_test, data.y_train, data.y_test
    if name == "letter":
        X, y = np.rint(7.5 * (np.vstack([X, X_test]) + 1)), np.concatenate([y, y_test])
        X, X_test, y, y_test = X[:16_000], X[16_000:], y[:16_000], y[16_000:]
    else:
        scale = 1.25 if name.endswith("*1.25") else 1.0
        X, X_test = scale * (X + 1) / 2, scale * (X_test + 1) / 2
    step = slice(None, None, 10 if quick else None)
    return datasets.Dataset(
        name,
        np.ascontiguousarray(X[step], np.float32),
        y[step],
        np.ascontiguousarray(X_test, np.float32),
        y_test,
    )
