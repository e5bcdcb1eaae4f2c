"""Wang and Scott 2021, figure 2: Walrus against Shark's greedy solver of the restricted problem.

    python -m benchmarks.papers.walrus_figure2 [--quick|--full]

The paper: Weston-Watkins, both solvers inside LIBLINEAR, C = 2^-6 ... 2^3 on eight data sets of 3
to 1,000 classes; the ratio of the times until the duality gap has fallen to 0.1, 0.01 and 0.001 of
the gap after the first pass, the clock stopped while the gap is computed. Here the same inside
polymargin, ``restricted="walrus"`` against ``"greedy"``, and our default ``"newton"`` against
``"greedy"`` too. The methods take turns; short runs are repeated and the fastest counts.

Where it differs: no sector; a sample of rcv1 with 51 classes; aloi has 97,200 training rows here
and 81,000 there and is run for C = 2^-6, 2^-3 and 1 only. A run that is not there after its limit
of CPU time (40 s, aloi 240 s) has no ratio, and the table says how many there are; where the greedy
method stops early, so do the others.
Our greedy method follows the paper's description, not Shark's code; its tolerance is 1e-4 of the
largest entry of the answer, which C bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from benchmarks import datasets
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from benchmarks.papers.trace import Trace, first_below, trace
from benchmarks.passes import make_problem
from polymargin import DualSolver, Problem

NAME = "walrus_figure2"
METHODS = ("greedy", "walrus", "newton")
DECAYS = (0.1, 0.01, 0.001)
COSTS = tuple(2.0**power for power in range(-6, 4))
FEW = (2.0**-6, 2.0**-2, 1.0)
DATA = {  # values of C, limit of a run in CPU seconds
    "satimage": (COSTS, 40.0),
    "dna": (COSTS, 40.0),
    "letter": (COSTS, 40.0),
    "news20": (COSTS, 40.0),
    "rcv1_multiclass_sub": (COSTS, 40.0),
    "mnist": (COSTS, 40.0),
    "aloi": ((*COSTS[:4:3], 1.0), 240.0),  # the largest; C = 1 is the paper's headline
}
QUICK = ("satimage", "dna", "letter", "news20", "rcv1_multiclass_sub")
FEW_CLASSES = 10
PAPER_SECONDS = {"walrus": 0.0476, "greedy": 0.0408}  # satimage, C = 1, to a decay of 0.01
EQUAL = PAPER_SECONDS["walrus"] / PAPER_SECONDS["greedy"]  # what the paper calls equally fast
NOT_MUCH = EQUAL  # median ratio of times that is not much slower: the paper's own on satimage
AS_FAST = 1.05  # median ratio that counts as at least as fast, for the noise of a shared machine
SLOWER = "satimage"  # the paper's one exception
REPEATS = 3
SPACING = 0.01  # of the time between two looks
SHORT = 2.0  # CPU seconds: longer runs are not repeated

SETUP = f"""
Both methods in our sweeps, Weston-Watkins, plain passes; the ratio of the times until the duality
gap is {", ".join(f"{decay:g}" for decay in DECAYS)} of the gap after the first pass, the clock
stopped while the gap is computed, which is whenever the time has grown by {100 * SPACING:g} %.
C = 2^-6 ... 2^3; on aloi, the largest, 2^-6, 2^-3 and 1 only (reduced: three values of C, without
mnist and aloi). There is no sector, rcv1 is a sample, and aloi has more training rows than the
paper's. A run that is not there after {DATA["mnist"][1]:g} s (aloi: {DATA["aloi"][1]:g} s) gives no
ratio; the table says how many there are. Our greedy method follows the paper's description of
Shark's, not Shark's code; its tolerance is 1e-4 of the largest entry of the answer, which C bounds.
newton is our default, exact as Walrus is, not in the paper, and decides nothing. A rank correlation
below -0.3 counts as a trend.
"""
REASONS = {
    "its lead is larger early than late": """
    the paper says that it tends to be so, and explains it by the greedy steps, of which fewer are
    needed near the optimum. The data: with very few classes neither method leads, so that there is
    no lead to shrink. The implementation: our greedy method's tolerance is not Shark's, which would
    move all data sets alike. Noise: where a fit takes hundredths of a second, medians of ten values
    of C move by some hundredths; all problems together are tested in the check.
    """,
    f"Walrus is at least as fast on all data sets but {SLOWER}": """
    the data: where it is slower, classes are few and neither method has much to do. The
    implementation: both are ours, and Shark's greedy solver may be slower than ours for few
    classes. Noise: the fastest of three runs each, on fits of hundredths of a second.
    """,
}


@dataclass(frozen=True)
class Cell:
    """Times of one method on one problem, in CPU seconds; None where it did not get there."""

    data: str
    n_classes: int
    C: float
    method: str
    times: dict[str, float | None]
    passes: int
    seconds: float
    first_gap: float


def decay_times(found: Trace) -> dict[str, float | None]:
    """Seconds until the gap is each part of the first one."""
    gaps = found.gaps
    return {f"{decay:g}": first_below(gaps, decay * gaps[0], found.seconds) for decay in DECAYS}


def decay(method: str, problem: Problem, goal: float, limit: float) -> Trace:
    """One run of plain passes until the gap is `goal` times the first one."""
    return trace(
        DualSolver(restricted=method, shrinking=False, acceleration=False, certify=False),
        problem,
        max_iter=1_000_000,
        seconds=limit,
        spacing=SPACING,
        stop=lambda found: found.gaps[-1] <= goal * found.gaps[0],
    )


def measure(data: datasets.Dataset, C: float, limit: float, repeats: int = REPEATS) -> list[Cell]:
    """One problem: every method, in turns, the others as far as the greedy one got, if anywhere."""
    problem = make_problem(data.X_train, data.y_train, "weston_watkins", C)
    best: dict[str, Trace] = {}
    goal = DECAYS[-1]
    for repeat in range(repeats):
        for method in METHODS:
            if repeat and best[method].seconds[-1] > SHORT:
                continue
            found = decay(method, problem, goal, limit)
            if repeat:  # the same passes again
                found.seconds = np.minimum(found.seconds, best[method].seconds).tolist()
            best[method] = found
            if method == "greedy":
                times = decay_times(found)
                reached = [d for d in DECAYS if times[f"{d:g}"] is not None]
                if not reached:  # no ratio to be had
                    return [_cell(data, C, method, found)]
                goal = min(reached)
    return [_cell(data, C, method, found) for method, found in best.items()]


def _cell(data: datasets.Dataset, C: float, method: str, found: Trace) -> Cell:
    return Cell(
        data.name, data.n_classes, C, method, decay_times(found), found.passes[-1],
        found.seconds[-1], float(found.gaps[0]),
    )  # fmt: skip


def ratios(cells: Sequence[Cell], method: str) -> list[dict[str, Any]]:
    """Time of a method over the greedy one's, where both got there."""
    greedy = {(cell.data, cell.C): cell for cell in cells if cell.method == "greedy"}
    found = []
    for cell in cells:
        other = greedy[cell.data, cell.C]
        for decay, seconds in cell.times.items():
            known = seconds is not None and other.times[decay] is not None
            if cell.method == method and known:
                record = {"data": cell.data, "n_classes": cell.n_classes, "C": cell.C}
                found.append(record | {"decay": decay, "ratio": seconds / other.times[decay]})
    return found


def report(cells: Sequence[Cell]) -> str:
    """Median ratios per data set and decay, their trend, and the times at C = 1."""
    text = "# Ratio of CPU times to a decay of the gap: median (range) over C\n\n"
    rows: list[list[Any]] = []
    names = list(dict.fromkeys((cell.n_classes, cell.data) for cell in cells))
    for n_classes, name in sorted(names):
        n_costs = len({cell.C for cell in cells if cell.data == name})
        row: list[Any] = [name, n_classes]
        for method in ("walrus", "newton"):
            found = [r for r in ratios(cells, method) if r["data"] == name]
            for decay in DECAYS:
                values = [r["ratio"] for r in found if r["decay"] == f"{decay:g}"]
                row.append(_summary(values, n_costs))
        rows.append(row)
    header = ["data", "classes"]
    header += [f"{m}/greedy, {decay:g}" for m in ("walrus", "newton") for decay in DECAYS]
    text += common.markdown_table(header, rows)
    for method in ("walrus", "newton"):
        found = ratios(cells, method)
        values = [r["ratio"] for r in found]
        below = sum(value < 1 for value in values)
        text += f"\n{method}/greedy is below 1 in {below} of {len(values)} cells"
        if len(names) > 1:
            trend = spearmanr([r["n_classes"] for r in found], values).statistic
            text += f"; its rank correlation with the number of classes is {trend:.2f}"
        text += ".\n"
    return text + "\n# CPU seconds at C = 1\n\n" + _at_one(cells)


def _summary(values: Sequence[float], wanted: int) -> str:
    """Median and range, and how many values there are if some are missing."""
    if not values:
        return f"none of {wanted}"
    text = f"{np.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
    return text if len(values) == wanted else f"{text}, {len(values)} of {wanted}"


def _at_one(cells: Sequence[Cell]) -> str:
    header = ["data", "method", *(f"to {decay:g}" for decay in DECAYS), "passes", "ms per pass"]
    rows = [
        [cell.data, cell.method, *cell.times.values(), cell.passes,
         1e3 * cell.seconds / cell.passes]
        for cell in cells
        if cell.C == 1.0
    ]  # fmt: skip
    return common.markdown_table(header, rows)


def draw(cells: Sequence[Cell]) -> Figure:
    """Ratios against the number of classes, a colour per decay."""
    figure = Figure(figsize=(11, 4.5), layout="tight")
    rng = np.random.default_rng(0)
    for axes, method in zip(figure.subplots(1, 2, sharey=True), ("walrus", "newton"), strict=True):
        for decay, colour in zip(DECAYS, "rgb", strict=True):
            chosen = [r for r in ratios(cells, method) if r["decay"] == f"{decay:g}"]
            x = np.array([r["n_classes"] for r in chosen]) * rng.uniform(0.93, 1.07, len(chosen))
            y = [r["ratio"] for r in chosen]
            axes.loglog(x, y, "o", color=colour, alpha=0.5, label=f"decay {decay:g}")
        axes.axhline(1.0, color="k", linewidth=0.8)
        axes.set(xlabel="classes (jittered)", ylabel="ratio of CPU times")
        axes.set(title=f"{method} / greedy")
        axes.legend()
    return figure


def medians(found: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By data set and decay."""
    by_data: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(r["data"] for r in found):
        for decay in DECAYS:
            values = [r["ratio"] for r in found if (r["data"], r["decay"]) == (name, f"{decay:g}")]
            if values:
                by_data.setdefault(name, {})[f"{decay:g}"] = float(np.median(values))
    return by_data


def early_and_late(found: Sequence[dict[str, Any]]) -> str:
    """The ratios at both ends over all problems, tested in pairs."""
    by_problem = {(r["data"], r["C"], r["decay"]): r["ratio"] for r in found}
    pairs = [
        (early, by_problem[name, C, "0.001"])
        for (name, C, decay), early in by_problem.items()
        if decay == "0.1" and (name, C, "0.001") in by_problem
    ]
    if not pairs:
        return ""
    tested = common.paired_test(*zip(*pairs, strict=True))
    return (
        f"over all {len(pairs)} problems together, the ratio is lower early in {tested.losses} and "
        f"late in {tested.wins} (Wilcoxon's p = {tested.p:.1g})"
    )


def make_claims(cells: Sequence[Cell]) -> list[Claim]:
    """What the paper reads from figure 2, from the ratios to the greedy method."""
    found = ratios(cells, "walrus")
    by_data = medians(found)
    classes = {r["data"]: r["n_classes"] for r in found}
    few = {n: max(m.values()) for n, m in by_data.items() if classes[n] <= FEW_CLASSES}
    worst = {n: max(m.values()) for n, m in by_data.items() if n != SLOWER}
    both = {n: m for n, m in by_data.items() if "0.1" in m and "0.001" in m}
    trend = np.nan
    if len(set(classes.values())) > 1:
        trend = spearmanr([r["n_classes"] for r in found], [r["ratio"] for r in found]).statistic
    paper = "Wang and Scott, figure 2"
    return [
        Claim(
            paper,
            "the more classes, the faster Walrus is relative to the greedy solver",
            f"rank correlation of the ratio of times with the number of classes {trend:.2f} "
            f"over {len(found)} cells, below 1 in {sum(r['ratio'] < 1 for r in found)}",
            verdict([None if np.isnan(trend) else bool(trend < -0.3)]),
        ),
        Claim(
            paper,
            "it is not much slower with few classes",
            "largest median ratio of a decay: "
            + ", ".join(f"{name} {value:.2f}" for name, value in few.items())
            + f" (counted as holding up to {NOT_MUCH:.2f}, what the paper saw on {SLOWER})",
            verdict(value <= NOT_MUCH for value in few.values()),
        ),
        Claim(
            paper,
            f"Walrus is at least as fast on all data sets but {SLOWER}",
            "largest median ratio of a decay: "
            + ", ".join(f"{name} {value:.2f}" for name, value in worst.items())
            + f" (counted as holding up to {AS_FAST})",
            verdict(value <= AS_FAST for value in worst.values()),
        ),
        Claim(
            paper,
            "its lead is larger early than late",
            "median ratio at a decay of 0.1 and of 0.001: "
            + ", ".join(f"{n} {m['0.1']:.2f} and {m['0.001']:.2f}" for n, m in both.items()),
            verdict(m["0.1"] < m["0.001"] for m in both.values()),
            check=early_and_late(found),
        ),
    ]


def experiment(study: Study) -> None:
    cells: list[Cell] = []
    repeats = 1 if study.quick else REPEATS
    for name in QUICK if study.quick else DATA:
        costs, limit = DATA[name]
        data = datasets.load(name, layout="csr" if name == "mnist" else "native")
        for C in FEW if study.quick else costs:
            found = study.cell(
                f"{name} C={C:g}, {repeats} runs, {limit:g} s",
                lambda d=data, C=C, limit=limit: [
                    cell.__dict__ for cell in measure(d, C, limit, repeats)
                ],
            )
            cells += [Cell(**cell) for cell in found or []]
    content = {"cells": [cell.__dict__ for cell in cells]}
    study.write(report(cells), content, make_claims(cells), draw(cells))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
