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
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks import datasets
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
COLUMNS = ("Sort", "Pivot", "Bisection", "SMO", "Frank-Wolfe")  # of PAPER

Measured = dict[str, dict[int, list[float]]]  # method, passes, one value per split

SETUP = f"""
The paper's protocol on {", ".join(DATA)}, in the places of News20, RCV1 and Sector (Amazon7 is not
at hand; where scikit-learn has the 18,846 documents of News20 on the machine, they are used):
C = 1, no intercept, ten stratified splits into 4/5 and 1/5 (reduced: three), rows shuffled once and
visited cyclically, bisection with tau = 1e-3, one cycle of SMO, one Frank-Wolfe step. Every method
gets the same rows in the same order, in one engine; our default, an exact Newton method, is added
and decides nothing. Accuracies can be compared only roughly with the paper's (table I), their order
can. A method is more accurate than another if Wilcoxon's signed-rank test over the splits,
two-sided, gives p below {SIGNIFICANT:g} (with fewer than six splits: if it is on all of them); ten
splits cannot give a p below 0.002. It costs no more up to the largest ratio to the cheaper partial
method that the paper's own table has, after {PASSES[-1]} passes; seconds are those of the fastest
of {REPEATS} runs.
"""
REASONS = {
    "after one pass, SMO is more accurate than Frank-Wolfe": """
    in the first pass an example's dual is zero when it is visited, so that SMO's cycle has one pair
    in it, and the best step for that pair is Frank-Wolfe's step: the two are one method. The
    difference in the paper cannot come from the first cycle of SMO as its supplement describes it;
    it may have made several, or used another order of the rows.
    """,
    "exact methods are the most accurate after three and five passes too": """
    all methods go towards the same optimum; what an exact solution gains in the first pass the
    others make up for in the next ones.
    """,
    "exact methods cost no more than partial ones": """
    Sort orders and Pivot partitions all classes at every visit, which costs more here than a step
    of SMO or Frank-Wolfe. Newton is exact too: its ratio shows what exactness as such costs.
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


def make_claims(scores: dict[str, Measured], seconds: dict[str, Measured]) -> list[Claim]:
    """What the paper says of table II, from accuracies, paired tests and times."""

    def ahead(name: str, first: str, second: str, n: int) -> bool:
        found = common.paired_test(scores[name][first][n], scores[name][second][n])
        n_splits = len(scores[name][first][n])
        enough = found.wins == n_splits if n_splits < 6 else found.p < SIGNIFICANT
        return found.mean > 0 and enough

    def leads(first: str, seconds: Sequence[str], passes: Sequence[int]) -> str:
        tested = [
            (name, n, other, common.paired_test(scores[name][first][n], scores[name][other][n]))
            for name in scores
            for n in passes
            for other in seconds
        ]
        return "; ".join(
            f"{name}, {first} - {other} after {n}: {t.mean:+.2f} points (p = {t.p:.3f})"
            for name, n, other, t in tested
        )

    partial = ("SMO", "Frank-Wolfe")
    pairs = [(name, a, b) for name in scores for a in ("Sort", "Pivot") for b in partial]
    costs = {}
    for name in seconds:
        means = {label: float(np.mean(seconds[name][label][PASSES[-1]])) for label in COLUMNS}
        for label in ("Sort", "Pivot"):
            costs[f"{label} on {name}"] = means[label] / min(means[other] for other in partial)
    most = dearest_in_the_paper()
    return [
        Claim(
            "Blondel, table II",
            "after one pass, exact methods are more accurate than SMO and Frank-Wolfe",
            leads("Sort", partial, (1,)),
            verdict(ahead(name, a, b, 1) for name, a, b in pairs),
        ),
        Claim(
            "Blondel, table II",
            "after one pass, SMO is more accurate than Frank-Wolfe",
            leads("SMO", ("Frank-Wolfe",), (1,)),
            verdict(ahead(name, "SMO", "Frank-Wolfe", 1) for name in scores),
        ),
        Claim(
            "Blondel, table II",
            "exact methods are the most accurate after three and five passes too",
            leads("Sort", partial, PASSES[1:]),
            verdict(ahead(name, a, b, n) for n in PASSES[1:] for name, a, b in pairs),
        ),
        Claim(
            "Blondel, table II",
            "exact methods cost no more than partial ones",
            "seconds over those of the cheaper of SMO and Frank-Wolfe: "
            + ", ".join(f"{label} {cost:.2f}" for label, cost in costs.items())
            + f" (counted as holding up to {most:.2f}, the paper's own largest)",
            verdict(cost <= most for cost in costs.values()),
        ),
    ]


def experiment(study: Study) -> None:
    repeats = 1 if study.quick else REPEATS
    scores: dict[str, Measured] = {}
    seconds: dict[str, Measured] = {}
    text = ""
    for plain in DATA:
        data = datasets.load_published(plain)
        name = data.name
        splits = common.stratified_splits(data, 3 if study.quick else 10)
        cells = [
            {
                label: study.cell(
                    f"{name} split {i} {label}, {repeats} runs",
                    lambda s=s, m=label: measure(s, m, repeats=repeats),
                )
                for label in METHODS
            }
            for i, s in enumerate(splits)
        ]
        done = [cell for cell in cells if None not in cell.values()]
        if done:
            scores[name], seconds[name] = (
                {m: {n: [cell[m][str(n)][what] for cell in done] for n in PASSES} for m in METHODS}
                for what in (0, 1)
            )
            text += report(name, THEIRS[plain], scores[name], seconds[name]) + "\n"
    records = {name: [t for n in PASSES for t in tests(scores[name], n)] for name in scores}
    content = {"accuracy": scores, "seconds": seconds, "tests": records}
    study.write(text, content, make_claims(scores, seconds))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
