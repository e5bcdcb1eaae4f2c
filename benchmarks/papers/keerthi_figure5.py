"""Keerthi et al. 2008, figure 5: accuracy against time, one-vs-rest and both multiclass losses.

    python -m benchmarks.papers.keerthi_figure5 [--quick|--full]

The paper: mnist and cover, C = 1, all three solved by the sequential dual method. Here mnist, and
in cover's place letter, satimage and usps, with ``schedule="sdm"``; 120 s of CPU time a curve on
mnist and usps, ``--quick`` 8 s; 3 s on the others. Predictions are not timed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import datasets
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from benchmarks.papers.trace import certified_optimum, trace
from benchmarks.passes import make_problem
from polymargin import DualSolver

NAME = "keerthi_figure5"
DATA = ("letter", "satimage", "usps", "mnist")
CHECKED = ("letter", "satimage", "usps")  # with another seed, and on other splits
LARGE = ("mnist", "usps", "covtype")
LIMITS = {"small": 3.0, "large, quick": 8.0, "large": 120.0}  # CPU seconds a curve
LOSSES = {
    "one-vs-rest": "one_vs_rest",
    "Crammer-Singer": "crammer_singer",
    "Weston-Watkins": "weston_watkins",
}
STEADY = 0.005
FINAL = 1e-2  # relative gap from which on an accuracy counts as final
NEARLY = 2.0  # times of the slowest over the fastest that count as nearly the same

SETUP = f"""
All three losses by the sequential dual method (`schedule="sdm"`, cooling), C = 1, on mnist and, in
cover's place, on letter, satimage and usps (cover itself too where scikit-learn has it on the
machine). A curve gets {LIMITS["large"]:g} s of CPU time on mnist, usps and cover (reduced:
{LIMITS["large, quick"]:g} s), {LIMITS["small"]:g} s on the others; predictions are not timed. An
accuracy is steady from when on it stays within {100 * STEADY:g} points of the last one, and final
if the curve ends at a relative gap of {FINAL:g} or less; others decide nothing. The paper shows
curves only.
"""
_SAME_TIME = "all three take nearly the same time to their steady accuracy"
_BETTER = "the final accuracies of Crammer-Singer and Weston-Watkins are better than one-vs-rest's"
REASONS = {
    _SAME_TIME: """
    the data: mnist, which the paper has too, is as it says; the others stand in for cover, and on
    the small ones a steady accuracy takes a few passes, of which one more or less is a large part.
    The implementation: a pass of each loss costs about the same. Noise: another order of the rows
    moves these times; the check has their spread.
    """,
    _BETTER: """
    the data: the paper's statement is about mnist and cover, and usps is neither. The
    implementation: all three curves end at their certified optimum, so that no solver decides.
    Noise: the check repeats it on ten other splits. C is the same for all three here; with C tuned
    for each, see tables 4.2 and 4.3.
    """,
}


def measure(
    data: datasets.Dataset, loss: str, seconds: float, seed: int = 0
) -> dict[str, list[float]]:
    """Accuracy of one loss on its way."""
    method = "auto" if loss == "one_vs_rest" else "active_set"
    found = trace(
        DualSolver(restricted=method, schedule="sdm", cooling=10.0, certify=False),
        make_problem(data.X_train, data.y_train, loss),
        max_iter=20_000,
        seconds=seconds,
        seed=seed,
        spacing=0.05,
        observe=lambda coef: common.accuracy(data.X_test, data.y_test, coef),
    )
    gap = found.gaps[-1] / found.primal[-1]
    return {"seconds": found.seconds, "accuracy": found.observed, "last_gap": [float(gap)]}


def on_splits(data: datasets.Dataset, n_splits: int) -> dict[str, list[float]]:
    """Accuracies of the losses at their optima, in per cent, on splits of both parts together."""
    found: dict[str, list[float]] = {label: [] for label in LOSSES}
    for split in common.stratified_splits(data, n_splits):
        for label, loss in LOSSES.items():
            problem = make_problem(split.X_train, split.y_train, loss)
            coef = certified_optimum(problem, tol=1e-3, seconds=LIMITS["small"]).coef
            found[label].append(100 * common.accuracy(split.X_test, split.y_test, coef))
    return found


def steady_seconds(curve: dict[str, list[float]]) -> float:
    """From when on the accuracy stays within `STEADY` of its last value."""
    away = np.abs(np.array(curve["accuracy"]) - curve["accuracy"][-1]) > STEADY
    last = np.flatnonzero(away)
    return curve["seconds"][last[-1] + 1 if last.size else 0]


Curves = dict[str, dict[str, dict[str, list[float]]]]


def is_final(curve: dict[str, list[float]]) -> bool:
    """Whether a curve ended near its optimum, and not because its time was up."""
    return curve["last_gap"][0] <= FINAL


def make_claims(
    found: Curves, again: Curves | None = None, splits: dict[str, dict[str, Any]] | None = None
) -> list[Claim]:
    """From the curves; the checks from those of another seed, and from other splits."""
    spreads, better, cut = {}, {}, []
    for name, curves in found.items():
        cut += [f"{label} on {name}" for label, curve in curves.items() if not is_final(curve)]
        if all(is_final(curve) for curve in curves.values()):
            times = [steady_seconds(curve) for curve in curves.values()]
            spreads[name] = max(times) / min(times)
        last = {label: curve["accuracy"][-1] for label, curve in curves.items()}
        for label in ("Crammer-Singer", "Weston-Watkins"):
            if is_final(curves[label]) and is_final(curves["one-vs-rest"]):
                better[f"{label} on {name}"] = 100 * (last[label] - last["one-vs-rest"])
    left = f"; not final when its time was up: {', '.join(cut)}" if cut else ""
    return [
        Claim(
            "Keerthi, figure 5",
            _SAME_TIME,
            "slowest over fastest: "
            + ", ".join(f"{name} {ratio:.1f}" for name, ratio in spreads.items())
            + f" (counted as holding up to {NEARLY:g}){left}",
            verdict(ratio <= NEARLY for ratio in spreads.values()),
            check=_with_another_seed(again or {}),
        ),
        Claim(
            "Keerthi, figure 5",
            _BETTER,
            "points above one-vs-rest: "
            + ", ".join(f"{name} {points:+.2f}" for name, points in better.items())
            + left,
            verdict(points > 0 for points in better.values()),
            check=_on_other_splits(splits or {}),
        ),
    ]


def _with_another_seed(again: Curves) -> str:
    spreads = {}
    for name, curves in again.items():
        times = [steady_seconds(curve) for curve in curves.values()]
        spreads[name] = max(times) / min(times)
    text = ", ".join(f"{name} {ratio:.1f}" for name, ratio in spreads.items())
    return f"slowest over fastest with another seed: {text}" if text else ""


def _on_other_splits(splits: dict[str, dict[str, list[float]]]) -> str:
    seen = []
    for name, scores in splits.items():
        for label in ("Crammer-Singer", "Weston-Watkins"):
            t = common.paired_test(scores[label], scores["one-vs-rest"])
            seen.append(f"{label} on {name} {t.mean:+.2f} points (p = {t.p:.3f})")
    return "at the optimum on other splits: " + ", ".join(seen) if seen else ""


def report(found: Curves) -> str:
    rows: list[list[Any]] = [
        [name, label, f"{100 * curve['accuracy'][0]:.2f}", f"{100 * curve['accuracy'][-1]:.2f}",
         steady_seconds(curve), curve["seconds"][-1], f"{curve['last_gap'][0]:.1e}"]
        for name, curves in found.items()
        for label, curve in curves.items()
    ]  # fmt: skip
    header = ["data", "loss", "accuracy % first", "last", "s to steady", "s in all", "last gap"]
    text = "# Figure 5: accuracy on the way, C = 1\n\n" + common.markdown_table(header, rows)
    text += f"\nSteady: within {100 * STEADY:g} points of the last accuracy from then on. "
    return text + "The paper shows curves only, no numbers.\n"


def draw(found: Curves) -> Figure:
    figure = Figure(figsize=(4 * len(found), 4), layout="tight")
    for axes, (name, curves) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        for (label, curve), style in zip(curves.items(), ("g-", "r-.", "b--"), strict=True):
            axes.semilogx(curve["seconds"], curve["accuracy"], style, label=label)
        top = max(max(curve["accuracy"]) for curve in curves.values())
        axes.set(title=name, xlabel="CPU seconds", ylabel="test accuracy", ylim=(top - 0.15, None))
        axes.legend(fontsize=8)
    return figure


def curves_of(
    study: Study, name: str, data: datasets.Dataset, limit: float, seed: int
) -> dict[str, Any] | None:
    """The three curves; None unless all are there."""
    other = f", seed {seed}" if seed else ""
    curves = {
        label: study.cell(
            f"{name} {loss} {limit:g} s{other}", lambda loss=loss: measure(data, loss, limit, seed)
        )
        for label, loss in LOSSES.items()
    }
    return None if None in curves.values() else curves


def experiment(study: Study) -> None:
    found: Curves = {}
    again: Curves = {}
    splits: dict[str, dict[str, list[float]]] = {}
    for name in (*DATA, *common.cover()):
        size = "small" if name not in LARGE else "large, quick" if study.quick else "large"
        data = common.keerthi_data(name, "csr" if name == "mnist" else "native")
        curves = curves_of(study, name, data, LIMITS[size], 0)
        if curves is not None:
            found[name] = curves
        if name in CHECKED and not study.quick:
            curves = curves_of(study, name, data, LIMITS["small"], 1)
            scores = study.cell(f"{name} ten splits", lambda d=data: on_splits(d, 10))
            if curves is not None and scores is not None:
                again[name], splits[name] = curves, scores
    content = {"curves": found, "another_seed": again, "splits": splits}
    study.write(report(found), content, make_claims(found, again, splits), draw(found))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
