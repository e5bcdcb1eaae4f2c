"""Wang and Scott 2021, tables 8 and 9: the subproblem against general-purpose QP solvers.

    python -m benchmarks.papers.walrus_tables8_9 [--quick|--full]

The problem: min 1/2 b'(I + 11')b - v'b over 0 <= b <= C, with k - 1 variables. The paper says that
Walrus is orders of magnitude faster than general-purpose solvers; its tables are in a supplement
that is not at hand, so there are no numbers to stand beside. Here: v from problems that training
meets (standard normal, scaled so that some entries are at each bound, C = 1), our ``walrus`` and
``newton`` through the public function (one vector a call, and a thousand), against Clarabel
(interior point), OSQP (operator splitting), quadprog (dual active set), BOXCQP (which the paper
cites) and SciPy's L-BFGS-B. The matrix is built beforehand; set-up of a solver is part of its time.
CPU time of one thread, the fastest of three repeats over ten problems.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize, sparse

from benchmarks.baselines.box_cqp import box_cqp
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from polymargin.projections import solve_weston_watkins

NAME = "walrus_tables8_9"
SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
QUICK_SIZES = (5, 20, 100, 500)
OURS = ("walrus, one", "newton, one", "walrus, batch", "newton, batch")
PACKAGES = {"clarabel": "clarabel", "osqp": "osqp", "quadprog": "quadprog"}
BATCH = 1000
PROBLEMS = 10
REPEATS = 3
CALLS = 2.0  # times its least time: from then on, most of a solver's time is its own
ORDERS = 10.0  # at least this ratio counts as orders of magnitude

Vectors = np.ndarray

SETUP = f"""
min 1/2 b'(I + 11')b - v'b over 0 <= b <= C with random v, scaled so that some entries of the answer
are at each bound, C = 1. `walrus` and `newton` through the public function, one vector a call and
{BATCH:,} a call, against Clarabel (interior point), OSQP (operator splitting), quadprog (dual
active set), BOXCQP (which the paper cites) and SciPy's L-BFGS-B. The matrix is built beforehand;
setting up a solver is part of its time. The fastest of {REPEATS} repeats over {PROBLEMS} problems;
at least {ORDERS:g} times as fast counts as orders of magnitude. What a call from Python costs
decides nothing: ours are timed in batches, from the others' times the least that they take for any
size is taken off, and sizes at which that is half of anybody's time do not count. The paper's
tables are in a supplement that is not at hand, so that there are no numbers to stand beside.
"""


def vectors(n: int, count: int, seed: int = 0) -> Vectors:
    """Linear terms whose solutions have entries at both bounds and between."""
    rng = np.random.default_rng(seed)
    return 0.5 * n * rng.random((count, 1)) + 2.0 * rng.standard_normal((count, n))


def _clarabel(H: np.ndarray, C: float) -> Callable[[Vectors], Vectors]:
    import clarabel

    n = len(H)
    P = sparse.triu(sparse.csc_matrix(H)).tocsc()
    A = sparse.vstack([sparse.identity(n), -sparse.identity(n)]).tocsc()
    bounds = np.concatenate([np.full(n, C), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False

    def solve(v: Vectors) -> Vectors:
        cones = [clarabel.NonnegativeConeT(2 * n)]
        return np.array(clarabel.DefaultSolver(P, -v, A, bounds, cones, settings).solve().x)

    return solve


def _osqp(H: np.ndarray, C: float) -> Callable[[Vectors], Vectors]:
    import osqp

    n = len(H)
    P, A = sparse.triu(sparse.csc_matrix(H)).tocsc(), sparse.identity(n).tocsc()
    low, high = np.zeros(n), np.full(n, C)

    def solve(v: Vectors) -> Vectors:
        solver = osqp.OSQP()
        solver.setup(P, -v, A, low, high, verbose=False, eps_abs=1e-6, eps_rel=1e-6)
        return np.array(solver.solve().x)

    return solve


def _quadprog(H: np.ndarray, C: float) -> Callable[[Vectors], Vectors]:
    import quadprog

    n = len(H)
    A = np.hstack([np.eye(n), -np.eye(n)])
    bounds = np.concatenate([np.zeros(n), np.full(n, -C)])
    return lambda v: quadprog.solve_qp(H, v, A, bounds)[0]


def _l_bfgs_b(H: np.ndarray, C: float) -> Callable[[Vectors], Vectors]:
    bounds = [(0.0, C)] * len(H)

    def solve(v: Vectors) -> Vectors:
        def value(b: Vectors) -> tuple[float, Vectors]:
            Hb = b + b.sum()
            return 0.5 * b @ Hb - v @ b, Hb - v

        start = np.zeros(len(v))
        options = {"maxiter": 10_000, "ftol": 1e-14, "gtol": 1e-8}
        found = optimize.minimize(
            value, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options
        )
        return found.x

    return solve


GENERAL: dict[str, Callable[[np.ndarray, float], Callable[[Vectors], Vectors]]] = {
    "clarabel": _clarabel,
    "osqp": _osqp,
    "quadprog": _quadprog,
    "BOXCQP": lambda H, C: lambda v: box_cqp(H, v, C),
    "L-BFGS-B": _l_bfgs_b,
}


def absent() -> list[str]:
    """Solvers that are not installed."""
    return [name for name, package in PACKAGES.items() if not importlib.util.find_spec(package)]


def seconds_each(solve: Callable[[], Any], count: int, repeats: int) -> float:
    """Fastest CPU seconds per problem."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        solve()
        best = min(best, time.process_time() - start)
    return best / count


def measure(n: int, label: str, repeats: int = REPEATS, C: float = 1.0) -> dict[str, float]:
    """Microseconds per problem and the largest distance from the exact solution."""
    V = vectors(n, PROBLEMS)
    exact = solve_weston_watkins(V, C)
    if label in OURS:
        method, how = label.split(", ")
        many = vectors(n, BATCH)
        if how == "batch":
            each = seconds_each(
                lambda: solve_weston_watkins(many, C, method=method), BATCH, repeats
            )
        else:
            each = seconds_each(
                lambda: [solve_weston_watkins(v, C, method=method) for v in V], PROBLEMS, repeats
            )
        answer = solve_weston_watkins(V, C, method=method)
    else:
        solve = GENERAL[label](np.eye(n) + 1.0, C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = np.array([solve(v) for v in V])
            each = seconds_each(lambda: [solve(v) for v in V], PROBLEMS, repeats)
    return {"microseconds": 1e6 * each, "error": float(np.abs(answer - exact).max())}


def ratios(found: dict[int, dict[str, dict[str, float]]]) -> dict[int, float | None]:
    """Time of the fastest general-purpose solver over Walrus's, by number of variables.

    What its call costs, its least time of all sizes, is taken off; None where that is most of it.
    """
    general = [label for label in next(iter(found.values()), {}) if label not in OURS]
    call = {label: min(c[label]["microseconds"] for c in found.values()) for label in general}
    ratios: dict[int, float | None] = {}
    for n, cells in found.items():
        taken = {label: cells[label]["microseconds"] - call[label] for label in general}
        solvers_own = min(taken.values())
        told = all(taken[label] > (CALLS - 1) * call[label] for label in general)
        ratios[n] = solvers_own / cells["walrus, batch"]["microseconds"] if told else None
    return ratios


def make_claims(found: dict[int, dict[str, dict[str, float]]]) -> list[Claim]:
    """From vectors solved in one call."""
    slower = ratios(found)
    told = {n: r for n, r in slower.items() if r is not None}
    calls = [f"{n:,}" for n, r in slower.items() if r is None]
    text = ", ".join(f"{n:,}: {r:.0f}" for n, r in told.items())
    return [
        Claim(
            "Wang and Scott, tables 8 and 9",
            "Walrus is orders of magnitude faster than general-purpose QP solvers",
            f"the fastest of them takes so many times as long, by variables: {text or 'none'} (at "
            f"least {ORDERS:g} times counts)"
            + (f"; mostly calls from Python at {', '.join(calls)} variables" if calls else ""),
            verdict(None if r is None else r >= ORDERS for r in slower.values()),
        )
    ]


def report(found: dict[int, dict[str, dict[str, float]]], missing: list[str]) -> str:
    labels = list(next(iter(found.values())))
    text = "# Tables 8 and 9: microseconds per subproblem\n\n"
    rows = [[n, *(cells[label]["microseconds"] for label in labels)] for n, cells in found.items()]
    text += common.markdown_table(["variables", *labels], rows)
    text += "\n# Largest distance from the exact solution\n\n"
    rows = [
        [n, *(f"{cells[label]['error']:.0e}" for label in labels)] for n, cells in found.items()
    ]
    text += common.markdown_table(["variables", *labels], rows)
    return text + f"\nNot installed: {', '.join(missing) or 'none'}.\n"


def draw(found: dict[int, dict[str, dict[str, float]]]) -> Figure:
    figure = Figure(figsize=(7, 5), layout="tight")
    axes = figure.subplots()
    for label in next(iter(found.values())):
        values = [cells[label]["microseconds"] for cells in found.values()]
        axes.loglog(list(found), values, "-o" if label in OURS else "--", label=label)
    axes.set(xlabel="variables", ylabel="microseconds per problem")
    axes.legend(fontsize=8)
    return figure


def experiment(study: Study) -> None:
    missing = absent()
    labels = [*OURS, *(label for label in GENERAL if label not in missing)]
    found: dict[int, dict[str, dict[str, float]]] = {}
    for n in QUICK_SIZES if study.quick else SIZES:
        cells = {
            label: study.cell(f"{n} variables {label}", lambda n=n, m=label: measure(n, m))
            for label in labels
        }
        if None not in cells.values():
            found[n] = cells
    content = {"absent": missing, "cells": found}
    study.write(report(found, missing), content, make_claims(found), draw(found))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
