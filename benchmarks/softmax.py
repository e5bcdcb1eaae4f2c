"""Smooth losses against the solvers that people use for them: CPU seconds to the same objective.

    python -m benchmarks.softmax --find [--data NAME ...] [--C 0.1 1 10]    # which tol gets there
    python -m benchmarks.softmax [--data NAME ...] [--C 0.1 1 10]           # seconds with these
    python -m benchmarks.softmax --loss one_vs_rest_squared ...

Softmax against the solvers of LogisticRegression, the squared hinge one-vs-rest against LIBLINEAR's
``-s 1`` (the dual method of LinearSVC). No intercept, one thread, arrays as scikit-learn gets them:
text in float64, embeddings in float32. Ours is one ``fit`` at ``tol=1e-3``, its certificate
included; a peer's is the one at the largest ``tol`` of a grid whose objective is within 1e-3 of the
optimum, which a fit of ours at 1e-4 bounds from below. One function evaluates every objective.

Every run is a process of its own with a time limit (`--limit`). A peer's walk along its grid ends
when a run takes three times as long as the fastest peer that got there: its time is then a lower
bound. What is found is kept at once in ``results/softmax.json``, and runs known are not made again.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table
from benchmarks.provenance import provenance
from benchmarks.reference_optima import read_json, write_json
from polymargin import LinearMulticlassSVC, get_loss

RESULTS = Path(__file__).resolve().parent / "results"
TEXT = ("news20", "rcv1_multiclass_sub", "banking77", "clinc150")
DENSE = ("mnist", "letter", "clinc150_minilm", "banking77_minilm")
WANTED = dict.fromkeys(TEXT, 3.0) | dict.fromkeys(DENSE, 1.0)  # times the fastest peer's speed
CS = (0.1, 1.0, 10.0)
TARGET = 1e-3
GRID = tuple(step * 10.0**-d for d in range(1, 8) for step in (1.0, 0.3))
OURS = "polymargin"
MOST_PARAMETERS = 20_000  # of newton-cholesky, whose Hessian is dense
PATIENCE = 3.0  # times the fastest peer's seconds
REPEATS = 2

Maker = Callable[[float, float], Any]  # (C, tol) -> estimator


def logistic(solver: str) -> Maker:
    """What makes LogisticRegression with one of its solvers."""
    return lambda C, tol: LogisticRegression(
        C=C, tol=tol, solver=solver, fit_intercept=False, max_iter=1_000_000, random_state=0
    )


PEERS: dict[str, dict[str, Maker]] = {
    "softmax": {name: logistic(name) for name in ("lbfgs", "newton-cg", "newton-cholesky", "saga")},
    "one_vs_rest_squared": {
        "liblinear -s 1": lambda C, tol: LinearSVC(
            C=C, tol=tol, fit_intercept=False, max_iter=1_000_000, random_state=0
        )
    },
}


def load(name: str) -> datasets.Dataset:
    """One data set, in the type that its features usually come in; saga wants 32-bit indices."""
    data = datasets.load(name, np.float32 if name.endswith("minilm") else np.float64)
    if sparse.issparse(data.X_train):
        X = data.X_train
        X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
    return data


def objective(data: datasets.Dataset, loss: str, C: float, coef: np.ndarray) -> float:
    """The primal in float64."""
    coef = np.asarray(coef, np.float64)
    scores = data.X_train @ coef.T
    return float(0.5 * np.vdot(coef, coef) + C * get_loss(loss).value(scores, data.y_train).sum())


def ours(loss: str, tol: float) -> Callable[[float, float], LinearMulticlassSVC]:
    """What makes our machine; its tolerance is given here."""
    return lambda C, _: LinearMulticlassSVC(
        loss=loss, C=C, tol=tol, fit_intercept=False, random_state=0, max_iter=100_000
    )


def _run(data: datasets.Dataset, model: Any, loss: str, C: float, pipe: Any) -> None:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # which would copy what is shared with the parent, a fault for every page
        gc.freeze()
        began = time.process_time()
        model.fit(data.X_train, data.y_train)
        seconds = time.process_time() - began
    found = {"seconds": seconds, "primal": objective(data, loss, C, model.coef_)}
    found["passes"] = int(np.max(model.n_iter_))
    found["gap"] = float(getattr(model, "dual_gap_", np.nan))
    pipe.send(found)


def fit(
    data: datasets.Dataset, make: Maker, loss: str, C: float, tol: float, limit: float
) -> dict[str, Any] | None:
    """One fit in a process of its own; None when it takes longer than `limit`."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(data, make(C, tol), loss, C, there)
    )
    process.start()
    there.close()
    found = here.recv() if here.poll(limit) else None
    if found is None:
        process.terminate()
    process.join()
    return found


def find(data: datasets.Dataset, loss: str, C: float, limit: float) -> dict[str, Any]:
    """The lower bound of the optimum, and every peer's largest tolerance that gets there."""
    tight = fit(data, ours(loss, TARGET / 10), loss, C, 0.0, limit)
    if tight is None:
        return {"optimum": None, "peers": {}}
    optimum = tight["primal"] * (1 - tight["gap"])
    peers: dict[str, Any] = {}
    fastest = limit / PATIENCE
    for name, make in PEERS[loss].items():
        width = data.n_classes * data.X_train.shape[1]
        if name == "newton-cholesky" and width > MOST_PARAMETERS:
            peers[name] = {"tol": None, "why": f"a Hessian of {width} parameters"}
            continue
        peers[name] = _walk(data, make, loss, C, optimum, min(limit, PATIENCE * fastest + 1))
        if peers[name]["tol"] is not None:
            fastest = min(fastest, peers[name]["seconds"])
    return {"optimum": optimum, "peers": peers}


def _walk(
    data: datasets.Dataset, make: Maker, loss: str, C: float, optimum: float, limit: float
) -> dict[str, Any]:
    for tol in GRID:
        run = fit(data, make, loss, C, tol, limit)
        if run is None:
            return {"tol": None, "over": limit}
        if run["primal"] <= (1 + TARGET) * optimum:
            return {"tol": tol, "seconds": run["seconds"]}
    return {"tol": None, "why": "no tol of the grid gets there"}


def measure(
    data: datasets.Dataset, loss: str, C: float, known: dict[str, Any], limit: float
) -> dict[str, Any]:
    """Seconds of ours, and of the peers with the tolerances found; the fastest of the repeats."""
    makers = {OURS: ours(loss, TARGET)} | PEERS[loss]
    found: dict[str, Any] = {}
    fastest = limit
    for _ in range(REPEATS):
        for name, make in makers.items():
            tol = 0.0 if name == OURS else known["peers"][name]["tol"]
            if tol is None:
                continue
            run = fit(data, make, loss, C, tol, min(limit, PATIENCE * fastest + 1))
            if run is None:
                continue
            if name != OURS:
                fastest = min(fastest, run["seconds"])
            best = found.get(name)
            found[name] = run if best is None or run["seconds"] < best["seconds"] else best
    return found


def cells(options: argparse.Namespace) -> Iterator[tuple[datasets.Dataset, float, str]]:
    """The cells asked for, with the key of each."""
    for name in options.data:
        data = load(name)
        for C in options.C:
            yield data, C, f"{options.loss} {name} {C:g}"


def _seconds(row: dict[str, Any], name: str) -> str:
    run = row["seconds"].get(name)
    if run is not None:
        return f"{run['seconds']:.3g}"
    known = row["found"]["peers"].get(name, {})
    return f"> {known['over']:.3g}" if "over" in known else ""


def report(rows: dict[str, dict[str, Any]]) -> str:
    """The tables, a loss each."""
    text = "# Smooth losses and their usual solvers\n\nCPU seconds, one thread.\n"
    for loss, peers in PEERS.items():
        here = [row for row in rows.values() if row["loss"] == loss and "seconds" in row]
        lines = []
        for row in here:
            own = row["seconds"][OURS]
            others = [run["seconds"] for name, run in row["seconds"].items() if name != OURS]
            ratio = f"{min(others) / own['seconds']:.2f}" if others else ""
            lines.append(
                [row["data"], f"{row['C']:g}", f"{own['seconds']:.3g}", own["passes"]]
                + [_seconds(row, name) for name in peers]
                + [ratio, f"{WANTED[row['data']]:g}"]
            )
        header = ["data", "C", OURS, "passes", *peers, "fastest / ours", "wanted"]
        text += f"\n## {loss}\n\n" + markdown_table(header, lines) if lines else ""
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Find tolerances or measure, and keep what was found in ``results/softmax.{json,md}``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loss", choices=list(PEERS), default="softmax")
    parser.add_argument("--data", nargs="+", choices=list(WANTED), default=list(WANTED))
    parser.add_argument("--C", nargs="+", type=float, default=list(CS))
    parser.add_argument("--find", action="store_true", help="the tolerances instead of seconds")
    parser.add_argument("--again", action="store_true", help="also what is known")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of one run")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    path = options.output / "softmax.json"
    for data, C, key in cells(options):
        rows = read_json(path).get("rows", {})
        row = rows.setdefault(key, {"loss": options.loss, "data": data.name, "C": C})
        if options.find and ("found" not in row or options.again):
            row["found"] = find(data, options.loss, C, options.limit)
            print(key, row["found"], flush=True)
        elif not options.find and "found" in row and ("seconds" not in row or options.again):
            row["seconds"] = measure(data, options.loss, C, row["found"], options.limit)
            row["provenance"] = provenance()
            print(key, {n: round(r["seconds"], 3) for n, r in row["seconds"].items()}, flush=True)
        write_json(path, {"rows": rows})
        path.with_suffix(".md").write_text(report(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
