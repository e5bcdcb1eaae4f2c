"""Lapin et al. 2015, table 1 in spirit: top-k accuracies of one-vs-all and top-k SVMs.

    python -m benchmarks.papers.lapin_table1 [--quick|--full]

The paper: Caltech 101 Silhouettes, MIT Indoor 67 and SUN 397 with features that are not at hand.
Here quickdraw345, aloi and clinc150, so only the gains of one method over another can be compared.
lambda = 1 / (n C) is chosen from 1e-5 ... 1e3 by three-fold cross-validation on the training part
and the grid is extended by factors of ten while the best value is at an edge, as in the paper
(which does not say by what measure it chooses: here each column of the table has its own lambda,
chosen by that column's accuracy). Relative duality gap 1e-2, at most 1,000 passes a fit.

``--quick`` validates on one of the folds, takes eight training rows per class of quickdraw345 and
four of aloi, float32, and at most 50 passes a fit; the table shows the gaps. (In float32, lambda of
1e2 and more means a C of 1e-7 and less beside margins of one: the gap is not reached there.)
Of the paper's other baselines, TopPush is in the full version only (its gap is the median class's),
and so is Wsabie++ with a memory of one or two violators ("W++, 1/256"; without: "W++, 0/256"). What
is chosen for Wsabie++, in place of lambda, is its first step; it makes 100 epochs, here 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks import datasets
from benchmarks.baselines.top_push import TopPush
from benchmarks.baselines.wsabie import Wsabie
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from polymargin import DualSolver, Problem, get_loss

NAME = "lapin_table1"
DATA = ("clinc150", "quickdraw345", "aloi")
QUICK_ROWS = {"quickdraw345": 8, "aloi": 4}  # per class
METHODS: dict[str, tuple[str, int | None]] = {
    "SVM OVA": ("one_vs_rest", None),
    "top-1 SVM": ("crammer_singer", None),  # alpha and beta are the same for k = 1
    "top-10 SVM alpha": ("top_k_alpha", 10),
    "top-20 SVM alpha": ("top_k_alpha", 20),
    "top-10 SVM beta": ("top_k_beta", 10),
    "top-20 SVM beta": ("top_k_beta", 20),
}
TOP_PUSH = "TopPush OVA"  # a baseline of the paper; slow, not in the quick version
WSABIE = {"W++, 0/256": 0, "W++, 1/256": 1, "W++, 2/256": 2}  # memory; the others in full only
KS = (1, 2, 3, 4, 5, 10)
POWERS = tuple(range(-5, 4))  # of lambda
FURTHEST = 3  # powers beyond the grid at either end
FOLDS = 3
TOL = 1e-2
PASSES = {True: 50, False: 1000}  # at most, quick and full
EPOCHS = {50: 10, 1000: 100}  # of Wsabie++, by the passes of the others
PAPER_GAINS = {  # top-5 accuracy of top-10 SVM alpha minus top-1 SVM, in points
    "Caltech 101": 84.57 - 81.97,
    "MIT Indoor 67": 94.63 - 93.43,
    "SUN 397": 87.45 - 84.98,
}
PAPER_OVA = {"Caltech 101": 84.57 - 78.89, "MIT Indoor 67": 94.63 - 87.39, "SUN 397": 87.45 - 74.93}

SETUP = f"""
The paper's data come with features that are not at hand: here clinc150, quickdraw345 and aloi, so
that only the gains of one method over another can be compared. lambda = 1 / (n C) is chosen from
1e{POWERS[0]} ... 1e{POWERS[-1]} by {FOLDS}-fold cross-validation on the training part, and the grid
is extended while the best value is at an edge, as in the paper, which does not say by what measure
it chooses: here each column has a lambda of its own, chosen by that column's accuracy. Relative
duality gap {TOL:g}, at most {PASSES[False]:,} passes a fit. The reduced version validates on one of
the folds, takes {QUICK_ROWS["quickdraw345"]} training rows per class of quickdraw345 and
{QUICK_ROWS["aloi"]} of aloi, float32, and at most {PASSES[True]} passes. Of the paper's other
baselines, Wsabie++ has its first step chosen in place of lambda; with a memory of violators it is
in the full version only, and so is TopPush.
"""
_WHY = """
where the column "worst gap" is far above the gap asked for, the limit on passes ended a fit, and
its accuracy is not that of the problem's solution. These are also other data than the paper's, and
the reduced version has few rows of a class.
"""
REASONS = {
    f"top-10 and top-20 SVMs have a better top-{k} accuracy than {other}": _WHY
    for k in (5, 10)
    for other in ("top-1 SVM", "SVM OVA")
}


def top_k_accuracies(scores: np.ndarray, y: np.ndarray, ks: Sequence[int] = KS) -> list[float]:
    """Share of rows with fewer than k scores at or above the label's (ties count against it)."""
    own = scores[np.arange(len(y)), y]
    rank = (scores >= own[:, None]).sum(axis=1)  # 1: alone at the top
    return [float((rank <= k).mean()) for k in ks]


def fit(
    X: Any, y: np.ndarray, n_classes: int, method: str, power: int, passes: int
) -> tuple[np.ndarray, float | None]:
    """Weights (K, d) and the certified gap (none for Wsabie++) for lambda or step = 10^power."""
    if method in WSABIE:
        machine = Wsabie(X, y, 10.0**power, WSABIE[method])
        for _ in range(EPOCHS[passes]):
            machine.epoch()
        return machine.coef, None
    if method == TOP_PUSH:
        return top_push(X, y, 10.0**power, passes)
    loss, top_k = METHODS[method]
    C = 1.0 / (len(y) * 10.0**power)
    problem = Problem(
        X=X, y=y, c=np.full(len(y), C), loss=get_loss(loss, top_k), n_classes=n_classes
    )
    found = DualSolver().solve(problem, tol=TOL, max_iter=passes, random_state=0)
    return found.coef, found.gap


def top_push(X: Any, y: np.ndarray, scale: float, steps: int) -> tuple[np.ndarray, float]:
    """Accelerated steps until the gap of the median class is small, looked at every tenth."""
    method = TopPush(X, y, scale)
    gap = np.inf
    for step in range(1, steps + 1):
        method.epoch()
        if step % 10 == 0 or step == steps:
            primal, dual = method.objectives()
            gap = float(np.median((primal - dual) / primal))
            if gap <= TOL:
                break
    return method.coef, gap


def validate(
    data: datasets.Dataset,
    method: str,
    power: int,
    rows: tuple[np.ndarray, np.ndarray],
    passes: int,
) -> dict[str, Any]:
    """Accuracies on the rows that are left out."""
    train, left = rows
    X, y = data.X_train, data.y_train
    coef, gap = fit(X[train], y[train], data.n_classes, method, power, passes)
    scores = np.asarray(X[left] @ coef.T)
    return {"accuracy": top_k_accuracies(scores, y[left]), "gap": gap}


def test(data: datasets.Dataset, method: str, power: int, passes: int) -> dict[str, Any]:
    """Accuracies on the test part after training on all of the training part."""
    coef, gap = fit(data.X_train, data.y_train, data.n_classes, method, power, passes)
    scores = np.asarray(data.X_test @ coef.T)
    return {"accuracy": top_k_accuracies(scores, data.y_test), "gap": gap}


def fewer_rows(data: datasets.Dataset, per_class: int, seed: int = 0) -> datasets.Dataset:
    """The first rows of every class in a random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.y_train))
    rank = np.empty(len(order), np.int64)
    for code in range(data.n_classes):
        members = order[data.y_train[order] == code]
        rank[members] = np.arange(len(members))
    keep = np.sort(order[rank[order] < per_class])
    return datasets.Dataset(
        data.name, data.X_train[keep], data.y_train[keep], data.X_test, data.y_test
    )


def best_powers(scores: dict[int, np.ndarray]) -> list[int]:
    """Per column the power of lambda with the best mean accuracy; of equals the largest."""
    powers = sorted(scores, reverse=True)
    table = np.array([scores[power] for power in powers])
    return [powers[place] for place in table.argmax(axis=0)]


def search(
    study: Study, data: datasets.Dataset, method: str, folds: Sequence[Any], passes: int
) -> dict[int, np.ndarray]:
    """Mean validation accuracies by power of lambda; extends the grid while an edge is best."""

    def mean(power: int) -> np.ndarray | None:
        cells = [
            study.cell(
                f"{data.name} {len(data.y_train)} rows {method} 1e{power} fold {i} of {FOLDS} "
                f"{passes} passes",
                lambda rows=rows: validate(data, method, power, rows, passes),
            )
            for i, rows in enumerate(folds)
        ]
        if None in cells:
            return None
        return np.mean([cell["accuracy"] for cell in cells], axis=0)

    scores = {power: mean(power) for power in POWERS}
    if any(value is None for value in scores.values()):
        return {}
    for step, last in ((1, POWERS[-1] + FURTHEST), (-1, POWERS[0] - FURTHEST)):
        edge = (max if step > 0 else min)(scores)
        while edge in best_powers(scores) and edge != last:
            edge += step
            value = mean(edge)
            if value is None:
                return {}
            scores[edge] = value
    return scores


def evaluate(study: Study, data: datasets.Dataset, passes: int) -> dict[str, dict[str, Any]]:
    """Every method on one data set: the table's row, and the powers it was chosen with."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    folds = list(splitter.split(np.zeros(len(data.y_train)), data.y_train))
    rows: dict[str, dict[str, Any]] = {}
    for method in (*METHODS, *list(WSABIE)[:1]) if study.quick else (*METHODS, TOP_PUSH, *WSABIE):
        scores = search(study, data, method, folds[:1] if study.quick else folds, passes)
        if not scores:
            continue
        chosen = best_powers(scores)
        tested = {
            power: study.cell(
                f"{data.name} {len(data.y_train)} rows {method} 1e{power} test {passes} passes",
                lambda m=method, p=power: test(data, m, p, passes),
            )
            for power in dict.fromkeys(chosen)
        }
        if None in tested.values():
            continue
        rows[method] = {
            "accuracy": [100 * tested[power]["accuracy"][c] for c, power in enumerate(chosen)],
            "power": chosen,
            "worst_gap": max(
                (cell["gap"] for cell in tested.values() if cell["gap"] is not None), default=None
            ),
            "tried": [min(scores), max(scores)],
        }
    return rows


Found = dict[str, dict[str, dict[str, Any]]]


def gains(found: Found, method: str, other: str, k: int) -> dict[str, float]:
    """Points of top-k accuracy of one method above another's, by data set."""
    place = KS.index(k)
    return {
        name: rows[method]["accuracy"][place] - rows[other]["accuracy"][place]
        for name, rows in found.items()
        if method in rows and other in rows
    }


def make_claims(found: Found) -> list[Claim]:
    paper = "Lapin, table 1"
    top = [m for m in METHODS if METHODS[m][1]]
    claims = []
    for other in ("top-1 SVM", "SVM OVA"):
        for k in (5, 10):
            cells = [g for m in top for g in gains(found, m, other, k).values()]
            if cells:
                claims.append(
                    Claim(
                        paper,
                        f"top-10 and top-20 SVMs have a better top-{k} accuracy than {other}",
                        f"in {sum(g > 0 for g in cells)} of {len(cells)} cases, by "
                        f"{min(cells):+.2f} to {max(cells):+.2f} points",
                        verdict(g > 0 for g in cells),
                    )
                )
    one = [g for m in top for g in gains(found, m, "top-1 SVM", 1).values()]
    if one:
        claims.append(
            Claim(
                paper,
                "this costs top-1 accuracy in some cases and raises it in others",
                f"top-1 accuracy above top-1 SVM's: {min(one):+.2f} to {max(one):+.2f} points, "
                f"higher in {sum(g > 0 for g in one)} of {len(one)} cases",
                verdict([min(one) < 0, max(one) > 0]),
            )
        )
    return claims


def report(found: Found, sizes: dict[str, int]) -> str:
    text = ""
    for name, rows in found.items():
        text += (
            f"# Table 1 in spirit: {name}, {sizes[name]:,} training rows, test accuracy in %\n\n"
        )
        best = np.max([row["accuracy"] for row in rows.values()], axis=0)
        body = []
        for method, row in rows.items():
            cells = [
                f"**{a:.2f}**" if a == best[c] else f"{a:.2f}"
                for c, a in enumerate(row["accuracy"])
            ]
            low, high = min(row["power"]), max(row["power"])
            powers = f"1e{low}" if low == high else f"1e{low} to 1e{high}"
            gap = row["worst_gap"]
            body.append([method, *cells, powers, None if gap is None else f"{gap:.1e}"])
        header = ["method", *(f"top-{k}" for k in KS), "lambda or step", "worst gap"]
        text += common.markdown_table(header, body) + "\n"
    text += "# Gains in top-5 accuracy, points: top-10 SVM alpha over\n\n"
    ours = {o: gains(found, "top-10 SVM alpha", o, 5) for o in ("top-1 SVM", "SVM OVA")}
    body = [
        [f"{name} (paper)", f"{PAPER_GAINS[name]:+.2f}", None, f"{PAPER_OVA[name]:+.2f}", None]
        for name in PAPER_GAINS
    ]
    means = [float(np.mean(list(g.values()))) for g in (PAPER_GAINS, PAPER_OVA)]
    for name in ours["top-1 SVM"]:
        cells = [ours["top-1 SVM"][name], ours["SVM OVA"].get(name, np.nan)]
        body.append(
            [name, f"{cells[0]:+.2f}", f"{cells[0] - means[0]:+.2f}", f"{cells[1]:+.2f}",
             f"{cells[1] - means[1]:+.2f}"]
        )  # fmt: skip
    header = ["data", "top-1 SVM", "minus the paper's mean", "SVM OVA", "minus the paper's mean"]
    return text + common.markdown_table(header, body)


def experiment(study: Study) -> None:
    passes = PASSES[study.quick]
    found: Found = {}
    sizes: dict[str, int] = {}
    for name in DATA:
        data = datasets.load(name, dtype=np.float32 if study.quick else np.float64)
        if study.quick and name in QUICK_ROWS:
            data = fewer_rows(data, QUICK_ROWS[name])
        rows = evaluate(study, data, passes)
        if rows:
            found[name], sizes[name] = rows, len(data.y_train)
    content = {"rows": sizes, "table": found}
    study.write(report(found, sizes), content, make_claims(found))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
