"""What the report says, before it is HTML: tables of text, and numbers for the charts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from polymargin.evaluation import Evaluation
from polymargin.fitted import Classifier
from polymargin.tables import TableColumns

Rows = list[tuple[str, str]]
Curve = dict[str, list[float | None]]

MOST_CELLS = 60_000  # of the confusion matrix; beyond, the smallest counts are left out
LARGEST_K = 50  # of the top-k curve
CLUSTERED = 1500  # labels up to which the matrix is ordered by similarity
MOST_ENTRIES = 12  # of a mapping that is shown
HIDDEN = {"verbose", "warm_start", "store_dual", "checkpoint"}  # these do not describe a model


def number(value: float, digits: int = 6) -> str:
    """A number as text; a dash for NaN."""
    return f"{value:.{digits}g}" if np.isfinite(value) else "–"


def shorten(text: str, longest: int = 200) -> str:
    """Text that is not longer than this."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def settings(model: BaseEstimator) -> Rows:
    """Parameters of the model: all of the classifier's, and of other steps those that were set."""
    *before, classifier = (
        [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    )
    rows = [
        (type(step).__name__, _changed(step))
        for step in before
        if not isinstance(step, TableColumns)  # of which there is more to say
    ]
    rows.append(("classifier", type(classifier).__name__))
    for name, value in classifier.get_params(deep=False).items():
        if name not in HIDDEN and value is not None:
            said = _changed(value) if isinstance(value, BaseEstimator) else value
            rows.append((name, _said(said)))
    return rows


def columns(model: BaseEstimator) -> Rows:
    """What the model makes of each column of a table; nothing where it reads no tables."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    return first.described() if isinstance(first, TableColumns) else []


def _changed(estimator: BaseEstimator) -> str:
    """Parameters that differ from their defaults."""
    parameters = inspect.signature(type(estimator)).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    changed = [
        f"{name}={_said(value)}"
        for name, value in estimator.get_params(deep=False).items()
        if value is not defaults.get(name) and value != defaults.get(name)
    ]
    return ", ".join(changed) or "defaults"


def _said(value: object) -> str:
    if isinstance(value, np.ndarray) or (isinstance(value, Mapping) and len(value) > MOST_ENTRIES):
        return f"{np.size(value) if isinstance(value, np.ndarray) else len(value):,} numbers"
    return shorten(value.__name__ if isinstance(value, type) else str(value))


def certificate(classifier: Classifier) -> Rows:
    """What was proven about the training."""
    history, tol = getattr(classifier, "history_", None), getattr(classifier, "tol", None)
    proven = (
        ("objective", "objective_", 8),
        ("lower bound", "dual_objective_", 8),
        ("relative gap", "dual_gap_", 3),
    )
    rows = [
        (title, number(getattr(classifier, name), digits))
        for title, name, digits in proven
        if hasattr(classifier, name)
    ]
    if tol is not None:
        rows.append(("tolerance", _said(tol)))
    if hasattr(classifier, "n_iter_"):
        rows.append(("passes", f"{int(classifier.n_iter_):,}"))
    if history is not None and len(history["time"]):
        rows.append(("time of training", f"{float(history['time'][-1]):.3g} s"))
    return rows


def data_rows(
    classifier: Classifier, found: Evaluation | None, given: Mapping[str, object]
) -> Rows:
    """What the model was trained and tested on."""
    rows = [(str(name), str(value)) for name, value in given.items()]
    rows.append(("classes", f"{len(classifier.classes_):,}"))
    rows.append(("features", f"{int(classifier.n_features_in_):,}"))
    if found is not None:
        rows.append(("test examples", f"{found.n_examples:,}"))
        if found.n_unseen:
            unknown = f"{found.n_unseen:,} examples of {len(found.unseen):,} labels that the model "
            rows.append(("of unknown classes", f"{unknown}does not know; each counts as an error"))
    return rows


def training_curves(classifier: Classifier) -> dict[str, float | Curve | None]:
    """What was certified, and what the passes estimated."""
    tol = getattr(classifier, "tol", None)
    history = getattr(classifier, "history_", None)
    return {
        "tol": float(tol) if isinstance(tol, int | float) else None,
        "certificates": _curve(history, ""),
        "estimates": _curve(history, "estimated_"),
    }


def _curve(history: Mapping[str, ArrayLike] | None, prefix: str) -> Curve | None:
    """Plain numbers of seven digits, of the passes whose gap is known; nothing where none is."""
    if history is None or f"{prefix}gap" not in history:
        return None
    known = np.isfinite(np.asarray(history[f"{prefix}gap"], float))
    if not known.any():
        return None
    columns = {"pass": "pass", "time": "time"}
    columns |= {name: f"{prefix}{name}" for name in ("primal", "dual", "gap")}
    return {
        name: [float(f"{v:.7g}") if np.isfinite(v) else None for v in values[known]]
        for name, values in ((n, np.asarray(history[c], float)) for n, c in columns.items())
    }


def confusion_cells(found: Evaluation) -> dict[str, object]:
    """The nonzero cells of the confusion matrix, and an order with confused labels together."""
    counts = found.confusion.tocoo()
    keep = np.arange(counts.nnz)
    if counts.nnz > MOST_CELLS:
        order = np.lexsort((counts.row != counts.col, -counts.data))
        keep = np.sort(order[:MOST_CELLS])
    return {
        "rows": counts.row[keep].tolist(),
        "columns": counts.col[keep].tolist(),
        "counts": counts.data[keep].tolist(),
        "support": found.support.tolist(),
        "left_out": int(counts.nnz - len(keep)),
        "order": similar_together(found).tolist(),
    }


def similar_together(found: Evaluation) -> NDArray[np.intp]:
    """Order of the labels in which those that are confused stand side by side."""
    k = len(found.labels)
    if not 3 <= k <= CLUSTERED:
        return np.arange(k)
    share = found.confusion.toarray() / np.maximum(found.support, 1)[:, None]
    likeness = share + share.T
    np.fill_diagonal(likeness, 0.0)
    if not likeness.any():
        return np.arange(k)
    distance = 1.0 - likeness / likeness.max()
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), method="average")
    order: NDArray[np.intp] = hierarchy.leaves_list(tree).astype(np.intp)
    return order


def top_k_points(found: Evaluation) -> list[float]:
    """Top-k accuracies, from k = 1."""
    return [float(f"{value:.6g}") for value in found.top_k_curve(LARGEST_K)]


def reliability_points(found: Evaluation) -> list[dict[str, float]] | None:
    """Confidence, accuracy and number of examples of every bin, where there are probabilities."""
    if found.confidence is None:
        return None
    return [
        {"confidence": one.confidence, "accuracy": one.accuracy, "count": one.count}
        for one in found.reliability()
    ]
