"""What the modules share: splits, paired tests, accuracies, tables and result files."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from scipy import sparse, stats
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.provenance import machine
from benchmarks.reference_optima import write_json
from polymargin import instruction_set

matplotlib.use("Agg")

FOLDER = Path(__file__).resolve().parent.parent / "results" / "papers"


@dataclass(frozen=True)
class PairedTest:
    """Two-sided Wilcoxon signed-rank test of paired values.

    Attributes
    ----------
    mean : float
        Mean of first minus second.
    wins, losses : int
        Pairs in which the first is higher, lower.
    p : float
        1 when all pairs are equal.
    """

    mean: float
    wins: int
    losses: int
    p: float


def paired_test(first: Sequence[float], second: Sequence[float]) -> PairedTest:
    """Compare values measured on the same splits."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    moved = bool(difference.any())
    return PairedTest(
        mean=float(difference.mean()),
        wins=int((difference > 0).sum()),
        losses=int((difference < 0).sum()),
        p=float(stats.wilcoxon(difference).pvalue) if moved else 1.0,
    )


def stratified_splits(data: Dataset, n_splits: int, seed: int = 0) -> list[Dataset]:
    """Put both parts together and cut them anew: 4/5 to train, 1/5 to test, rows shuffled.

    The only row of a class goes to the training part.
    """
    stack = sparse.vstack if sparse.issparse(data.X_train) else np.concatenate
    X = stack([data.X_train, data.X_test])
    X = X.tocsr() if sparse.issparse(X) else X
    y = np.concatenate([data.y_train, data.y_test])
    single = np.bincount(y)[y] == 1
    alone, rest = np.flatnonzero(single), np.flatnonzero(~single)
    cuts = StratifiedShuffleSplit(n_splits, test_size=0.2, random_state=seed).split(rest, y[rest])
    parts = [(np.concatenate([rest[train], alone]), rest[test]) for train, test in cuts]
    return [Dataset(data.name, X[train], y[train], X[test], y[test]) for train, test in parts]


def cover() -> tuple[str, ...]:
    """Keerthi's fifth data set, if scikit-learn or a folder has it on this machine."""
    return ("covtype",) if datasets.is_here("covtype") else ()


def keerthi_data(name: str, layout: datasets.Layout = "native") -> Dataset:
    """Keerthi's data: news20 is LIBSVM's, as there; cover is not looked for on the internet."""
    load = datasets.load_published if name == "covtype" else datasets.load
    return load(name, layout=layout)


def accuracy(X: Any, y: np.ndarray, coef: np.ndarray) -> float:
    """Share of rows whose largest score is the label's."""
    return float((np.asarray(X @ coef.T).argmax(axis=1) == y).mean())


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table whose first column is aligned left; None is an empty cell, floats get 3 digits."""

    def cell(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_results(
    name: str, text: str, content: dict[str, Any], figure: Figure | None, folder: Path
) -> None:
    """Print the text and write ``NAME.md``, ``NAME.json`` and, with a figure, ``NAME.png``."""
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    origin = {"machine": machine(), "versions": versions()}
    write_json(folder / f"{name}.json", origin | content)
    if figure is not None:
        figure.savefig(folder / f"{name}.png", dpi=100)


def versions() -> dict[str, str]:
    """What the figures belong to."""
    names = ("polymargin", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version(), "instruction_set": instruction_set}
    return found | {name: version(name) for name in names}
