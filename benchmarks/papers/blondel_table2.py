"""Blondel et al. 2014, table II: accuracy after one, three and five passes.

    python -m benchmarks.papers.blondel_table2 [--quick|--full]

The paper: ten stratified splits of the whole data set into 4/5 and 1/5, C = 1, linear kernel, no
intercept, rows shuffled once and visited cyclically; the restricted problem solved by Sort, Pivot,
Bisection (tau = 1e-3), one cycle of SMO or one Frank-Wolfe step. Here the same, in one engine:
every method gets the same split in the same order, so that the differences can be tested in pairs
(Wilcoxon signed-rank, two-sided). Our default, an exact Newton method, is added.

Where it differs: our news20 is the LIBSVM version with unit rows (15,935 + 3,993 rows, 62,061
features); the paper's has 18,846 rows and 130,088 features. Accuracies are therefore not to be
compared digit by digit; their order is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.baselines.dual_decomposition import DualDecomposition
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from benchmarks.passes import make_problem
from polymargin import DualSolver

NAME = "blondel_table2"
METHODS = {
    "Sort": "sort",
    "Pivot": "pivot",
    "Bisection": "bisection",
    "SMO": "smo",
    "Frank-Wolfe": "frank_wolfe",
    "Newton": "newton",  # our default, not in the paper
}
SMO_VIOLATION = 0.2
PRINTED: dict[str, tuple[str, dict[str, Any]]] = {  # algorithm 1 with the paper's own formulas
    "Sort": ("sort", {}),
    "Bisection": ("bisection", {"tol": 1e-3}),
    "SMO, one cycle": ("smo", {}),
    f"SMO to {SMO_VIOLATION:g}": ("smo", {"tol": SMO_VIOLATION, "cycles": 1000}),
    "Frank-Wolfe": ("frank_wolfe", {}),
}
PASSES = (1, 3, 5)
DATA = ("news20", "rcv1_multiclass_sub", "clinc150")
PAPER = {  # accuracy in per cent, its standard deviation, seconds
    "News20": {
        1: [(83.51, 1.04, 0.33), (83.85, 0.87, 0.31), (83.10, 0.76, 0.31), (82.55, 1.38, 0.31),
            (81.23, 1.89, 0.27)],
        3: [(89.20, 0.35, 0.91), (89.12, 0.39, 0.90), (89.10, 0.47, 0.94), (88.87, 0.50, 0.96),
            (88.01, 0.42, 0.80)],
        5: [(89.83, 0.21, 1.48), (89.87, 0.24, 1.47), (89.81, 0.23, 1.57), (89.63, 0.13, 1.52),
            (89.14, 0.51, 1.41)],
    },
    "RCV1": {
        1: [(91.91, 0.14, 8.96), (91.90, 0.11, 8.83), (91.86, 0.09, 9.15), (91.80, 0.09, 8.86),
            (91.66, 0.10, 8.71)],
        3: [(92.82, 0.04, 25.90), (92.84, 0.04, 25.73), (92.82, 0.03, 26.40), (92.81, 0.03, 25.75),
            (92.74, 0.04, 25.17)],
        5: [(92.90, 0.03, 42.99), (92.90, 0.03, 42.45), (92.89, 0.04, 43.40), (92.89, 0.05, 42.97),
            (92.87, 0.03, 41.63)],
    },
    "Sector": {
        1: [(94.17, 0.27, 0.58), (93.96, 0.36, 0.56), (94.08, 0.30, 0.59), (93.52, 0.41, 0.56),
            (93.57, 0.37, 0.48)],
        3: [(94.98, 0.24, 1.69), (95.06, 0.28, 1.64), (95.02, 0.27, 1.71), (94.78, 0.23, 1.67),
            (94.74, 0.17, 1.40)],
        5: [(95.10, 0.27, 2.82), (95.07, 0.26, 2.69), (95.06, 0.26, 2.81), (94.98, 0.22, 2.78),
            (94.95, 0.18, 2.32)],
    },
}  # fmt: skip
THEIRS = {"news20": "News20", "rcv1_multiclass_sub": "RCV1", "clinc150": "Sector"}
REPEATS = 3

SIGNIFICANT = 0.05
PARTIAL = ("SMO", "Frank-Wolfe")
COLUMNS = ("Sort", "Pivot", "Bisection", "SMO", "Frank-Wolfe")  # of PAPER

Measured = dict[str, dict[int, list[float]]]  # method, passes, one value per split

SETUP = f"""
The paper's protocol on {", ".join(DATA)}, in the places of News20, RCV1 and Sector (Amazon7 is not
at hand; where scikit-learn has the 18,846 documents of News20 on the machine, they are used):
C = 1, no intercept, ten stratified splits into 4/5 and 1/5 (reduced: three), rows shuffled once and
visited cyclically, bisection with tau = 1e-3. Accuracies are decided by the paper's algorithm 1 as
it is printed, in its own variables (benchmarks/baselines/dual_decomposition.py): bisection from the
bracket [0, U] without scaling, and SMO in one cycle through the classes as they are numbered, or in
cycles until the violation of the example is at most {SMO_VIOLATION:g}, since the paper does not say
how many it makes. (In the first pass an example has no dual yet: a cycle that ends with the true
class, as our engine's does, makes one step, which is Frank-Wolfe's. In the paper's order the
classes behind it follow.) Costs are decided by our engine, where every method gets the same rows in
the same order; our default, an exact Newton method, is added and decides nothing. Accuracies can be
compared only roughly with the paper's (table I), their order can. A method is more accurate than
another if Wilcoxon's signed-rank test over the splits, two-sided, gives p below {SIGNIFICANT:g}
(with fewer than six splits: if it is on all of them); ten splits cannot give a p below 0.002. It
costs no more up to the largest ratio to the cheaper partial method that the paper's own table has,
after {PASSES[-1]} passes; seconds are those of the fastest of {REPEATS} runs.
"""
_FIRST = "after one pass, exact methods are more accurate than SMO and Frank-Wolfe"
_ORDER = "after one pass, SMO is more accurate than Frank-Wolfe"
_LATER = "exact methods are the most accurate after three and five passes too"
_COST = "exact methods cost no more than partial ones"
REASONS = {
    _FIRST: """
    the data: the more often a step has few classes to choose from, the nearer SMO comes to the
    exact one. The implementation: SMO until the violation is small is nearly exact itself, so that
    little is left to be ahead of. Noise: the test over the splits, and ten other ones.
    """,
    _ORDER: """
    the data: where the first steps have one violating class, both make the same step. The
    implementation: our engine's cycle, another order of the classes, makes Frank-Wolfe's step in
    the first pass, and does not count. Noise: the test over the splits.
    """,
    _LATER: """
    the data: all methods go towards the same optimum, and what an exact solution gains in the first
    pass the others make up for in the next ones; on the paper's own data the leads after five
    passes are a few tenths of a point too, and on Amazon7 Frank-Wolfe is ahead of Sort. The
    implementation: our engine's methods and those as printed show the same. Noise: the other splits
    tell how much of the order is that of the splits.
    """,
    _COST: """
    the implementation: both exact methods make the same passes as Newton, which is exact too; its
    ratio in the check is what exactness as such costs. Sort orders, after one vector pass, the
    classes that may be positive, and Pivot partitions without branches; what is left still costs
    more than a partial step where that is cheap. The data: the more classes and the shorter the
    rows, the more of a visit is the restricted problem. Noise: the ratios are means of ten splits.
    """,
}


def few_passes(method: str, tol: float | None = None) -> DualSolver:
    """Plain cyclic passes over rows that are already shuffled."""
    return DualSolver(
        restricted=method,
        restricted_tol=tol,
        shrinking=False,
        shuffle=False,
        acceleration=False,
        certify=False,
    )


def measure(
    split: datasets.Dataset,
    label: str,
    C: float = 1.0,
    passes: Sequence[int] = PASSES,
    repeats: int = REPEATS,
) -> dict[str, tuple[float, float]]:
    """Accuracy in per cent and CPU seconds of a method on one split, by number of passes."""
    problem = make_problem(split.X_train, split.y_train, C=C)
    found: dict[str, tuple[float, float]] = {}
    for n in passes:
        fastest = np.inf
        for _ in range(repeats):
            start = time.process_time()
            solution = few_passes(METHODS[label]).solve(problem, max_iter=n)
            fastest = min(fastest, time.process_time() - start)
        score = common.accuracy(split.X_test, split.y_test, solution.coef)
        found[str(n)] = (100 * score, fastest)
    return found


def as_printed(split: datasets.Dataset, label: str, C: float = 1.0) -> dict[str, float]:
    """Accuracy in per cent of algorithm 1 as printed on one split, by number of passes."""
    method, settings = PRINTED[label]
    machine = DualDecomposition(split.X_train, split.y_train, C, method, shuffle=False, **settings)
    found = {}
    while machine.done < PASSES[-1]:
        machine.epoch()
        if machine.done in PASSES:
            score = common.accuracy(split.X_test, split.y_test, machine.coef)
            found[str(machine.done)] = 100 * score
    return found


def tests(scores: Measured, n: int) -> list[dict[str, Any]]:
    """Paired tests of every two methods after n passes."""
    return [
        {"passes": n, "first": a, "second": b}
        | common.paired_test(scores[a][n], scores[b][n]).__dict__
        for a, b in combinations(scores, 2)
    ]


def report(name: str, theirs: str, scores: Measured, seconds: Measured) -> str:
    """The table of one data set beside that of one of the paper's, and the tests."""
    published = PAPER[theirs]
    rows = []
    for n in PASSES:
        base = np.mean(seconds["Sort"][n])
        for label in scores:
            values, mine = scores[label][n], np.mean(seconds[label][n])
            row = [label, n, f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"]
            if label in COLUMNS:
                printed, sort = published[n][COLUMNS.index(label)], published[n][0]
                row += [f"{printed[0]:.2f} ± {printed[1]:.2f}"]
                row += [f"{np.mean(values) - printed[0]:+.2f}", f"{mine:.3f}"]
                row += [f"{mine / base:.2f}", f"{printed[2] / sort[2]:.2f}"]
            else:
                row += [None, None, f"{mine:.3f}", f"{mine / base:.2f}", None]
            rows.append(row)
    header = ["method", "passes", "accuracy %", f"paper's {theirs} %", "difference", "CPU s"]
    header += ["time / Sort", "paper's ratio"]
    text = f"# Table II, {name}, {len(values)} splits\n\n" + common.markdown_table(header, rows)
    shown = [
        [f"{r['first']} - {r['second']}", r["passes"], f"{r['mean']:+.3f}",
         f"{r['wins']} / {r['losses']}", f"{r['p']:.4f}"]
        for n in PASSES
        for r in tests(scores, n)
    ]  # fmt: skip
    header = ["difference of accuracies", "passes", "mean, points", "higher / lower", "p"]
    return text + "\n" + common.markdown_table(header, shown)


def dearest_in_the_paper() -> float:
    """The largest ratio of its own table's seconds of an exact and the cheapest partial method."""
    return max(
        max(sort[2], pivot[2]) / min(smo[2], wolfe[2])
        for by_passes in PAPER.values()
        for sort, pivot, _, smo, wolfe in by_passes.values()
    )


def report_printed(name: str, printed: Measured) -> str:
    """Means and deviations of algorithm 1 as printed, by passes."""
    rows = [
        [label, *(f"{np.mean(by[n]):.2f} ± {np.std(by[n], ddof=1):.2f}" for n in PASSES)]
        for label, by in printed.items()
    ]
    header = ["method", *(f"accuracy % after {n}" for n in PASSES)]
    text = f"# Algorithm 1 as printed, {name}\n\n" + common.markdown_table(header, rows)
    return text + "\n"


@dataclass
class Table:
    """All that was measured on one data set."""

    scores: Measured
    seconds: Measured
    printed: Measured  # accuracies of algorithm 1 as printed
    again: Measured  # accuracies on ten other splits


def ahead(scores: Measured, first: str, second: str, n: int) -> bool:
    """Whether a method is more accurate than another after n passes."""
    found = common.paired_test(scores[first][n], scores[second][n])
    n_splits = len(scores[first][n])
    enough = found.wins == n_splits if n_splits < 6 else found.p < SIGNIFICANT
    return found.mean > 0 and enough


def lead(name: str, scores: Measured, first: str, second: str, n: int) -> str:
    """How far ahead."""
    found = common.paired_test(scores[first][n], scores[second][n])
    return f"{name}, {first} - {second} after {n}: {found.mean:+.2f} points (p = {found.p:.3f})"


def make_claims(tables: dict[str, Table]) -> list[Claim]:
    """What the paper says of table II, from accuracies, paired tests and times."""
    smo, last = ("SMO, one cycle", f"SMO to {SMO_VIOLATION:g}"), "Frank-Wolfe"
    before = [("Sort", other) for other in (*smo, last)]
    costs, newton = {}, {}
    for name, t in tables.items():
        means = {label: float(np.mean(t.seconds[label][PASSES[-1]])) for label in METHODS}
        for label in ("Sort", "Pivot"):
            costs[f"{label} on {name}"] = means[label] / min(means[b] for b in PARTIAL)
        newton[name] = means["Newton"] / min(means[b] for b in PARTIAL)

    def compared(
        claim: str, pairs: Sequence[tuple[str, str]], passes: Sequence[int], check: str
    ) -> Claim:
        cells = [(name, t.printed, a, b, n) for name, t in tables.items() for n in passes
                 for a, b in pairs]  # fmt: skip
        return Claim(
            "Blondel, table II",
            claim,
            "as printed: " + "; ".join(lead(*cell) for cell in cells),
            verdict(ahead(*cell[1:]) for cell in cells),
            check,
        )

    def in_our_engine(pairs: Sequence[tuple[str, str]]) -> str:
        cells = [(name, t.scores, a, b, 1) for name, t in tables.items() for a, b in pairs]
        return "in our engine: " + "; ".join(lead(*cell) for cell in cells)

    most = dearest_in_the_paper()
    return [
        compared(_FIRST, before, (1,), in_our_engine([("Sort", other) for other in PARTIAL])),
        compared(_ORDER, [(one, last) for one in smo], (1,), in_our_engine([PARTIAL])),
        compared(_LATER, before, PASSES[1:], _on_other_splits(tables)),
        Claim(
            "Blondel, table II",
            _COST,
            "seconds over those of the cheaper of SMO and Frank-Wolfe: "
            + ", ".join(f"{label} {cost:.2f}" for label, cost in costs.items())
            + f" (counted as holding up to {most:.2f}, the paper's own largest)",
            verdict(cost <= most for cost in costs.values()),
            check="Newton, exact and not the paper's, costs "
            + ", ".join(f"{ratio:.2f} on {name}" for name, ratio in newton.items()),
        ),
    ]


def _on_other_splits(tables: dict[str, Table]) -> str:
    """Which leads are there on both ten splits, which on one ten, and which as printed."""
    cells = [(name, n, b) for name in tables for n in PASSES[1:] for b in PARTIAL]
    one = {key for key in cells if ahead(tables[key[0]].scores, "Sort", key[2], key[1])}
    other = {key for key in cells if ahead(tables[key[0]].again, "Sort", key[2], key[1])}
    return (
        f"in our engine, of {len(cells)} leads of Sort, {len(one)} are there on these splits, "
        f"{len(other)} on ten others, and {len(one & other)} on both"
    )


def measure_all(study: Study, data: datasets.Dataset, n_splits: int, repeats: int) -> Table | None:
    """One data set; None unless all of it is there."""

    def cells(
        splits: Sequence[datasets.Dataset], labels: Iterable[str], what: str, measure: Callable
    ) -> list[dict[str, Any]]:
        return [
            {
                label: study.cell(
                    f"{data.name} split {i} {label}, {what}", lambda s=s, m=label: measure(s, m)
                )
                for label in labels
            }
            for i, s in enumerate(splits)
        ]

    splits = common.stratified_splits(data, n_splits)
    others = common.stratified_splits(data, n_splits, seed=1)
    runs = cells(splits, METHODS, f"{repeats} runs", lambda s, m: measure(s, m, repeats=repeats))
    printed = cells(splits, PRINTED, "as printed", as_printed)
    again = cells(others, ("Sort", *PARTIAL), "other splits", lambda s, m: measure(s, m, repeats=1))
    if any(None in cell.values() for cell in (*runs, *printed, *again)):
        return None

    def by_passes(found: list[dict[str, Any]], pick: Callable[[Any], float]) -> Measured:
        return {m: {n: [pick(cell[m][str(n)]) for cell in found] for n in PASSES} for m in found[0]}

    return Table(
        by_passes(runs, lambda pair: pair[0]),
        by_passes(runs, lambda pair: pair[1]),
        by_passes(printed, float),
        by_passes(again, lambda pair: pair[0]),
    )


def experiment(study: Study) -> None:
    tables: dict[str, Table] = {}
    text = ""
    for plain in DATA:
        data = datasets.load_published(plain)
        found = measure_all(study, data, *((3, 1) if study.quick else (10, REPEATS)))
        if found is not None:
            tables[data.name] = found
            text += report(data.name, THEIRS[plain], found.scores, found.seconds) + "\n"
            text += report_printed(data.name, found.printed)
    content = {
        "accuracy": {name: t.scores for name, t in tables.items()},
        "seconds": {name: t.seconds for name, t in tables.items()},
        "printed": {name: t.printed for name, t in tables.items()},
        "other_splits": {name: t.again for name, t in tables.items()},
        "tests": {
            name: [r for n in PASSES for r in tests(t.scores, n)] for name, t in tables.items()
        },
    }
    study.write(text, content, make_claims(tables))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
