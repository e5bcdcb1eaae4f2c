"""Blondel et al. 2014, table II: accuracy after one, three and five passes on news20.

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
from collections.abc import Sequence
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
PAPER = {  # News20: accuracy in per cent, its standard deviation, seconds
    1: [(83.51, 1.04, 0.33), (83.85, 0.87, 0.31), (83.10, 0.76, 0.31), (82.55, 1.38, 0.31),
        (81.23, 1.89, 0.27)],
    3: [(89.20, 0.35, 0.91), (89.12, 0.39, 0.90), (89.10, 0.47, 0.94), (88.87, 0.50, 0.96),
        (88.01, 0.42, 0.80)],
    5: [(89.83, 0.21, 1.48), (89.87, 0.24, 1.47), (89.81, 0.23, 1.57), (89.63, 0.13, 1.52),
        (89.14, 0.51, 1.41)],
}  # fmt: skip
REPEATS = 3

SIGNIFICANT = 0.05
SMO_BEFORE_FRANK_WOLFE = "after one pass, SMO is more accurate than Frank-Wolfe"
NO_MORE = 1.05  # times the seconds of the cheapest partial method

Measured = dict[str, dict[int, list[float]]]  # method, passes, one value per split

SETUP = f"""
The paper's protocol, on News20 alone of its four data sets: C = 1, no intercept, ten stratified
splits into 4/5 and 1/5 (reduced: three), rows shuffled once and visited cyclically, bisection with
tau = 1e-3, one cycle of SMO, one Frank-Wolfe step. Every method gets the same rows
in the same order, in one engine; our default, an exact Newton method, is added. Our news20 is the
LIBSVM version with unit rows, the paper's has more features (table I): the order of the methods can
be compared, the accuracies only roughly. A method is more accurate than another if Wilcoxon's
signed-rank test over the splits, two-sided, gives p below {SIGNIFICANT:g} (with fewer than six
splits: if it is on all of them); ten splits cannot give a p below 0.002. It costs no more up to
{NO_MORE:g} times the seconds of the cheaper partial method, after {PASSES[-1]} passes; seconds are
those of the fastest of {REPEATS} runs. Beside them stands the paper's algorithm 1 as it is printed,
in its own variables (benchmarks/baselines/dual_decomposition.py): bisection from the bracket [0, U]
without scaling, and SMO in one cycle through the classes as they are numbered, or in cycles until
the violation of the example is at most {SMO_VIOLATION:g}, since the paper does not say how many it
makes. (In the first pass an example has no dual yet: a cycle that ends with the true class, as our
engine's does, makes one step, which is Frank-Wolfe's. In the paper's order the classes behind it
follow.)
"""
REASONS = {
    "exact methods are the most accurate after three and five passes too": """
    all methods go towards the same optimum; what an exact solution gains in the first pass the
    others make up for in the next ones.
    """,
    "exact methods cost no more than partial ones": """
    Sort orders, after one vector pass, the classes that may be positive, and Pivot partitions
    without branches; what is left still costs more than a step of SMO or Frank-Wolfe where the
    rows are short and the classes few. Newton is exact too: its ratio shows what exactness costs.
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
    C: float = 1.0,
    passes: Sequence[int] = PASSES,
    repeats: int = REPEATS,
) -> dict[str, dict[str, tuple[float, float]]]:
    """Accuracy in per cent and CPU seconds of every method and number of passes on one split."""
    problem = make_problem(split.X_train, split.y_train, C=C)
    found: dict[str, dict[str, tuple[float, float]]] = {label: {} for label in METHODS}
    for n in passes:
        fastest = dict.fromkeys(METHODS, np.inf)
        scores = {}
        for repeat in range(repeats):
            for label, method in METHODS.items():  # in turns: the machine may be busy
                start = time.process_time()
                solution = few_passes(method).solve(problem, max_iter=n)
                fastest[label] = min(fastest[label], time.process_time() - start)
                if repeat == 0:
                    scores[label] = common.accuracy(split.X_test, split.y_test, solution.coef)
        for label in METHODS:
            found[label][str(n)] = (100 * scores[label], fastest[label])
    return found


def as_printed(split: datasets.Dataset) -> dict[str, dict[str, float]]:
    """Accuracies in per cent of algorithm 1 as printed on one split, by passes."""
    found: dict[str, dict[str, float]] = {}
    for label, (method, settings) in PRINTED.items():
        machine = DualDecomposition(
            split.X_train, split.y_train, 1.0, method, shuffle=False, **settings
        )
        found[label] = {}
        while machine.done < PASSES[-1]:
            machine.epoch()
            if machine.done in PASSES:
                accuracy = common.accuracy(split.X_test, split.y_test, machine.coef)
                found[label][str(machine.done)] = 100 * accuracy
    return found


def report_printed(printed: Measured) -> str:
    """Means and deviations by passes."""
    rows = [
        [label, *(f"{np.mean(by[n]):.2f} ± {np.std(by[n], ddof=1):.2f}" for n in PASSES)]
        for label, by in printed.items()
    ]
    header = ["method", *(f"accuracy % after {n}" for n in PASSES)]
    return "\n# Algorithm 1 as printed\n\n" + common.markdown_table(header, rows)


def claims_printed(printed: Measured, scores: Measured) -> list[Claim]:
    """SMO between Sort and Frank-Wolfe after one pass, however long its cycles go on."""
    cycle, to, last = "SMO, one cycle", f"SMO to {SMO_VIOLATION:g}", "Frank-Wolfe"

    def compared(pairs: Sequence[tuple[str, str]]) -> tuple[str, list[bool]]:
        found = {pair: common.paired_test(*(printed[label][1] for label in pair)) for pair in pairs}
        text = (f"{a} - {b}: {t.mean:+.2f} points (p = {t.p:.3f})" for (a, b), t in found.items())
        return "; ".join(text), [t.mean > 0 and t.p < SIGNIFICANT for t in found.values()]

    above, is_above = compared([(cycle, last), (to, last)])
    below, is_below = compared([("Sort", cycle), ("Sort", to)])
    ours = common.paired_test(scores["SMO"][1], scores[last][1])
    return [
        Claim(
            "Blondel, table II",
            SMO_BEFORE_FRANK_WOLFE,
            f"as printed, {above}; in our engine, whose cycles end with the true class: "
            f"{ours.mean:+.2f} points (p = {ours.p:.3f}), which does not count",
            verdict(is_above),
        ),
        Claim(
            "Blondel, table II",
            "after one pass, Sort is more accurate than SMO as printed, in one cycle and until the "
            f"violation is at most {SMO_VIOLATION:g}",
            below,
            verdict(is_below),
        ),
    ]


def tests(scores: Measured, n: int) -> list[dict[str, Any]]:
    """Paired tests of every two methods after n passes."""
    return [
        {"passes": n, "first": a, "second": b}
        | common.paired_test(scores[a][n], scores[b][n]).__dict__
        for a, b in combinations(METHODS, 2)
    ]


def report(scores: Measured, seconds: Measured) -> tuple[str, list[dict[str, Any]]]:
    """The table beside the paper's, the tests, and all tests as records."""
    passes = list(next(iter(scores.values())))
    rows = []
    for n in passes:
        base = np.mean(seconds["Sort"][n])
        for place, label in enumerate(METHODS):
            values, paper = scores[label][n], PAPER.get(n)
            theirs = paper[place] if paper and place < len(paper) else None
            rows.append(
                [
                    label,
                    n,
                    f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}",
                    f"{theirs[0]:.2f} ± {theirs[1]:.2f}" if theirs else None,
                    f"{np.mean(values) - theirs[0]:+.2f}" if theirs else None,
                    f"{np.mean(seconds[label][n]):.3f}",
                    f"{np.mean(seconds[label][n]) / base:.2f}",
                    f"{theirs[2] / paper[0][2]:.2f}" if theirs and paper else None,
                ]
            )
    header = [
        "method",
        "passes",
        "accuracy %",
        "paper %",
        "difference",
        "CPU s",
        "time / Sort",
        "paper's ratio",
    ]
    text = f"# Table II, news20, {len(values)} splits\n\n" + common.markdown_table(header, rows)
    records = [record for n in passes for record in tests(scores, n)]
    shown = [
        [f"{r['first']} - {r['second']}", r["passes"], f"{r['mean']:+.3f}",
         f"{r['wins']} / {r['losses']}", f"{r['p']:.4f}"]
        for r in records
    ]  # fmt: skip
    header = ["difference of accuracies", "passes", "mean, points", "higher / lower", "p"]
    return text + "\n" + common.markdown_table(header, shown), records


def make_claims(scores: Measured, seconds: Measured) -> list[Claim]:
    """What the paper says of table II, from accuracies, paired tests and times."""
    n_splits = len(scores["Sort"][PASSES[0]])

    def ahead(first: str, second: str, n: int) -> bool:
        found = common.paired_test(scores[first][n], scores[second][n])
        enough = found.wins == n_splits if n_splits < 6 else found.p < SIGNIFICANT
        return found.mean > 0 and enough

    def lead(first: str, second: str, n: int) -> str:
        found = common.paired_test(scores[first][n], scores[second][n])
        return f"{first} - {second} after {n}: {found.mean:+.2f} points (p = {found.p:.3f})"

    pairs = [(a, b) for a in ("Sort", "Pivot") for b in ("SMO", "Frank-Wolfe")]
    means = {label: float(np.mean(seconds[label][PASSES[-1]])) for label in METHODS}
    cheapest = min(means["SMO"], means["Frank-Wolfe"])
    costs = {label: means[label] / cheapest for label in ("Sort", "Pivot", "Newton")}
    return [
        Claim(
            "Blondel, table II",
            "after one pass, exact methods are more accurate than SMO and Frank-Wolfe",
            "; ".join(lead("Sort", other, 1) for other in ("SMO", "Frank-Wolfe")),
            verdict(ahead(a, b, 1) for a, b in pairs),
        ),
        Claim(
            "Blondel, table II",
            "exact methods are the most accurate after three and five passes too",
            "; ".join(lead("Sort", o, n) for n in PASSES[1:] for o in ("SMO", "Frank-Wolfe")),
            verdict(ahead(a, b, n) for n in PASSES[1:] for a, b in pairs),
        ),
        Claim(
            "Blondel, table II",
            "exact methods cost no more than partial ones",
            "seconds over those of the cheaper of SMO and Frank-Wolfe: "
            + ", ".join(f"{label} {cost:.2f}" for label, cost in costs.items())
            + " (Newton is ours)",
            verdict(cost <= NO_MORE for cost in costs.values()),
        ),
    ]


def experiment(study: Study) -> None:
    repeats = 1 if study.quick else REPEATS
    splits = common.stratified_splits(datasets.load("news20"), 3 if study.quick else 10)
    cells = [
        study.cell(f"split {i}, {repeats} runs", lambda s=s: measure(s, repeats=repeats))
        for i, s in enumerate(splits)
    ]
    done = [cell for cell in cells if cell is not None]
    scores, seconds = (
        {m: {n: [cell[m][str(n)][what] for cell in done] for n in PASSES} for m in METHODS}
        for what in (0, 1)
    )
    text, records = report(scores, seconds)
    content = {"accuracy": scores, "seconds": seconds, "tests": records}
    made = make_claims(scores, seconds)
    cells = [
        study.cell(f"split {i}, as printed", lambda s=s: as_printed(s))
        for i, s in enumerate(splits)
    ]
    if None not in cells:
        printed = {m: {n: [cell[m][str(n)] for cell in cells] for n in PASSES} for m in PRINTED}
        text += report_printed(printed)
        content["printed"] = printed
        made += claims_printed(printed, scores)
    study.write(text, content, made)


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
