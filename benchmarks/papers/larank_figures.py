"""Figures 1 and 2 of the LaRank paper: test error against kernel evaluations.

    python -m benchmarks.papers.larank_figures [--quick]

Figure 1 follows LaRank through its first epoch and a few more, beside one and ten epochs of the
averaged perceptron. Figure 2 switches operations off, for one pass over usps. Kernel evaluations
of the perceptron are counted as if every value were cached for good; LaRank has 500 MB.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import Dataset
from benchmarks.papers.larank_data import SETTINGS, load
from benchmarks.papers.larank_table2 import RESULTS
from polymargin import LaRankClassifier
from polymargin.estimators._kernel_prediction import kernel_scores
from polymargin.kernel_functions import KernelFunction

OPERATIONS = {
    "ProcessNew": (),
    "ProcessNew, Optimize": ("optimize",),
    "ProcessNew, ProcessOld": ("process_old",),
    "all": ("process_old", "optimize"),
}


class AveragedPerceptron:
    """The multiclass kernel perceptron with averaged coefficients (Freund and Schapire, Collins).

    An example that is predicted wrongly is added to its class and taken from the predicted one.
    """

    def __init__(self, data: Dataset, seed: int) -> None:
        self.data, self.rng = data, np.random.default_rng(seed)
        self.function = KernelFunction("rbf", gamma=SETTINGS["gamma"])
        n = len(data.y_train)
        self.slot = np.full(n, -1)
        self.support: list[int] = []
        self.rows = np.empty((n, data.X_train.shape[1]), np.float32)
        self.beta = np.zeros((data.n_classes, n), np.float32)  # by slot
        self.sums = np.zeros_like(self.beta)  # of t * change, for the average
        self.seen_patterns = np.zeros(n, np.int64)  # at the last visit
        self.t = 0

    def epoch(self) -> None:
        """One pass in random order."""
        X, y = self.data.X_train, self.data.y_train
        for i in self.rng.permutation(len(y)):
            m = len(self.support)
            k = self.function.block(X[i : i + 1], self.rows[:m])[0]
            guess = int(np.argmax(self.beta[:, :m] @ k))
            self.seen_patterns[i] = m
            self.t += 1
            if guess != y[i]:
                self._add(i, int(y[i]), guess)

    def _add(self, i: int, right: int, wrong: int) -> None:
        if self.slot[i] < 0:
            self.slot[i] = len(self.support)
            self.rows[self.slot[i]] = self.data.X_train[i]
            self.support.append(i)
        for c, change in ((right, 1.0), (wrong, -1.0)):
            self.beta[c, self.slot[i]] += change
            self.sums[c, self.slot[i]] += self.t * change

    def error(self) -> float:
        """Test error of the average, in percent."""
        m = len(self.support)
        average = self.beta[:, :m] - self.sums[:, :m] / (self.t + 1)
        scores = kernel_scores(self.function, self.data.X_test, self.rows[:m], average)
        return 100 * float(np.mean(scores.argmax(axis=1) != self.data.y_test))

    @property
    def kernels(self) -> float:
        """Millions of distinct pairs that were asked for."""
        return float(self.seen_patterns.sum()) / 1e6


def point(method: str, progress: float, clf: Any, data: Dataset) -> dict[str, Any]:
    """A point of a curve."""
    return {
        "data": data.name,
        "method": method,
        "epochs": progress,
        "kernels": clf.n_kernel_evaluations_ / 1e6,
        "argmax": clf.n_argmax_ / 1e3,
        "error": 100 * (1 - clf.score(data.X_test, data.y_test)),
    }


def figure1(data: Dataset, parts: int = 8, epochs: Sequence[int] = (2, 3)) -> list[dict[str, Any]]:
    """Error against kernel evaluations: LaRank, and the averaged perceptron."""
    rows = []
    clf = LaRankClassifier(**SETTINGS, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.y_train))
    for part, rows_of in enumerate(np.array_split(order, parts), 1):
        clf.partial_fit(data.X_train[rows_of], data.y_train[rows_of])
        rows.append(point("LaRank", part / parts, clf, data))
    for n in epochs:
        clf = LaRankClassifier(**SETTINGS, n_epochs=n, random_state=0)
        rows.append(point("LaRank", n, clf.fit(data.X_train, data.y_train), data))
    return rows + perceptron_rows(data, 10)


def perceptron_rows(data: Dataset, epochs: int) -> list[dict[str, Any]]:
    """The averaged perceptron after one epoch, and after all."""
    perceptron = AveragedPerceptron(data, 0)
    rows = []
    for epoch in range(1, epochs + 1):
        perceptron.epoch()
        if epoch in (1, epochs):
            rows.append(
                {
                    "data": data.name,
                    "method": "AvgPerceptron",
                    "epochs": epoch,
                    "kernels": perceptron.kernels,
                    "argmax": perceptron.t / 1e3,
                    "error": perceptron.error(),
                }
            )
    return rows


def figure2(data: Dataset, seeds: int) -> list[dict[str, Any]]:
    """One pass with some operations switched off: means over seeds."""
    rows = []
    for name, operations in OPERATIONS.items():
        runs = [
            point(name, 1, clf.fit(data.X_train, data.y_train), data)
            | {"dual": clf.dual_objective_}
            for clf in (
                LaRankClassifier(**SETTINGS, operations=operations, random_state=seed)
                for seed in range(seeds)
            )
        ]
        means = {
            key: float(np.mean([run[key] for run in runs]))
            for key in ("kernels", "argmax", "error", "dual")
        }
        rows.append({**runs[0], **means})
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| data | method | epochs | kernels, 10^6 | arg max, 10^3 | test error, % |",
        "|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['data']} | {row['method']} | {row['epochs']:g} | {row['kernels']:.2f} | "
        f"{row['argmax']:.0f} | {row['error']:.2f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the training data")
    parser.add_argument("--seeds", type=int, default=3, help="runs for figure 2")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    with threadpool_limits(1):
        usps, letter = load("usps", options.quick), load("letter", options.quick)
        one = figure1(usps) + figure1(letter)
        two = figure2(usps, options.seeds) + perceptron_rows(usps, 1)
    text = (
        "# LaRank, figures 1 and 2\n\n## Error against kernel evaluations\n\n"
        + table(one)
        + f"\n## Operations switched off: usps, one pass, means of {options.seeds} seeds\n\n"
        + table(two)
    )
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    stem = "larank_figures_quick" if options.quick else "larank_figures"
    (options.output / f"{stem}.md").write_text(text, encoding="utf-8")
    results = {"figure1": one, "figure2": two}
    (options.output / f"{stem}.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
