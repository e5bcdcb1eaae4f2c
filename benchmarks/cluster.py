"""Training on a cluster of two processes, beside dask-ml's SGD there and machines in memory.

    python -m benchmarks.cluster [--data news20] [--rounds 3]

The rows are cut at random into 8 partitions, which lie in the memory of two workers (a
`LocalCluster`) before the clock starts; machines in memory have one process and one thread. C = 1,
float64. The wall clock of the fastest of several rounds counts, in which the solvers take turns;
the accuracy is that on the test part.

dask-ml (``pip install dask-ml``) has no linear model of several classes of its own. Its
`Incremental` hands one block after the other to `partial_fit` of `SGDClassifier`, here with the
hinge loss and ``alpha = 1 / (C n)``, which is the objective of one-vs-rest machines.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import PACKAGES, provenance, versions
from benchmarks.reference_optima import read_json, write_json
from polymargin import LinearMulticlassSVC
from polymargin.dask import DaskLinearMulticlassSVC

RESULTS = Path(__file__).resolve().parent / "results"
DATA = ("news20", "clinc150")
WORKERS, PARTS = 2, 8
C, TOL = 1.0, 1e-3
PASSES = (1, 10)  # of SGD
BUSY = 0.3  # of a processor, by others: then the machine counts as shared

Fit = Callable[[], Any]


def partitions(data: datasets.Dataset) -> tuple[da.Array, da.Array]:
    """Rows and labels in random order, in the memory of the workers."""
    order = np.random.default_rng(0).permutation(len(data.y_train))
    X, y = data.X_train[order], data.y_train[order]
    size = -(-len(y) // PARTS)
    parts = [slice(first, first + size) for first in range(0, len(y), size)]
    cut = [small_indices(X[part]) for part in parts]
    rows = [da.from_delayed(dask.delayed(X), X.shape, X.dtype, meta=X[:0]) for X in cut]
    joined, labels = dask.persist(da.concatenate(rows), da.from_array(y, chunks=size))
    wait([joined, labels])
    return joined, labels


def small_indices(X: Any) -> Any:
    """Sparse rows as `SGDClassifier` takes them."""
    if not sparse.issparse(X):
        return X
    pointers = (X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_matrix((X.data, *pointers), shape=X.shape)


def incremental(X: da.Array, y: da.Array, passes: int) -> Any:
    """dask-ml's `Incremental`, after several passes."""
    from dask_ml.wrappers import Incremental

    model = SGDClassifier(loss="hinge", alpha=1.0 / (C * len(y)), random_state=0)
    wrapper = Incremental(model, shuffle_blocks=False)
    classes = np.unique(y.compute())
    for _ in range(passes):
        wrapper.partial_fit(X, y, classes=classes)
    return wrapper.estimator_


def solvers(data: datasets.Dataset, X: da.Array, y: da.Array, client: Client) -> dict[str, Fit]:
    """What is measured, by the name in the table."""
    distributed = DaskLinearMulticlassSVC(C=C, tol=TOL, random_state=0, client=client)
    here = LinearMulticlassSVC(C=C, tol=TOL, random_state=0)
    found: dict[str, Fit] = {
        f"polymargin.dask, {WORKERS} workers": lambda: distributed.fit(X, y).to_local(),
    }
    if versions(["dask-ml"])["dask-ml"] != "absent":
        for passes in PASSES:
            name = f"dask-ml Incremental(SGDClassifier), {passes} pass" + "es" * (passes > 1)
            found[name] = lambda passes=passes: incremental(X, y, passes)  # type: ignore[misc]
    return found | {
        "LinearMulticlassSVC, in memory": lambda: here.fit(data.X_train, data.y_train),
        "LinearSVC, in memory": lambda: LinearSVC(C=C, random_state=0).fit(
            small_indices(data.X_train), data.y_train
        ),
    }


def measured(data: datasets.Dataset, rounds: int) -> list[dict[str, Any]]:
    """A row per solver."""
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X, y = partitions(data)
        every = solvers(data, X, y, client)
        best: dict[str, dict[str, Any]] = {}
        for _ in range(rounds):
            for name, fit in every.items():
                gc.collect()
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # of Dask, about large graphs
                    model = fit()
                seconds = time.perf_counter() - began
                if seconds < best.get(name, {"seconds": np.inf})["seconds"]:
                    accuracy = accuracy_score(data.y_test, model.predict(data.X_test))
                    gap = getattr(model, "dual_gap_", None)
                    best[name] = {"seconds": seconds, "accuracy": accuracy, "gap": gap}
                    best[name]["passes"] = getattr(model, "n_iter_", None) if gap else None
    return [{"data": data.name, "solver": name, **one} for name, one in best.items()]


def is_shared() -> bool:
    """Whether others keep the processors busy, before anything is started."""
    return os.getloadavg()[0] > BUSY * (os.cpu_count() or 1)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Accuracy, wall clock, and what is proven."""
    header = ["data", "solver", "accuracy", "wall clock, s", "rounds or passes", "certified gap"]
    lines = []
    for row in rows:
        gap = "none" if row["gap"] is None else f"{row['gap']:.1e}"
        cells = [f"{100 * row['accuracy']:.2f} %", f"{row['seconds']:.2f}"]
        lines.append([row["data"], row["solver"], *cells, str(row["passes"] or ""), gap])
    found = markdown_table(header, lines)
    if any(row["shared"] for row in rows):
        found += "\n\nOther programs kept the processors busy meanwhile: the seconds are too many."
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it beside the other results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    place = RESULTS / "cluster.json"
    known, shared = read_json(place).get("rows", []), is_shared()
    for name in arguments.data:
        packages = [*PACKAGES, "dask", "distributed", "dask-ml"]
        about = {"shared": shared, **provenance(packages)}
        with threadpool_limits(1):
            rows = [row | about for row in measured(datasets.load(name), arguments.rounds)]
        print(table(rows), flush=True)
        known = [one for one in known if one["data"] != name] + rows
        write_json(place, {"rows": known})
    (RESULTS / "cluster.md").write_text(table(known) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
