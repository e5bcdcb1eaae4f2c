"""What the report says, before it is HTML: tables of text, and numbers for the charts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from polymargin.evaluation import Evaluation
from polymargin.report._features import class_weights, strongest

Rows = list[tuple[str, str]]

MOST_CELLS = 60_000  # of the confusion matrix; beyond, the smallest counts are left out
LARGEST_K = 50  # of the top-k curve
CLUSTERED = 1500  # labels up to which the matrix is ordered by similarity
MOST_FEATURES = 40_000  # entries of the table of features


def number(value: float, digits: int = 6) -> str:
    """A number as text; a dash for NaN."""
    return f"{value:.{digits}g}" if np.isfinite(value) else "–"


def percent(value: float) -> str:
    """A fraction as percentage with two decimals."""
    return f"{100 * value:.2f} %"


def settings(model: Any) -> Rows:
    """Parameters of the model: all of the classifier's, and of other steps those that were set."""
    steps = model.steps if isinstance(model, Pipeline) else [("model", model)]
    rows: Rows = []
    for _, step in steps[:-1]:
        given = ", ".join(f"{name}={value}" for name, value in _changed(step))
        rows.append((type(step).__name__, given or "defaults"))
    classifier = steps[-1][1]
    rows.append(("classifier", type(classifier).__name__))
    hidden = {"verbose", "warm_start", "store_dual"}
    for name, value in classifier.get_params(deep=False).items():
        if isinstance(value, BaseEstimator):
            value = ", ".join(f"{key}={each}" for key, each in _changed(value)) or "defaults"
        if name not in hidden and value is not None:
            rows.append((name, _short(value)))
    return rows


def _changed(estimator: Any) -> list[tuple[str, str]]:
    """Parameters that differ from their defaults."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(type(estimator)).parameters.items()
    }
    return [
        (name, _short(value))
        for name, value in estimator.get_params(deep=False).items()
        if value is not defaults.get(name) and value != defaults.get(name)
    ]


def _short(value: Any) -> str:
    text = value.__name__ if isinstance(value, type) else str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def certificate(classifier: Any) -> Rows:
    """What was proven about the training."""
    rows: Rows = []
    for name, title in (
        ("objective_", "objective"),
        ("dual_objective_", "lower bound"),
        ("dual_gap_", "relative gap"),
    ):
        if hasattr(classifier, name):
            rows.append((title, number(getattr(classifier, name), 8 if name != "dual_gap_" else 3)))
    if hasattr(classifier, "tol") and classifier.tol is not None:
        rows.append(("tolerance", _short(classifier.tol)))
    if hasattr(classifier, "n_iter_"):
        rows.append(("passes", f"{int(classifier.n_iter_):,}"))
    history = getattr(classifier, "history_", None)
    if history is not None and len(history["time"]):
        rows.append(("time of training", f"{float(history['time'][-1]):.3g} s"))
    return rows


def data_rows(classifier: Any, found: Evaluation | None, given: Mapping[str, Any]) -> Rows:
    """What the model was trained and tested on."""
    rows = [(str(name), str(value)) for name, value in given.items()]
    rows.append(("classes", f"{len(classifier.classes_):,}"))
    rows.append(("features", f"{int(classifier.n_features_in_):,}"))
    if found is not None:
        rows.append(("test examples", f"{found.n_examples:,}"))
        if found.n_unseen:
            rows.append(
                (
                    "of unknown classes",
                    f"{found.n_unseen:,} examples of {len(found.unseen):,} labels that the model "
                    "does not know; each counts as an error",
                )
            )
    return rows


def training_curves(classifier: Any, trace: Mapping[str, Any] | None) -> dict[str, Any]:
    """Certificates, and the estimates between them where they were recorded."""
    history = getattr(classifier, "history_", None)
    curves: dict[str, Any] = {"tol": None, "certificates": None, "estimates": None}
    tol = getattr(classifier, "tol", None)
    if isinstance(tol, int | float):
        curves["tol"] = float(tol)
    if history is not None and len(history["gap"]):
        keys = ("pass", "time", "primal", "dual", "gap")
        curves["certificates"] = {key: _listed(history[key]) for key in keys}
    if trace is not None and len(trace["gap"]):
        curves["estimates"] = {key: _listed(trace[key]) for key in ("pass", "time", "gap")}
    return curves


def _listed(values: Any) -> list[float | None]:
    """Plain numbers of seven digits; None where there is none."""
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def confusion_cells(found: Evaluation) -> dict[str, Any]:
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
    return hierarchy.leaves_list(tree).astype(np.intp)


def feature_lists(classifier: Any, names: NDArray | None, n: int) -> list[dict[str, Any]] | None:
    """The strongest features of every class; None where names or weights are unknown."""
    weights = class_weights(classifier)
    if names is None or weights is None:
        return None
    n = max(1, min(n, MOST_FEATURES // (2 * len(weights))))
    lists = []
    for row in weights:
        most, least = strongest(row, names, n)
        lists.append({"for": _rounded(most), "against": _rounded(least)})
    return lists


def _rounded(pairs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(name, float(f"{weight:.4g}")) for name, weight in pairs]


def top_k_points(found: Evaluation) -> list[float]:
    """Top-k accuracies, from k = 1."""
    return [float(f"{value:.6g}") for value in found.top_k_curve(LARGEST_K)]
