"""``polymargin demo``: a first look without any data.

Every loss is trained on the 1,797 handwritten digits that come with scikit-learn, and beside them
its ``LinearSVC``, which wraps LIBLINEAR, on the same split.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

import click
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from polymargin.cli._command import command, option, takes
from polymargin.cli._output import Output, table
from polymargin.estimators import LinearMulticlassSVC
from polymargin.losses import LOSSES, loss_class

EXAMPLE = """
polymargin demo
polymargin demo --tol 1e-6
"""
TOP_K = 3
SEED = 0

INTRODUCTION = "Handwritten digits: 10 classes, 64 pixels, three quarters for training, C = 1.\n"
EXPLANATION = """
gap: relative duality gap (P - D) / P: no weights have an objective lower by more than this
fraction, which is proven, not estimated. LinearSVC stops by a rule of its own and proves none.\
"""
TITLES = ("model", "#accuracy", f"#top-{TOP_K} accuracy", "#gap", "#passes", "#time")


@dataclass(frozen=True)
class Row:
    """One trained model: a line of the table."""

    model: str
    accuracy: float  # fraction of the test examples whose class has the highest score
    top_k_accuracy: float  # fraction of those whose class is among the three highest scores
    gap: float | None  # certified and relative; None where the model has no certificate
    passes: int  # over the training examples, as the model counts them
    seconds: float  # of `fit`, by the clock on the wall

    @property
    def cells(self) -> list[str]:
        """What the table shows."""
        gap = "-" if self.gap is None else f"{self.gap:.1e}"
        accuracies = [f"{self.accuracy:.2%}", f"{self.top_k_accuracy:.2%}"]
        return [self.model, *accuracies, gap, str(self.passes), f"{1e3 * self.seconds:.0f} ms"]


@command(EXAMPLE)
@option("Demo", "--tol", type=click.FloatRange(0), default=1e-3, help="Relative gap to reach.")
@takes(Output, "output")
def demo(tol: float, output: Output) -> None:
    """Train every loss on handwritten digits, beside scikit-learn's LinearSVC."""
    output.note(INTRODUCTION)
    rows = list(run(tol))
    lines = table(TITLES, [row.cells for row in rows])
    output.result({"models": [asdict(row) for row in rows]}, lines)
    output.note(EXPLANATION)


def run(tol: float) -> Iterator[Row]:
    """Train every model on the same three quarters of the digits, ours to this relative gap."""
    from sklearn.datasets import load_digits  # this takes time

    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16.0, y, stratify=y, random_state=SEED)
    X_train, X_test, y_train, y_test = parts
    for name, model in _models(tol):
        start = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - start
        scores = model.decision_function(X_test)
        yield Row(
            model=name,
            accuracy=float(model.score(X_test, y_test)),
            top_k_accuracy=float(top_k_accuracy_score(y_test, scores, k=TOP_K)),
            gap=getattr(model, "dual_gap_", None),
            passes=int(model.n_iter_),
            seconds=seconds,
        )


def _models(tol: float) -> Iterator[tuple[str, LinearMulticlassSVC | LinearSVC]]:
    """The name and the unfitted model of every line of the table."""
    for name in LOSSES:
        top_k = TOP_K if "top_k" in loss_class(name).parameters else None
        model = LinearMulticlassSVC(loss=name, top_k=top_k, tol=tol, random_state=SEED)
        yield (f"{name}, k={top_k}" if top_k else name), model
    peer = partial(LinearSVC, max_iter=100_000, random_state=SEED)
    yield "LinearSVC, ovr hinge", peer(loss="hinge")
    yield "LinearSVC, crammer_singer", peer(multi_class="crammer_singer")
