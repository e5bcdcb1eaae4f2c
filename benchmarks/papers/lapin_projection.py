"""Lapin et al. 2015, supplement: time of the top-k projection against the knapsack projection.

    python -m benchmarks.papers.lapin_projection [--quick|--full]

The paper: the (biased) projection onto the top-k simplex is scalable and comparable to an efficient
algorithm (Kiwiel 2008) for the projection onto the simplex, of which the knapsack problem
``0 <= p <= 1/k, sum p <= 1`` is the bounded form. Here our `project_top_k_simplex` (bias 0 and 1)
against that algorithm, variable fixing (`benchmarks.baselines.variable_fixing`), and against our
own `project_capped_simplex` and `project_simplex`: standard normal entries, sizes 100 to 1,000,000,
one thread, CPU nanoseconds per entry of whole calls, the fastest of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from benchmarks.baselines.compiled import HAS_NUMBA
from benchmarks.baselines.variable_fixing import knapsack
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from polymargin.projections import (
    project_capped_simplex,
    project_simplex,
    project_top_k_simplex,
)

NAME = "lapin_projection"
FIXING = "variable fixing"
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (100, 1_000, 10_000)
KS = (1, 5, 10, 50)
ENTRIES = 1_000_000
COMPARABLE = 3.0  # times the knapsack's time
STEEPEST = 1.2  # exponent of the size that still counts as scalable

SETUP = f"""
Our `project_top_k_simplex` (bias 0 and 1) against Kiwiel's variable fixing for the knapsack problem
0 <= p <= 1/k, sum p <= 1, written for this comparison and compiled with Numba, which decides; our
own `project_capped_simplex`, which solves that problem too, and `project_simplex` stand beside it.
The paper compares its own implementation with one of Kiwiel's algorithm. Standard normal entries,
sizes from {SIZES[0]:,} to {SIZES[-1]:,} (reduced: to {QUICK_SIZES[-1]:,}), CPU nanoseconds per
entry of whole calls, the fastest of five. The paper's figure is in a supplement that is not at
hand.
"""
_COMPARABLE = "the top-k projection is comparable in time to the knapsack projection"


def calls(V: np.ndarray, k: int) -> dict[str, Callable[[], np.ndarray]]:
    """One call per projection."""
    return {
        "simplex": lambda: project_simplex(V),
        "knapsack": lambda: project_capped_simplex(V, 1.0 / k, equality=False),
        FIXING: lambda: knapsack(V, 1.0 / k),
        "top-k": lambda: project_top_k_simplex(V, k),
        "top-k, bias 1": lambda: project_top_k_simplex(V, k, bias=1.0),
    }


def measure(n: int, k: int, repeats: int = 5) -> dict[str, float]:
    """Nanoseconds per entry, in turns."""
    V = np.random.default_rng(0).standard_normal((max(1, ENTRIES // n), n))
    knapsack(V[:1], 1.0 / k)  # compile
    best: dict[str, float] = {}
    for _ in range(repeats):
        for label, call in calls(V, k).items():
            start = time.process_time()
            call()
            taken = 1e9 * (time.process_time() - start) / V.size
            best[label] = min(taken, best.get(label, np.inf))
    return best


Found = dict[int, dict[int, dict[str, float]]]  # k, size, projection


def make_claims(found: Found) -> list[Claim]:
    cells = [cell for by_n in found.values() for cell in by_n.values()]
    ratios, ours = (
        [cell["top-k"] / cell[other] for cell in cells] for other in (FIXING, "knapsack")
    )
    exponents = [
        np.polyfit(np.log(list(by_n)), np.log([n * cell["top-k"] for n, cell in by_n.items()]), 1)[
            0
        ]
        for by_n in found.values()
    ]
    return [
        Claim(
            "Lapin, supplement",
            _COMPARABLE,
            f"{min(ratios):.2f} to {max(ratios):.2f} times the time of variable fixing, median "
            f"{np.median(ratios):.2f} (counted as holding up to {COMPARABLE:g})",
            verdict(r <= COMPARABLE for r in ratios),
            check=f"{min(ours):.2f} to {max(ours):.2f} times that of our own knapsack projection",
        ),
        Claim(
            "Lapin, supplement",
            "the top-k projection is scalable",
            f"time grows as size^b with b from {min(exponents):.2f} to {max(exponents):.2f} "
            f"(counted as holding up to {STEEPEST})",
            verdict(b <= STEEPEST for b in exponents),
        ),
    ]


def report(found: Found) -> str:
    rows = [
        [f"k = {k}", f"{n:,}", *cell.values(), cell["top-k"] / cell[FIXING]]
        for k, by_n in found.items()
        for n, cell in by_n.items()
    ]
    labels = list(next(iter(next(iter(found.values())).values())))
    text = "# Projections: nanoseconds per entry\n\n"
    text += common.markdown_table(["k", "size", *labels, f"top-k / {FIXING}"], rows)
    return text + "\nThe paper's figure is in a supplement that is not at hand.\n"


def draw(found: Found) -> Figure:
    figure = Figure(figsize=(4 * len(found), 4), layout="tight")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (k, by_n) in zip(panels, found.items(), strict=True):
        for label in next(iter(by_n.values())):
            axes.loglog(list(by_n), [cell[label] for cell in by_n.values()], "o-", label=label)
        axes.set(title=f"k = {k}", xlabel="size", ylabel="nanoseconds per entry")
        axes.legend(fontsize=8)
    return figure


def experiment(study: Study) -> None:
    if study.measure and not HAS_NUMBA:
        raise SystemExit("Timing variable fixing needs Numba: pip install 'polymargin[papers]'.")
    found: Found = {}
    for k in KS:
        for n in QUICK_SIZES if study.quick else SIZES:
            cell = study.cell(f"k={k} n={n}, with {FIXING}", lambda n=n, k=k: measure(n, k))
            if cell is not None:
                found.setdefault(k, {})[n] = cell
    study.write(report(found), {"nanoseconds": found}, make_claims(found), draw(found))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
