"""One pass over a stream: `partial_fit` beside scikit-learn's SGDClassifier, and its memory.

    python -m benchmarks.streams [--quick] [--rows 15000] [--part passes,splits,blondel,...]

- passes: accuracy after one pass in random order on news20, clinc150 and aloi, and examples per
  CPU second, one thread, float32. Every contender has one parameter (C, alpha, eta0) with a grid
  of seven values, chosen by one pass over 4/5 of the training part (aloi: of 5,000 rows of it)
  and the accuracy on the rest; then one pass over all of it, in five random orders
  (aloi: one), the same for everybody.
- splits: the same protocol on ten other splits of the texts; the winner among our losses, and among
  SGD's, is the one with the best accuracy on the held-out rows of the split.
- blondel: one pass on news20 as in table II of Blondel et al. 2014: ten stratified splits of 4/5
  and 1/5, C = 1, no intercept.
- gains: what averages, a reservoir and more passes buy, at the C chosen above.
- batches: examples per second when they come in batches of 1, 10, 100 and 1,000.
- memory: a stream of ten million generated examples of 200 classes, and a further class that
  appears after nine million; peak memory of a fresh process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import wilcoxon
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.memory import peak_gb
from benchmarks.reference_optima import read_json, write_json
from benchmarks.streams_report import markdown
from polymargin import LinearMulticlassSVC, StreamSolver, instruction_set

RESULTS = Path(__file__).resolve().parent / "results"
DATA = ("news20", "clinc150", "aloi")
COSTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LOWER_COSTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # its loss has n_classes - 1 terms
ALPHAS = (1e-7, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
TEXTS = ("news20", "clinc150")
TUNED_ON = {"aloi": 5_000}
ORDERS = {"news20": 5, "clinc150": 5, "aloi": 1}  # a pass of SGD over aloi takes half a minute
BATCHES = (1, 10, 100, 1000)
ABOUT = (
    "`make bench-stream`, one thread, float32, CPU time, on a shared two-core x86-64 machine. "
    "Rates are those of the fastest order."
)

Make = Callable[[float], Any]


@dataclass(frozen=True)
class Contender:
    """A classifier with one parameter, and its grid."""

    name: str
    make: Make
    grid: Sequence[float]

    def classifier(self, value: float, data: str) -> Any:
        """A new one; unit rows of texts need no intercept, and in one pass it would harm."""
        return self.make(value).set_params(fit_intercept=data not in TEXTS)


def ours(loss: str = "crammer_singer", **stream: Any) -> Make:
    """A `LinearMulticlassSVC` for every C."""
    return lambda C: LinearMulticlassSVC(
        loss=loss, C=C, stream=StreamSolver(**stream), random_state=0
    )


def sgd(**settings: Any) -> Make:
    """An `SGDClassifier` for every alpha."""
    return lambda alpha: SGDClassifier(loss="hinge", alpha=alpha, random_state=0, **settings)


def passive_aggressive(kind: str) -> Make:
    """The passive-aggressive algorithm; its C is eta0, and it has no penalty."""
    return lambda C: SGDClassifier(
        loss="hinge", penalty=None, learning_rate=kind, eta0=C, random_state=0
    )


CONTENDERS = (
    Contender("crammer_singer", ours(), COSTS),
    Contender("crammer_singer, averaged", ours(average=True), COSTS),
    Contender("crammer_singer, reservoir", ours(reservoir=1000), COSTS),
    Contender("weston_watkins", ours("weston_watkins"), LOWER_COSTS),
    Contender("weston_watkins, reservoir", ours("weston_watkins", reservoir=1000), LOWER_COSTS),
    Contender("one_vs_rest", ours("one_vs_rest"), COSTS),
    Contender("SGD hinge", sgd(), ALPHAS),
    Contender("SGD hinge, averaged", sgd(average=True), ALPHAS),
    Contender("SGD pa1", passive_aggressive("pa1"), COSTS),
    Contender("SGD pa2", passive_aggressive("pa2"), COSTS),
)


def is_ours(name: str) -> bool:
    """Whether a contender is a `LinearMulticlassSVC`."""
    return not name.startswith("SGD")


def one_pass(classifier: Any, X: Any, y: np.ndarray, classes: np.ndarray) -> float:
    """Feed a stream in one call (cheapest for both); returns CPU seconds."""
    start = time.process_time()
    classifier.partial_fit(X, y, classes=classes)
    return time.process_time() - start


def load(name: str, rows: int | None) -> datasets.Dataset:
    """A data set in float32, or so many random rows of its training part."""
    data = datasets.load(name, dtype=np.float32)
    for X in (data.X_train, data.X_test):  # SGDClassifier takes 32-bit indices only
        if sparse.issparse(X):
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    if rows is None or rows >= len(data.y_train):
        return data
    some = np.random.default_rng(0).permutation(len(data.y_train))[:rows]
    return datasets.Dataset(name, data.X_train[some], data.y_train[some], data.X_test, data.y_test)


def tune(contender: Contender, data: datasets.Dataset) -> dict[str, Any]:
    """The value of the grid with the best accuracy on held-out rows after one pass."""
    order = np.random.default_rng(1).permutation(len(data.y_train))[: TUNED_ON.get(data.name)]
    cut = 4 * len(order) // 5
    train, held = order[:cut], order[cut:]
    X, y, X_held = data.X_train[train], data.y_train[train], data.X_train[held]
    classes = np.unique(data.y_train)
    scores = []
    for value in contender.grid:
        classifier = contender.classifier(value, data.name)
        one_pass(classifier, X, y, classes)
        scores.append(float(classifier.score(X_held, data.y_train[held])))
    return {"value": contender.grid[int(np.argmax(scores))], "validation": scores}


def deviation(values: Sequence[float]) -> float | None:
    """The standard deviation; None for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def passes(names: Sequence[str], only: str, rows: int | None = None) -> list[dict[str, Any]]:
    """One row per data set and contender whose name has ``only`` in it."""
    out = []
    contenders = [contender for contender in CONTENDERS if only in contender.name]
    for name in names:
        data = load(name, rows)
        classes = np.unique(data.y_train)
        chosen = {contender.name: tune(contender, data) for contender in contenders}
        found: dict[str, list[tuple[float, float]]] = {c.name: [] for c in contenders}
        for seed in range(ORDERS[name]):
            order = np.random.default_rng(100 + seed).permutation(len(data.y_train))
            X, y = data.X_train[order], data.y_train[order]
            for contender in contenders:
                classifier = contender.classifier(chosen[contender.name]["value"], name)
                seconds = one_pass(classifier, X, y, classes)
                found[contender.name].append((classifier.score(data.X_test, data.y_test), seconds))
        for contender in contenders:
            accuracies, seconds = np.array(found[contender.name]).T
            out.append(
                {
                    "data": name,
                    "classifier": contender.name,
                    "examples": len(data.y_train),
                    "accuracy": float(100 * accuracies.mean()),
                    "deviation": deviation(100 * accuracies),
                    "per_second": len(data.y_train) / float(seconds.min()),
                    **chosen[contender.name],
                }
            )
            print(json.dumps(out[-1]), flush=True)
    return out


def splits(names: Sequence[str], rows: int | None = None, n: int = 10) -> list[dict[str, Any]]:
    """One row per data set: what a user gets who tunes everything on held-out rows."""
    out = []
    for name in names:
        found: dict[str, list[float]] = {"ours": [], "SGD": []}
        winners: dict[str, list[str]] = {"ours": [], "SGD": []}
        for seed, split in enumerate(stratified_splits(load(name, rows), n)):
            classes = np.unique(split.y_train)
            order = np.random.default_rng(seed).permutation(len(split.y_train))
            for family, names_of in winners.items():
                members = [c for c in CONTENDERS if is_ours(c.name) == (family == "ours")]
                tuned = [tune(member, split) for member in members]
                best = int(np.argmax([max(one["validation"]) for one in tuned]))
                classifier = members[best].classifier(tuned[best]["value"], name)
                one_pass(classifier, split.X_train[order], split.y_train[order], classes)
                found[family].append(100 * classifier.score(split.X_test, split.y_test))
                names_of.append(members[best].name)
        out.append({"data": name, "accuracies": found, "winners": winners})
        out[-1]["p"] = float(wilcoxon(found["ours"], found["SGD"]).pvalue)
        print(json.dumps(out[-1]), flush=True)
    return out


def blondel(rows: int | None = None) -> dict[str, float]:
    """Test accuracy after one pass, over the papers' kind of splits of news20."""
    data = load("news20", rows)
    found: dict[str, list[float]] = {"plain": [], "averaged": []}
    for seed, split in enumerate(stratified_splits(data, 10)):
        order = np.random.default_rng(seed).permutation(len(split.y_train))
        for name, accuracies in found.items():
            classifier = ours(average=name == "averaged")(1.0).set_params(fit_intercept=False)
            classifier.partial_fit(split.X_train[order], split.y_train[order])
            accuracies.append(100 * classifier.score(split.X_test, split.y_test))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return means | {f"{name} ±": float(np.std(v, ddof=1)) for name, v in found.items()}


def stratified_splits(data: datasets.Dataset, n_splits: int) -> list[datasets.Dataset]:
    """Those of `benchmarks.papers.common`, which needs the package for plots."""
    from benchmarks.papers.common import stratified_splits as splits

    return splits(data, n_splits)


def gains(
    tuned: Sequence[dict[str, Any]], names: Sequence[str], rows: int | None = None
) -> list[dict[str, Any]]:
    """What averages, reservoirs and further passes buy for Crammer-Singer."""
    settings: dict[str, tuple[dict[str, Any], int]] = {
        "one pass": ({}, 1),
        "averaged": ({"average": True}, 1),
        "reservoir of 1,000, 1 revisit": ({"reservoir": 1000}, 1),
        "reservoir of 1,000, 3 revisits": ({"reservoir": 1000, "revisits": 3}, 1),
        "reservoir of 5,000, 3 revisits": ({"reservoir": 5000, "revisits": 3}, 1),
        "the same, averaged": ({"reservoir": 5000, "revisits": 3, "average": True}, 1),
        "two passes, forgetful": ({}, 2),
    }
    out = []
    for name in names:
        data = load(name, rows)
        classes = np.unique(data.y_train)
        C = next(
            r["value"] for r in tuned if (r["data"], r["classifier"]) == (name, "crammer_singer")
        )
        for label, (stream, repeats) in settings.items():
            accuracies, seconds = [], []
            for seed in range(ORDERS[name]):
                order = np.random.default_rng(100 + seed).permutation(len(data.y_train))
                X, y = data.X_train[order], data.y_train[order]
                classifier = ours(**stream)(C).set_params(fit_intercept=name not in TEXTS)
                seconds.append(sum(one_pass(classifier, X, y, classes) for _ in range(repeats)))
                accuracies.append(100 * classifier.score(data.X_test, data.y_test))
            out.append({"data": name, "C": C, "settings": label, "seconds": min(seconds)})
            out[-1] |= {
                "accuracy": float(np.mean(accuracies)),
                "deviation": deviation(accuracies),
            }
            print(json.dumps(out[-1]), flush=True)
        start = time.process_time()
        fitted = ours()(C).set_params(fit_intercept=name not in TEXTS)
        fitted.fit(data.X_train, data.y_train)
        out.append({"data": name, "C": C, "settings": "fit, tol=1e-3", "deviation": None})
        out[-1] |= {"seconds": time.process_time() - start}
        out[-1] |= {"accuracy": 100 * fitted.score(data.X_test, data.y_test)}
        print(json.dumps(out[-1]), flush=True)
    return out


def batches(rows: int | None = None) -> list[dict[str, Any]]:
    """Examples per CPU second on news20, by the size of the batches."""
    data = load("news20", rows)
    classes = np.unique(data.y_train)
    out = []
    for size in BATCHES:
        n = min(len(data.y_train), 50 * size)
        row: dict[str, Any] = {"size": size}
        for contender in (CONTENDERS[0], CONTENDERS[6], CONTENDERS[8]):
            best = np.inf
            for _ in range(3):
                classifier = contender.classifier(
                    1.0 if is_ours(contender.name) else 1e-5, "news20"
                )
                one_pass(classifier, data.X_train[:20], data.y_train[:20], classes)
                parts = [slice(start, start + size) for start in range(0, n, size)]
                stream = [(data.X_train[part], data.y_train[part]) for part in parts]
                start = time.process_time()
                for X, y in stream:
                    classifier.partial_fit(X, y)
                best = min(best, time.process_time() - start)
            row[contender.name] = n / best
        out.append(row)
        print(json.dumps(row), flush=True)
    return out


class Generator:
    """Unit rows of 20 nonzeros, one in each of 20 ranges of features, a quarter of them typical."""

    def __init__(self, n_classes: int, n_features: int = 2**16, nonzeros: int = 20) -> None:
        self.rng = np.random.default_rng(0)
        self.n_features, self.nonzeros = n_features, nonzeros
        self.width = n_features // nonzeros
        shape = (n_classes, nonzeros, 5)
        self.typical = self.rng.integers(0, self.width, shape, dtype=np.int32)

    def rows(self, y: np.ndarray) -> sparse.csr_array:
        """A row for every label."""
        shape = (len(y), self.nonzeros)
        place = np.arange(self.nonzeros)
        typical = self.typical[y[:, None], place, self.rng.integers(0, 5, shape, dtype=np.int8)]
        anything = self.rng.integers(0, self.width, shape, dtype=np.int32)
        chosen = np.where(self.rng.random(shape, np.float32) < 0.25, typical, anything)
        indices = chosen + (self.width * place).astype(np.int32)
        data = np.full(len(y) * self.nonzeros, self.nonzeros**-0.5, np.float32)
        indptr = np.arange(0, data.size + 1, self.nonzeros, dtype=np.int32)
        return sparse.csr_array((data, indices.ravel(), indptr), shape=(len(y), self.n_features))


def memory_stream(n: int, batch: int = 1000, known: int = 200) -> dict[str, Any]:
    """Learn from n examples; the last class appears after nine tenths of them."""
    generator = Generator(known + 1)
    test_y = np.repeat(np.arange(known + 1), 20)
    test = generator.rows(test_y)
    classifier = LinearMulticlassSVC(C=0.1)
    marks = dict.fromkeys((n // 100, n // 10, n), 0.0)
    learning = 0.0
    before = 0.0
    for seen in range(0, n, batch):
        late = seen >= 9 * n // 10
        y = generator.rng.integers(0, known + late, batch)
        noisy = generator.rng.random(batch) < 0.05
        labels = np.where(noisy, generator.rng.integers(0, known, batch), y)
        if seen == 9 * n // 10:
            before = classifier.score(test[test_y < known], test_y[test_y < known])
            labels[0] = y[0] = known
        X = generator.rows(y)
        start = time.process_time()
        classifier.partial_fit(X, labels)
        learning += time.process_time() - start
        if seen + batch in marks:
            marks[seen + batch] = peak_gb()
    predicted = classifier.predict(test)
    late = test_y == known
    return {
        "examples": n,
        "classes": len(classifier.classes_),
        "peak_gb": {str(mark): value for mark, value in marks.items()},
        "per_second": n / learning,
        "accuracy_before": before,
        "accuracy": float((predicted == test_y).mean()),
        "late_recall": float((predicted[late] == known).mean()),
        "late_precision": float((test_y[predicted == known] == known).mean()),
    }


def memory(quick: bool) -> dict[str, Any]:
    """`memory_stream` in a fresh process, because a process's peak never falls."""
    n = 100_000 if quick else 10_000_000
    command = [sys.executable, "-m", "benchmarks.streams", "--memory-of", str(n)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    return json.loads(done.stdout)


def versions() -> dict[str, str]:
    """What the figures belong to."""
    names = ("polymargin", "numpy", "scipy", "scikit-learn")
    return {name: version(name) for name in names} | {"instruction set": instruction_set}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the parts asked for, keep the others' results, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="little data; nothing is written")
    parser.add_argument(
        "--part", default="passes,splits,blondel,gains,batches,memory", help="some of them"
    )
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=DATA)
    parser.add_argument("--rows", type=int, help="at most so many rows of the training part")
    parser.add_argument("--only", default="", help="passes: contenders with this in their names")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.memory_of:
        print(json.dumps(memory_stream(options.memory_of)))
        return 0
    path = RESULTS / "streams.json"
    results = {} if options.quick else read_json(path)
    rows = 2000 if options.quick else options.rows
    results |= {"versions": versions(), "machine": ABOUT}
    wanted = options.part.split(",")
    with threadpool_limits(1):
        if "passes" in wanted:
            found = results.get("passes", []) + passes(options.data, options.only, rows)
            latest = {(row["data"], row["classifier"]): row for row in found}
            keys = [(data, contender.name) for data in DATA for contender in CONTENDERS]
            results["passes"] = [latest[key] for key in keys if key in latest]
        if "splits" in wanted:
            names = [name for name in options.data if name in TEXTS]
            old = [row for row in results.get("splits", []) if row["data"] not in names]
            results["splits"] = old + splits(names, rows, 2 if options.quick else 10)
        if "blondel" in wanted:
            results["blondel"] = blondel(rows)
        if "gains" in wanted:
            old = [row for row in results.get("gains", []) if row["data"] not in options.data]
            results["gains"] = old + gains(results["passes"], options.data, rows)
        if "batches" in wanted:
            results["batches"] = batches(rows)
        if "memory" in wanted:
            results["memory"] = memory(options.quick)
    page = markdown(results)
    print(page)
    if not options.quick:
        write_json(path, results)
        (RESULTS / "streams.md").write_text(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
