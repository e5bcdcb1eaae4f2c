"""Blondel et al. 2014, figures 3 and 4: the restricted problem solved exactly or by bisection.

    python -m benchmarks.papers.blondel_figures3_4 [--quick]

Figure 3: relative difference of the dual objective and test accuracy against time, for Sort, Pivot
and bisection with tolerances tau = 1e-1 ... 1e-5, on news20 with C = 1. Figure 4: test accuracy
against C. The paper averages over ten splits and does not say how long it trains for figure 4; here
figure 3 is the first split, figure 4 the mean of three splits after 5 and after 50 passes. Data as
in `blondel_table2`; a fresh random order per pass, the same for every method.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import datasets
from benchmarks.papers import common
from benchmarks.papers.trace import Trace, first_below, trace
from benchmarks.passes import make_problem
from polymargin import DualSolver

NAME = "blondel_figures3_4"
TAUS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
METHODS: dict[str, tuple[str, float | None]] = {
    "Sort": ("sort", None),
    "Pivot": ("pivot", None),
} | {f"tau={tau:.0e}": ("bisection", tau) for tau in TAUS}
TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
COSTS = tuple(10.0**power for power in range(-3, 4))
BUDGETS = (5, 50)
PASSES = 100


def settings(label: str) -> DualSolver:
    """Plain passes."""
    method, tau = METHODS[label]
    return DualSolver(
        restricted=method,
        restricted_tol=tau,
        shrinking=False,
        acceleration=False,
        certify=False,
    )


def optimum(X: Any, y: np.ndarray, C: float) -> float:
    """The dual optimum, to about eight digits."""
    problem = make_problem(X, y, C=C)
    return (
        DualSolver(acceleration=False)
        .solve(problem, tol=1e-9, max_iter=20_000, random_state=0)
        .dual
    )


def convergence(split: datasets.Dataset, passes: int, repeats: int) -> dict[str, Trace]:
    """Figure 3's curves at C = 1, each with the fastest times of its repeats."""
    problem = make_problem(split.X_train, split.y_train)
    curves: dict[str, Trace] = {}
    for _ in range(repeats):
        for label in METHODS:
            found = trace(
                settings(label),
                problem,
                max_iter=passes,
                observe=lambda coef: common.accuracy(split.X_test, split.y_test, coef),
            )
            if label in curves:
                found.seconds = np.minimum(found.seconds, curves[label].seconds).tolist()
            curves[label] = found
    return curves


def robustness(
    splits: Sequence[datasets.Dataset], costs: Sequence[float], budgets: Sequence[int]
) -> dict[str, dict[str, list[list[float]]]]:
    """Figure 4's accuracies in per cent: budget, method, C, split."""
    scores = {str(n): {label: [[] for _ in costs] for label in METHODS} for n in budgets}
    for split in splits:
        for place, C in enumerate(costs):
            problem = make_problem(split.X_train, split.y_train, C=C)
            for n in budgets:
                for label in METHODS:
                    coef = settings(label).solve(problem, max_iter=n, random_state=0).coef
                    score = common.accuracy(split.X_test, split.y_test, coef)
                    scores[str(n)][label][place].append(100 * score)
    return scores


def differences(curve: Trace, best: float) -> np.ndarray:
    """Relative differences of the dual objective."""
    return np.abs(np.array(curve.dual) - best) / abs(best)


def report(
    curves: dict[str, Trace],
    best: float,
    scores: dict[str, dict[str, list[list[float]]]],
    costs: Sequence[float],
) -> str:
    """Both figures as tables."""
    rows = []
    for label, curve in curves.items():
        away = differences(curve, best)
        seconds = [first_below(away, target, curve.seconds) for target in TARGETS]
        rows.append(
            [label, *seconds, f"{away[-1]:.1e}", f"{100 * curve.observed[0]:.2f}",
             f"{100 * curve.observed[-1]:.2f}", 1e3 * curve.seconds[-1] / curve.passes[-1]]
        )  # fmt: skip
    last = next(iter(curves.values())).passes[-1]
    header = ["method", *(f"s to {target:.0e}" for target in TARGETS), f"after {last} passes"]
    header += ["accuracy % after 1", f"after {last}", "ms per pass"]
    text = "# Figure 3: relative difference of the dual objective, C = 1\n\n"
    text += common.markdown_table(header, rows)
    for budget, by_method in scores.items():
        text += f"\n# Figure 4: test accuracy in per cent after {budget} passes\n\n"
        rows = [
            [label, *(f"{np.mean(values):.2f}" for values in by_cost)]
            for label, by_cost in by_method.items()
        ]
        text += common.markdown_table(["method", *(f"C={C:g}" for C in costs)], rows)
    return text


def draw(
    curves: dict[str, Trace],
    best: float,
    scores: dict[str, dict[str, list[list[float]]]],
    costs: Sequence[float],
) -> Figure:
    """Figure 3 above, figure 4 below."""
    figure = Figure(figsize=(11, 8), layout="tight")
    (left, right), below = figure.subplots(2, 2)
    for label, curve in curves.items():
        style = "-" if label in ("Sort", "Pivot") else "--"
        left.semilogy(curve.seconds, differences(curve, best), style, label=label)
        right.plot(curve.seconds, curve.observed, style, label=label)
    left.set(xlabel="CPU seconds", ylabel="relative dual objective difference", title="Figure 3")
    right.set(xlabel="CPU seconds", ylabel="test accuracy", title="Figure 3", xscale="log")
    for axes, (budget, by_method) in zip(below, scores.items(), strict=False):
        for label, by_cost in by_method.items():
            style = "-o" if label in ("Sort", "Pivot") else "--"
            axes.semilogx(costs, np.mean(by_cost, axis=1), style, label=label)
        axes.set(xlabel="C", ylabel="test accuracy, %", title=f"Figure 4, {budget} passes")
    left.legend()
    return figure


def experiment(quick: bool, folder: Path) -> None:
    splits = common.stratified_splits(datasets.load("news20"), 1 if quick else 3)
    costs, budgets = (COSTS[::3], BUDGETS[:1]) if quick else (COSTS, BUDGETS)
    best = optimum(splits[0].X_train, splits[0].y_train, 1.0)
    curves = convergence(splits[0], 30 if quick else PASSES, 1 if quick else 3)
    scores = robustness(splits, costs, budgets)
    content = {
        "optimum": best,
        "figure3": {label: curve.__dict__ for label, curve in curves.items()},
        "figure4": {"C": costs, "accuracy": scores},
    }
    figure = draw(curves, best, scores, costs)
    common.write_results(NAME, report(curves, best, scores, costs), content, figure, folder)


if __name__ == "__main__":
    raise SystemExit(common.run(experiment, __doc__))
