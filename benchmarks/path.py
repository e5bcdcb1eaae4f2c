"""A grid of C: paths against cold fits, and cross-validation against scikit-learn's grid search.

    python -m benchmarks.path [--quick] [--part paths] [--repeats 2] [--limit 300]

One thread each, CPU seconds, float64, the grid of Keerthi et al. 2008. First, `solve_path` against
seven cold fits with `DualSolver`, Crammer-Singer without an intercept, all to a certified gap of
1e-3; in turns, and for each C the fastest of the repeats counts. Second, `LinearMulticlassSVCCV`
with five folds and its defaults against ``GridSearchCV(LinearSVC(multi_class="crammer_singer"))``
with its defaults, refit included. The grid search goes up the grid and begins no further C once it
has taken `limit` seconds: its time is then a lower bound. mnist is cut to its first rows there.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.papers.common import markdown_table, versions
from benchmarks.passes import make_problem
from benchmarks.reference_optima import read_json, write_json
from polymargin import DualSolver, LinearMulticlassSVCCV

RESULTS = Path(__file__).resolve().parent / "results"
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TOL = 1e-3
WANTED = {"news20": 0.80, "mnist": 0.80, "clinc150": 1.05}  # path / cold fits
WANTED_CV = 0.30
SEARCH_ROWS = {"mnist": 6000}
MANY = 1_000_000  # passes: the tolerance ends every fit


def load(name: str) -> datasets.Dataset:
    """One data set; mnist is mostly zeros and given as CSR."""
    return datasets.load(name, layout="csr" if name == "mnist" else "native")


def cold_seconds(X: Any, y: np.ndarray, grid: Sequence[float], seed: int) -> list[float]:
    """CPU seconds of a fit of its own per C, set-up included."""
    seconds = []
    for C in grid:
        gc.collect()
        began = time.process_time()
        found = DualSolver().solve(
            make_problem(X, y, C=C), tol=TOL, max_iter=MANY, random_state=seed
        )
        seconds.append(time.process_time() - began)
        assert found.gap <= TOL
    return seconds


def path_seconds(X: Any, y: np.ndarray, grid: Sequence[float], seed: int) -> list[float]:
    """CPU seconds per C of one path, set-up included in the first."""
    gc.collect()
    seconds = []
    began = time.process_time()
    problem = make_problem(X, y)
    for found in DualSolver().solve_path(problem, grid, tol=TOL, max_iter=MANY, random_state=seed):
        assert found.gap <= TOL
        seconds.append(time.process_time() - began)
        began = time.process_time()
    return seconds


def measure_path(
    data: datasets.Dataset, repeats: int, grid: Sequence[float] = GRID
) -> dict[str, Any]:
    """Path and cold fits in turns; the fastest of the repeats for each C."""
    cold, path = [], []
    for seed in range(repeats):
        cold.append(cold_seconds(data.X_train, data.y_train, grid, seed))
        path.append(path_seconds(data.X_train, data.y_train, grid, seed))
    return {
        "data": data.name,
        "Cs": list(grid),
        "cold": np.min(cold, axis=0).tolist(),
        "path": np.min(path, axis=0).tolist(),
    }


def grid_search(
    X: Any, y: np.ndarray, grid: Sequence[float], limit: float
) -> tuple[float, dict[float, float], bool]:
    """CPU seconds of the grid search, mean score by C, and whether it came to its end."""
    began = time.process_time()
    scores: dict[float, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for C in grid:
            if time.process_time() - began > limit:
                break
            model = LinearSVC(multi_class="crammer_singer", random_state=0)
            search = GridSearchCV(model, {"C": [C]}, cv=5, refit=False).fit(X, y)
            scores[C] = float(search.cv_results_["mean_test_score"][0])
        if len(scores) == len(grid):
            best = max(scores, key=lambda C: scores[C])
            LinearSVC(multi_class="crammer_singer", C=best, random_state=0).fit(X, y)
    return time.process_time() - began, scores, len(scores) == len(grid)


def measure_search(
    data: datasets.Dataset, limit: float, grid: Sequence[float] = GRID
) -> dict[str, Any]:
    """Both searches on the same folds."""
    rows = SEARCH_ROWS.get(data.name, len(data.y_train))
    X, y = data.X_train[:rows], data.y_train[:rows]
    if sparse.issparse(X):  # LinearSVC takes 32-bit indices only
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    result: dict[str, Any] = {"data": data.name, "rows": len(y), "Cs": list(grid)}
    began = time.process_time()
    ours = LinearMulticlassSVCCV(Cs=grid, cv=5, random_state=0, max_iter=MANY).fit(X, y)
    result["ours"] = {
        "seconds": time.process_time() - began,
        "C": ours.C_,
        "scores": ours.scores_.mean(axis=0).tolist(),
    }
    seconds, scores, complete = grid_search(X, y, grid, limit)
    best = max(scores, key=lambda C: scores[C])
    result["theirs"] = {
        "seconds": seconds,
        "C": best,
        "scores": list(scores.values()),
        "complete": complete,
    }
    return result


def report(paths: Sequence[dict[str, Any]], searches: Sequence[dict[str, Any]]) -> str:
    """The tables."""
    text = "# Path against cold fits, gap 1e-3, CPU seconds\n\n"
    rows = []
    for row in paths:
        total, cold = sum(row["path"]), sum(row["cold"])
        ratios = [f"{p / c:.2f}" for p, c in zip(row["path"], row["cold"], strict=True)]
        wanted = WANTED.get(row["data"], 1.05)
        rows.append([row["data"], cold, total, f"{total / cold:.2f}", f"{wanted:.2f}", *ratios])
    Cs = [f"C = {C:g}" for C in paths[0]["Cs"]] if paths else []
    text += markdown_table(["data", "cold s", "path s", "ratio", "wanted", *Cs], rows)
    text += "\nThe last columns are the ratios for each C.\n"
    text += "\n# Five-fold cross-validation against scikit-learn's grid search, CPU seconds\n\n"
    rows = []
    for row in searches:
        ours, theirs = row["ours"], row["theirs"]
        bound = "" if theirs["complete"] else "over "
        up_to = "" if theirs["complete"] else f" ({len(theirs['scores'])} of {len(row['Cs'])} C)"
        ratio = f"{'' if theirs['complete'] else 'below '}{ours['seconds'] / theirs['seconds']:.3f}"
        rows.append(
            [
                row["data"],
                row["rows"],
                f"{bound}{theirs['seconds']:.3g}{up_to}",
                ours["seconds"],
                ratio,
                f"{WANTED_CV:g}",
                f"{theirs['C']:g}: {100 * max(theirs['scores']):.2f}",
                f"{ours['C']:g}: {100 * np.nanmax(ours['scores']):.2f}",
            ]
        )
    header = ["data", "rows", "GridSearchCV s", "ours s", "ratio", "wanted"]
    header += ["C: score %, theirs", "ours"]
    return text + markdown_table(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and put them into ``results/path.{md,json}``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=list(WANTED), help="only these data sets")
    parser.add_argument("--repeats", type=int, default=2, help="runs per path (default 2)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a grid search")
    parser.add_argument("--part", choices=("paths", "searches"), help="one of the two only")
    parser.add_argument("--quick", action="store_true", help="C up to 1, one run, clinc150 only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    names = ["clinc150"] if options.quick else options.data
    grid = GRID[:5] if options.quick else GRID
    repeats = 1 if options.quick else options.repeats
    known = read_json(options.output / "path.json")
    paths = {row["data"]: row for row in known.get("paths", [])}
    searches = {row["data"]: row for row in known.get("searches", [])}
    with threadpool_limits(1):
        for name in names:
            data = load(name)
            if options.part != "searches":
                paths[name] = measure_path(data, repeats, grid)
                print(report([paths[name]], []), flush=True)
                _write(options.output, list(paths.values()), list(searches.values()))
            if options.part != "paths":
                searches[name] = measure_search(data, options.limit, grid)
                print(report([], [searches[name]]), flush=True)
                _write(options.output, list(paths.values()), list(searches.values()))
    return 0


def _write(folder: Path, paths: list[dict[str, Any]], searches: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "path.md").write_text(report(paths, searches))
    content = {"versions": versions(), "paths": paths, "searches": searches}
    write_json(folder / "path.json", content)


if __name__ == "__main__":
    raise SystemExit(main())
