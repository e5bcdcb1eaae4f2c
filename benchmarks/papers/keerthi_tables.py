"""Keerthi et al. 2008, tables 4.2 and 4.3: accuracy of three losses with C tuned for each.

    python -m benchmarks.papers.keerthi_tables [--quick]

The paper: training and test parts put together and cut anew, 60/20/20 into training, validation and
test, stratified, ten times; C from {0.01, 0.03, 0.1, 0.3, 1, 3, 10} by the accuracy on the
validation part, retrained on training and validation; mean and standard deviation of the accuracy
on the test part, and p-values of Wilcoxon's signed-rank test. Here the same, the models of the grid
with `regularization_path`. Ties go to the smaller C (the paper does not say).

A claim counts as seen where the mean difference has the paper's sign and Wilcoxon's p is below
0.01, the paper's level, or, where the paper sees no difference, where p is not.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import datasets
from benchmarks.papers import common
from benchmarks.papers.study import Claim, Study, run, verdict
from polymargin import LinearMulticlassSVC, regularization_path

NAME = "keerthi_tables"
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LOSSES = {"one_vs_rest": "OVR", "crammer_singer": "CS", "weston_watkins": "WW"}
TUNING_TOL = 1e-2  # of the models on the grid
FINAL_TOL = 1e-3  # of the retrained model
SIGNIFICANT = 0.01  # the paper's
CHECKED = ("news20",)  # on ten other splits too
ENOUGH = 8  # splits: with fewer, no p-value is below that
PAPER = {
    "news20": {"OVR": "85.39 ± 0.37", "CS": "85.26 ± 0.37", "WW": "85.10 ± 0.43"},
    "mnist": {"OVR": "91.46 ± 0.23", "CS": "92.50 ± 0.20", "WW": "91.84 ± 0.21"},
}
PAPER_P = {
    "news20": {"CS": "0.43", "WW": "0.01"},
    "mnist": {"CS": "2.0e-3", "WW": "2.0e-3"},
}

SETUP = f"""
As in the paper: training and test parts put together and cut anew, 60/20/20 into training,
validation and test, stratified, ten times (reduced: twice, which is too few for a claim); C from
{", ".join(f"{C:g}" for C in GRID)} by the accuracy on the validation part, retrained on training
and validation. The models of the grid come from `regularization_path`; ties go to the smaller C
(the paper does not say). Of the paper's five data sets, news20 and mnist are repeated. A claim
counts as seen where the mean difference has the paper's sign and Wilcoxon's p is below
{SIGNIFICANT:g}, the paper's level, or, where the paper sees no difference, where p is not.
"""
REASONS = {
    "with C tuned for each, WW is less accurate than one-vs-rest on news20": """
    the data are the paper's, LIBSVM's news20, and the mean difference has its sign and size. The
    implementation: each model is solved to a certified gap. What is left is noise: the paper's own
    p is 0.01 with ten splits, so that ten others may well end on the other side of its level; the
    check has more splits.
    """,
}


def tune_and_test(split: datasets.Dataset, loss: str, seed: int) -> dict[str, Any]:
    """Choose C on a quarter of the training part, retrain on all of it, test."""
    X, y = split.X_train, split.y_train
    began = time.process_time()
    cut = StratifiedShuffleSplit(1, test_size=0.25, random_state=seed)
    train, validation = next(cut.split(y, y))
    settings = {"loss": loss, "fit_intercept": False, "max_iter": 100_000, "random_state": seed}
    path = regularization_path(X[train], y[train], GRID, tol=TUNING_TOL, **settings)
    accuracies = [common.accuracy(X[validation], y[validation], coef) for coef in path.coefs]
    best = GRID[int(np.argmax(accuracies))]
    final = LinearMulticlassSVC(C=best, tol=FINAL_TOL, **settings).fit(X, y)
    return {
        "C": best,
        "validation": [100 * value for value in accuracies],
        "test": 100 * common.accuracy(split.X_test, split.y_test, final.coef_),
        "seconds": time.process_time() - began,
    }


def key(data: str, loss: str, split: int) -> str:
    """Name of a run in the result file."""
    return f"{data} {loss} {split}"


def complete(runs: dict[str, Any], name: str, n_splits: int) -> list[int]:
    """The splits that all losses have."""
    return [
        split for split in range(n_splits) if all(key(name, loss, split) in runs for loss in LOSSES)
    ]


def report(runs: dict[str, Any], names: list[str], n_splits: int) -> str:
    """Tables 4.2 and 4.3 of the splits that all three losses have."""
    text = "# Test accuracy in %, C tuned for each loss (table 4.2)\n\n"
    rows_p, rows_c = [], []
    rows: list[list[Any]] = []
    for name in names:
        done = complete(runs, name, n_splits)
        if not done:
            continue
        found = {
            label: [runs[key(name, loss, split)] for split in done]
            for loss, label in LOSSES.items()
        }
        test = {label: np.array([run["test"] for run in of]) for label, of in found.items()}
        spread = {label: v.std(ddof=1) if len(v) > 1 else 0.0 for label, v in test.items()}
        cells = [f"{test[label].mean():.2f} ± {spread[label]:.2f}" for label in test]
        theirs = {label: float(PAPER[name][label].split()[0]) for label in test}
        apart = [f"{test[label].mean() - theirs[label]:+.2f}" for label in test]
        rows += [[name, len(done), *cells], [f"{name}, paper", 10, *PAPER[name].values()]]
        rows.append([f"{name}, difference", None, *apart])
        for other in ("CS", "WW"):
            p = common.paired_test(test[other], test["OVR"])
            rows_p.append(
                [
                    f"{name}, {other} - OVR",
                    f"{p.mean:+.2f}",
                    f"{p.wins}/{p.losses}",
                    f"{p.p:.2g}",
                    PAPER_P[name][other],
                ]
            )
        seconds = sum(run["seconds"] for of in found.values() for run in of)
        chosen = [
            ", ".join(
                f"{C:g}: {count}"
                for C, count in zip(
                    *np.unique([run["C"] for run in found[label]], return_counts=True), strict=True
                )
            )
            for label in found
        ]
        rows_c.append([name, *chosen, f"{seconds:.0f}"])
    text += common.markdown_table(["data", "splits", *LOSSES.values()], rows)
    text += "\n# Against one-vs-rest, Wilcoxon's signed-rank test (table 4.3)\n\n"
    header = ["pair", "mean difference", "better/worse", "p", "p, paper"]
    text += common.markdown_table(header, rows_p)
    text += "\n# How often each C was chosen\n\n"
    text += common.markdown_table(["data", *LOSSES.values(), "CPU seconds"], rows_c)
    return text


EXPECTED = {
    ("news20", "CS"): ("as accurate as", 0),
    ("news20", "WW"): ("less accurate than", -1),
    ("mnist", "CS"): ("more accurate than", 1),
    ("mnist", "WW"): ("more accurate than", 1),
}


def against_one_vs_rest(runs: dict[str, Any], name: str, label: str, done: list[int]) -> Any:
    """Accuracies of a loss and of one-vs-rest on the same splits, and their test."""
    loss = next(loss for loss in LOSSES if LOSSES[loss] == label)
    first, second = (
        [runs[key(name, of, split)]["test"] for split in done] for of in (loss, "one_vs_rest")
    )
    return first, second, common.paired_test(first, second)


def make_claims(
    runs: dict[str, Any], n_splits: int, others: dict[str, Any] | None = None
) -> list[Claim]:
    """What tables 4.2 and 4.3 say of Crammer-Singer and Weston-Watkins against one-vs-rest."""
    claims = []
    for (name, label), (words, sign) in EXPECTED.items():
        done = complete(runs, name, n_splits)
        if len(done) < ENOUGH:
            continue
        first, second, found = against_one_vs_rest(runs, name, label, done)
        seen = (
            found.p >= SIGNIFICANT if sign == 0 else sign * found.mean > 0 and found.p < SIGNIFICANT
        )
        check = ""
        more = complete(others or {}, name, n_splits)
        if len(more) >= ENOUGH:
            _, _, again = against_one_vs_rest(others or {}, name, label, more)
            together = [
                a + b
                for a, b in zip(
                    against_one_vs_rest(runs, name, label, done)[:2],
                    against_one_vs_rest(others or {}, name, label, more)[:2],
                    strict=True,
                )
            ]
            both = common.paired_test(*together)
            check = (
                f"on {len(more)} other splits {again.mean:+.2f} points, p = {again.p:.2g}; all "
                f"{len(done) + len(more)} together {both.mean:+.2f}, p = {both.p:.2g}"
            )
        claims.append(
            Claim(
                "Keerthi et al., tables 4.2 and 4.3",
                f"with C tuned for each, {label} is {words} one-vs-rest on {name}",
                f"{np.mean(first):.2f} % against {np.mean(second):.2f} %, {len(done)} splits, "
                f"{found.wins} better and {found.losses} worse, p = {found.p:.2g} (the paper's "
                f"{PAPER[name][label]} against {PAPER[name]['OVR']}, p = {PAPER_P[name][label]})",
                verdict([seen]),
                check,
            )
        )
    return claims


def experiment(study: Study) -> None:
    """Split by split, so that an interrupted run has whole splits."""
    n_splits = 2 if study.quick else 10
    runs: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name in PAPER:
        data = datasets.load(name, layout="csr")
        for seed, found in ((0, runs), (1, others)):
            if seed and (study.quick or name not in CHECKED):
                continue
            for number, split in enumerate(common.stratified_splits(data, n_splits, seed)):
                for loss in LOSSES:
                    cell = study.cell(
                        key(name, loss, number) + (", other splits" if seed else ""),
                        lambda split=split, loss=loss, number=number: tune_and_test(
                            split, loss, number
                        ),
                    )
                    if cell is not None:
                        found[key(name, loss, number)] = cell
    text = report(runs, list(PAPER), n_splits)
    content = {"runs": runs, "other_splits": others}
    study.write(text, content, make_claims(runs, n_splits, others))


if __name__ == "__main__":
    raise SystemExit(run(NAME, experiment, __doc__))
