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
from functools import partial

from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from polymargin.estimators import LinearMulticlassSVC
from polymargin.losses import LOSSES, loss_class

TOP_K = 3
SEED = 0

INTRODUCTION = "Handwritten digits: 10 classes, 64 pixels, three quarters for training, C = 1."
EXPLANATION = """\
gap: relative duality gap (P - D) / P: no weights have an objective lower by more than this
fraction, which is proven, not estimated. LinearSVC stops by a rule of its own and proves none.\
"""


@dataclass(frozen=True)
class Row:
    """One trained model: a line of the table."""

    model: str
    accuracy: float  # fraction of the test examples whose class has the highest score
    top_k_accuracy: float  # fraction of those whose class is among the three highest scores
    gap: float | None  # certified and relative; None where the model has no certificate
    passes: int  # over the training examples, as the model counts them
    seconds: float  # of `fit`, by the clock on the wall


def models(tol: float) -> Iterator[tuple[str, LinearMulticlassSVC | LinearSVC]]:
    """The name and the unfitted model of every line of the table."""
    for name in LOSSES:
        top_k = TOP_K if "top_k" in loss_class(name).parameters else None
        model = LinearMulticlassSVC(loss=name, top_k=top_k, tol=tol, random_state=SEED)
        yield (f"{name}, k={top_k}" if top_k else name), model
    peer = partial(LinearSVC, max_iter=100_000, random_state=SEED)
    yield "LinearSVC, ovr hinge", peer(loss="hinge")
    yield "LinearSVC, crammer_singer", peer(multi_class="crammer_singer")


def run(tol: float = 1e-3) -> list[Row]:
    """Train every model on the same three quarters of the digits, ours to this relative gap."""
    X, y = load_digits(return_X_y=True)
    split = train_test_split(X / 16.0, y, stratify=y, random_state=SEED)
    return [_train(name, model, *split) for name, model in models(tol)]


def _train(
    name: str,
    model: LinearMulticlassSVC | LinearSVC,
    X_train: NDArray,
    X_test: NDArray,
    y_train: NDArray,
    y_test: NDArray,
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
    """Lay the rows out as aligned plain text: a header, a rule and a line per row."""
    cells = [
        ("model", "accuracy", f"top-{TOP_K} accuracy", "gap", "passes", "time"),
        *(
            (
                row.model,
                f"{row.accuracy:.2%}",
                f"{row.top_k_accuracy:.2%}",
                "-" if row.gap is None else f"{row.gap:.1e}",
                str(row.passes),
                f"{1e3 * row.seconds:.0f} ms",
            )
            for row in rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration with these arguments, or those of the process; return 0."""
    parser = argparse.ArgumentParser(prog="python -m polymargin.demo", description=__doc__)
    parser.add_argument("--tol", type=float, default=1e-3, help="relative duality gap to reach")
    arguments = parser.parse_args(argv)
    print(f"{INTRODUCTION}\n\n{format_table(run(arguments.tol))}\n\n{EXPLANATION}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
