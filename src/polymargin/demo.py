"""A first look: train every loss on a small data set and print how it went.

Run ``python -m polymargin.demo``. The data are the 1,797 handwritten digits that come with
scikit-learn, so nothing is downloaded. scikit-learn's ``LinearSVC``, which wraps LIBLINEAR, is
trained on the same split for comparison.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from polymargin import LinearMulticlassSVC

TOP_K = 3
SEED = 0

EXPLANATION = """\
gap: relative duality gap (P - D) / P: no weights have an objective lower by more than this
fraction, which is proven, not estimated. LinearSVC stops by a rule of its own and proves none.\
"""


@dataclass(frozen=True)
class Row:
    """One trained model: a line of the table.

    Attributes
    ----------
    model : str
        What was trained.
    accuracy : float
        Fraction of the test examples whose class has the highest score.
    top_k_accuracy : float
        Fraction of the test examples whose class is among the three highest scores.
    gap : float or None
        Certified relative duality gap; None where the model has no certificate.
    passes : int
        Passes over the training examples, as the model counts them.
    seconds : float
        Wall-clock time of ``fit``.
    """

    model: str
    accuracy: float
    top_k_accuracy: float
    gap: float | None
    passes: int
    seconds: float


def models(tol: float) -> Iterator[tuple[str, Any]]:
    """Yield the name and the unfitted model of every line of the table.

    Parameters
    ----------
    tol : float
        Relative duality gap at which polymargin's models stop.

    Yields
    ------
    name : str
        What the table calls the model.
    model : estimator
        The classifier to fit.
    """
    common: dict[str, Any] = {"tol": tol, "random_state": SEED}
    yield "crammer_singer", LinearMulticlassSVC(loss="crammer_singer", **common)
    yield "weston_watkins", LinearMulticlassSVC(loss="weston_watkins", **common)
    for loss in ("top_k_alpha", "top_k_beta"):
        yield f"{loss}, k={TOP_K}", LinearMulticlassSVC(loss=loss, top_k=TOP_K, **common)
    yield "one_vs_rest", LinearMulticlassSVC(loss="one_vs_rest", **common)

    peer: dict[str, Any] = {"max_iter": 100_000, "random_state": SEED}
    yield "LinearSVC, ovr hinge", LinearSVC(loss="hinge", **peer)
    yield "LinearSVC, crammer_singer", LinearSVC(multi_class="crammer_singer", **peer)


def run(tol: float = 1e-3) -> list[Row]:
    """Train every model on the same three quarters of the digits.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative duality gap at which polymargin's models stop.

    Returns
    -------
    rows : list of Row
        One per model, in the order of the table.
    """
    X, y = load_digits(return_X_y=True)
    split = train_test_split(X / 16.0, y, stratify=y, random_state=SEED)
    return [_train(name, model, *split) for name, model in models(tol)]


def _train(
    name: str,
    model: Any,
    X_train: np.ndarray,
    X_test: np.ndarray,
    y_train: np.ndarray,
    y_test: np.ndarray,
) -> Row:
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    scores = model.decision_function(X_test)
    return Row(
        model=name,
        accuracy=float(model.score(X_test, y_test)),
        top_k_accuracy=float(top_k_accuracy_score(y_test, scores, k=TOP_K)),
        gap=getattr(model, "dual_gap_", None),
        passes=int(model.n_iter_),
        seconds=seconds,
    )


def format_table(rows: Sequence[Row]) -> str:
    """Lay the rows out as aligned plain text.

    Parameters
    ----------
    rows : sequence of Row
        The trained models.

    Returns
    -------
    text : str
        A header, a rule and one line per row.
    """
    header = ("model", "accuracy", f"top-{TOP_K} accuracy", "gap", "passes", "time")
    cells = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    lines = [_align(line, widths) for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.model,
        f"{row.accuracy:.2%}",
        f"{row.top_k_accuracy:.2%}",
        "-" if row.gap is None else f"{row.gap:.1e}",
        str(row.passes),
        f"{1e3 * row.seconds:.0f} ms",
    )


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    """Put the first column to the left and the others to the right."""
    first, *rest = (
        cell.ljust(width) if column == 0 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join([first, *rest])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration.

    Parameters
    ----------
    argv : sequence of str, optional
        Command-line arguments; those of the process when not given.

    Returns
    -------
    status : int
        0, the exit status of success.
    """
    parser = argparse.ArgumentParser(prog="python -m polymargin.demo", description=__doc__)
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap to reach")
    arguments = parser.parse_args(argv)
    print("Handwritten digits: 10 classes, 64 pixels, three quarters for training, C = 1.\n")
    print(format_table(run(arguments.tol)))
    print(f"\n{EXPLANATION}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
