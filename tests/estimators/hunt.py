"""A hunt for wrong models: random small problems, each checked by NumPy and by a relation.

Every problem is drawn from a seed: loss, classes, types, layouts, weights, costs, schedules, warm
starts, threads. Objectives, gap, feasibility and predictions are evaluated by NumPy alone; then a
second fit of a problem that is the same in other words must agree within both gaps.
``python -m tests.estimators.hunt --count 10000`` hunts further than the tests do.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from polymargin import LOSSES, DualSolver, LinearMulticlassSVC, get_loss
from tests.reference import objective

TOP_K = ("top_k_alpha", "top_k_beta", "top_k_entropy")
SMOOTH = (*TOP_K[:2], "crammer_singer", "weston_watkins", "one_vs_rest")
COSTS = ("crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta")
SEQUENTIAL = ("crammer_singer", "weston_watkins", "one_vs_rest")


@dataclass
class Case:
    """A problem and how to solve it."""

    X: np.ndarray  # dense, float64; `layout` and `dtype` are what a fit is given
    y: np.ndarray
    weight: np.ndarray | None
    params: dict[str, Any]
    solver: dict[str, Any]
    dtype: type = np.float64
    layout: str = "C"
    before: float | None = None  # the C of a fit to start from
    classes: list[int] = field(default_factory=list)

    def given(self) -> Any:
        """X as a fit is given it."""
        X = self.X.astype(self.dtype)
        if self.layout in ("C", "F"):
            return np.array(X, order=self.layout)
        matrix = sparse.csr_array(X)
        if self.layout == "csc":
            return matrix.tocsc()
        if self.layout == "int64":
            matrix.indices = matrix.indices.astype(np.int64)
            matrix.indptr = matrix.indptr.astype(np.int64)
        if self.layout == "twice":  # every value as the sum of two, in no order
            halves = sparse.coo_array(matrix)
            row, column = np.tile(halves.row, 2), np.tile(halves.col, 2)
            values = np.tile(halves.data / 2, 2)
            order = np.lexsort((-column, row))
            indptr = np.r_[0, np.cumsum(np.bincount(row, minlength=len(X)))]
            parts = values[order], column[order], indptr
            return sparse.csr_array(parts, shape=X.shape)
        return matrix

    def fit(self) -> LinearMulticlassSVC:
        """The fitted model, warm where that is asked for."""
        solver = DualSolver(**self.solver)
        clf = LinearMulticlassSVC(**self.params, store_dual=True, random_state=0, solver=solver)
        if self.before is not None:
            clf.set_params(warm_start=True, C=self.before, max_iter=20)
            clf.fit(self.given(), self.y, self.weight)
            clf.set_params(C=self.params["C"], max_iter=self.params["max_iter"])
        return clf.fit(self.given(), self.y, self.weight)

    @property
    def costs(self) -> np.ndarray:
        """``c`` of every example."""
        return self.params["C"] * (np.ones(len(self.y)) if self.weight is None else self.weight)

    def spec(self) -> objective.Spec:
        """The problem for NumPy; classes without weight are absent."""
        present = np.unique(self.y[self.costs > 0])
        margins = self.params["cost_matrix"]
        scaling = self.params["intercept_scaling"] if self.params["fit_intercept"] else 0.0
        seen = self.costs > 0
        return objective.Spec(
            self.X.astype(self.dtype)[seen],
            np.searchsorted(present, self.y[seen]),
            self.costs[seen],
            self.params["loss"],
            self.params["top_k"],
            scaling,
            len(present),
            self.params["smoothing"],
            margins,
        )


def draw(seed: int) -> Case:
    """A problem of every kind."""
    rng = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    k, d = int(rng.integers(2, 7)), int(rng.integers(1, 13))
    n = int(rng.integers(2 * k, 60))
    loss = LOSSES[rng.integers(len(LOSSES))]
    y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    X = rng.standard_normal((n, d)) + one(0, 1, 3) * rng.standard_normal((k, d))[y]
    X *= rng.random((n, d)) < one(0.2, 0.6, 1.0)
    X = np.round(X * 256) / 256 * one(1, 1, 1, 2**-8, 2**6)  # exact in both precisions
    if rng.random() < 0.2:
        X[rng.integers(n, size=3)] = 0.0
    weight = one(None, None, rng.integers(0, 4, n).astype(float), rng.random(n) + 0.1)
    if weight is not None:
        weight[:k] = np.maximum(weight[:k], 1.0)  # every class is there
    dense = one("C", "F", "csr", "csc", "int64", "twice")
    costs = None
    if loss in COSTS and rng.random() < 0.25:
        costs = rng.random((k, k)) + 0.25
        np.fill_diagonal(costs, 0.0)
    params = {
        "loss": loss,
        "C": float(10 ** rng.uniform(-2, 2)),
        "top_k": int(rng.integers(1, k)) if loss in TOP_K else None,
        "smoothing": one(0.0, 0.0, 0.5, 1.0) if loss in SMOOTH else 0.0,
        "cost_matrix": costs,
        "fit_intercept": one(True, False),
        "intercept_scaling": one(1.0, 1.0, 0.5, 4.0),
        "tol": one(1e-2, 1e-3, 1e-4),
        "max_iter": one(5, 300, 300),
        "n_jobs": one(1, 2),
    }
    solver = {
        "acceleration": one("auto", "auto", True, False, 3.0),
        "shrinking": one(True, True, False),
        "shuffle": one(True, True, False),
        "precision": one("auto", "single", "double"),
        "blocked": one("auto", True, False),
        "parallel": one("auto", True) if loss.startswith("one_vs_rest") else "auto",
        "newton": one("auto", "auto", False),
    }
    if loss in SEQUENTIAL and not params["smoothing"] and rng.random() < 0.2:
        solver |= {"schedule": "sdm", "acceleration": "auto"}
    if rng.random() < 0.3:
        solver["restricted"] = one(*get_loss(loss, params["top_k"]).restricted_methods)
        if params["smoothing"]:
            solver["restricted"] = "auto"
    before = one(None, None, 0.5, 3.0)
    return Case(
        X, y, weight, params, solver, one(np.float32, np.float64), dense,
        None if before is None else before * params["C"],
    )  # fmt: skip


def unfolded(row: Any, loss: str) -> np.ndarray:
    """Both rows of two classes from the one that is shown; of more, the rows as they are."""
    rows = np.asarray(row.todense() if sparse.issparse(row) else row, np.float64)
    if len(rows) != 1:
        return rows
    half = rows * (1.0 if loss.startswith("one_vs_rest") else 0.5)
    return np.concatenate([-half, half])


def check(case: Case, clf: LinearMulticlassSVC) -> None:
    """What the model says of itself is what NumPy says of it."""
    spec, loss = case.spec(), case.params["loss"]
    rounding = 1e-4 if case.dtype is np.float32 else 1e-7
    coef, intercept = (unfolded(rows, loss) for rows in (clf.coef_, clf.intercept_[:, None]))
    P = objective.primal(spec, coef, intercept[:, 0])
    a = unfolded(clf.dual_coef_, loss).T[case.costs > 0]
    D = objective.dual(spec, a)
    size = max(abs(P), 1e-300)
    exact = 1e-9 * size + 1e-15 * case.costs.sum()  # what is left of margins about 1
    assert abs(P - clf.objective_) <= exact, f"primal {P} is said to be {clf.objective_}"
    room = (2e-6 if case.dtype is np.float32 else rounding) * size
    assert abs(D - clf.dual_objective_) <= room, f"dual {D} is said to be {clf.dual_objective_}"
    assert objective.dual_infeasibility(spec, a) <= 10 * rounding
    gap = (P - D) / P if P > 0 else 0.0
    assert gap <= clf.dual_gap_ + 2 * rounding and gap >= -2 * rounding
    if case.params["max_iter"] > 5 and clf.dual_gap_ <= case.params["tol"]:
        assert gap <= case.params["tol"] + 2 * rounding
    scores = case.X.astype(case.dtype).astype(np.float64) @ coef.T + intercept.T
    found = clf.decision_function(case.given())
    shown = found[:, None] if found.ndim == 1 else found
    expected = scores[:, 1:] - scores[:, :1] if found.ndim == 1 else scores
    if found.ndim == 1 and loss.startswith("one_vs_rest"):
        expected = scores[:, 1:]
    size = 1e-300 + np.abs(case.X) @ np.abs(coef).T.max(axis=1) + np.abs(intercept).max()
    eps = 64 * np.finfo(case.dtype).eps * size[:, None]
    assert (np.abs(shown - expected) <= eps).all(), "scores differ"
    named = np.searchsorted(clf.classes_, clf.predict(case.given()))
    chosen = scores[np.arange(len(scores)), named]
    assert (chosen >= scores.max(axis=1) - 2 * eps[:, 0]).all(), "a label is not the best"


def related(case: Case, rng: np.random.Generator) -> tuple[str, Case, float]:
    """The same problem in other words, and the factor between the objectives."""
    n, which = len(case.y), int(rng.integers(4))
    weight = np.ones(n) if case.weight is None else case.weight
    if which == 0:
        order = rng.permutation(n)
        moved = None if case.weight is None else case.weight[order]
        return "rows", replace(case, X=case.X[order], y=case.y[order], weight=moved), 1.0
    if which == 1:
        k = int(case.y.max()) + 1
        to, costs = rng.permutation(k), case.params["cost_matrix"]
        if costs is not None:
            back = np.argsort(to)
            costs = costs[np.ix_(back, back)]
        return (
            "classes",
            replace(case, y=to[case.y], params=case.params | {"cost_matrix": costs}),
            1.0,
        )
    if which == 2:
        some = rng.random(n) < 0.3
        doubled = np.where(some, 2 * weight, weight)
        one = replace(case, weight=doubled)
        again = np.r_[np.arange(n), np.flatnonzero(some)]
        two = replace(case, X=case.X[again], y=case.y[again], weight=weight[again])
        case.weight = one.weight  # the caller fits this one
        return "doubled", two, 1.0
    s = float(rng.choice([0.5, 2.0, 4.0]))
    scaled = case.params | {
        "C": case.params["C"] / s**2,
        "intercept_scaling": case.params["intercept_scaling"] * s,
    }
    before = None if case.before is None else case.before / s**2
    return "scaled", replace(case, X=case.X * s, params=scaled, before=before), s**2


def hunt(seed: int) -> str:
    """Raise `AssertionError` for a wrong model; otherwise, what was compared."""
    case = draw(seed)
    rng = np.random.default_rng([seed, 1])
    name, other, factor = related(case, rng)  # before the fit: doubling changes both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = case.fit(), other.fit()
    check(case, one)
    check(other, two)
    intervals = [
        (one.dual_objective_, one.objective_),
        (factor * two.dual_objective_, factor * two.objective_),
    ]
    rounding = (1e-4 if case.dtype is np.float32 else 1e-7) * abs(one.objective_)
    low, high = max(a for a, _ in intervals), min(b for _, b in intervals)
    assert low <= high + 2 * rounding, f"{name}: the optimum is in {intervals}"
    return name


def main() -> int:
    """Hunt, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the first problem")
    chosen = parser.parse_args()
    seen: Counter[str] = Counter()
    began = time.perf_counter()
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        try:
            seen[hunt(seed)] += 1
        except Exception as error:
            seen["WRONG"] += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        done = seed - chosen.seed + 1
        if done % 1000 == 0 or done == chosen.count:
            print(f"{done} problems, {time.perf_counter() - began:.0f} s: {dict(seen)}", flush=True)
    return 1 if seen["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
