"""Rounds over partitions: how many a certified gap takes, by the number of partitions.

    python -m benchmarks.partitions run [--data news20 ...] [--parts 2 4 8 16 32 64]
    python -m benchmarks.partitions plot

``run`` fits in one process (what a cluster would do, to the last bit) and writes
``benchmarks/results/partitions.json`` after every fit; what is there already is not run again.
``plot`` draws ``partitions.png`` beside it, from that file and prints the table of
``docs/beyond_one_machine.md``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import pairwise

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from polymargin import LinearMulticlassSVC
from polymargin.estimators.partitioned import LocalSource, PartitionedLinearSVC, checked_chunk
from polymargin.version import __version__

DATA = ("news20", "clinc150", "rcv1_multiclass_sub", "mnist")
PARTS = (2, 4, 8, 16, 32, 64)
RESULTS = datasets.PROJECT_ROOT / "benchmarks" / "results" / "partitions.json"
PLOT = RESULTS.with_suffix(".png")


def rounds(name: str, n_parts: int, tol: float, max_iter: int) -> dict[str, object]:
    """One fit, in partitions that are cut at random; 1: in memory, where passes are counted."""
    data = datasets.load(name)
    order = np.random.default_rng(0).permutation(len(data.y_train))
    X, y = data.X_train[order], data.y_train[order]
    began = time.process_time()
    settings = {"random_state": 0, "tol": tol, "max_iter": max_iter}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if n_parts == 1:
            model = LinearMulticlassSVC(**settings).fit(X, y)
        else:
            cuts = np.linspace(0, len(y), n_parts + 1).astype(int)
            chunks = [checked_chunk(m, X[a:b], y[a:b]) for m, (a, b) in enumerate(pairwise(cuts))]
            model = PartitionedLinearSVC(**settings)._fit(LocalSource(chunks), None, None)
    return {
        "data": name,
        "partitions": n_parts,
        "rounds": model.n_iter_,
        "gap": model.dual_gap_,
        "tol": tol,
        "cpu_seconds": round(time.process_time() - began, 1),
        "version": __version__,
    }


def run(names: list[str], parts: list[int], tol: float, max_iter: int) -> None:
    """All fits that are missing."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in names:
        for n_parts in (1, *parts):
            if any((one["data"], one["partitions"]) == (name, n_parts) for one in found):
                continue
            found.append(rounds(name, n_parts, tol, max_iter))
            print(json.dumps(found[-1]), flush=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def plot() -> None:
    """The picture, and the table."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    found = json.loads(RESULTS.read_text())
    figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    print("| partitions | 1 (passes) | " + " | ".join(str(m) for m in PARTS) + " |")
    print("|---" * (len(PARTS) + 2) + "|")
    for name in dict.fromkeys(one["data"] for one in found):
        here = {one["partitions"]: one for one in found if one["data"] == name}
        done = [m for m in PARTS if m in here and here[m]["gap"] <= here[m]["tol"]]
        axes.plot(done, [here[m]["rounds"] for m in done], "o-", label=name)
        cells = ["" if m not in here else _cell(here[m]) for m in (1, *PARTS)]
        print(f"| {name} | " + " | ".join(cells) + " |")
    axes.set(xscale="log", yscale="log", xlabel="partitions", ylabel="rounds to a gap of 1e-3")
    axes.set_xticks(PARTS, [str(m) for m in PARTS], minor=False)
    axes.minorticks_off()
    axes.legend()
    figure.savefig(PLOT, dpi=120)


def _cell(one: dict) -> str:
    return str(one["rounds"]) if one["gap"] <= one["tol"] else f"gap {one['gap']:.0e}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "plot"])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--parts", nargs="+", type=int, default=PARTS)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-iter", type=int, default=1000)
    given = parser.parse_args()
    if given.what == "run":
        run(given.data, given.parts, given.tol, given.max_iter)
    else:
        plot()


if __name__ == "__main__":
    main()
