"""Costs between classes: what it costs to predict one where another is true.

A cost matrix has a row per true class and a column per predicted one, zeros on its diagonal. It
sets the margins of the losses that compare classes, ``h_j = cost[y, j] + s_j - s_y``: a class that
is expensive to mistake for another is kept further away. Here are ways to make such a matrix, and
the check that all estimators make of what they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polymargin.arrays import Doubles, Label

__all__ = ["costs_for", "from_confusion", "from_taxonomy", "mean_cost"]

SHOWN = 5  # labels in a message


@runtime_checkable
class CostFrame(Protocol):
    """A DataFrame of costs: true labels down, predicted ones across."""

    @property
    def index(self) -> Iterable[Label]: ...

    @property
    def columns(self) -> Iterable[Label]: ...

    def to_numpy(self) -> NDArray[np.generic]: ...


# any labels: a mapping of some is no Mapping[Label, ...], which could be asked for others
Costs: TypeAlias = ArrayLike | Mapping[tuple[Any, Any], float] | CostFrame
Pairs: TypeAlias = dict[tuple[Label, Label], float]
Node = TypeVar("Node", bound=Label)


def costs_for(cost_matrix: Costs, classes: ArrayLike) -> Doubles:
    """Check costs and bring them into the order of the classes.

    Parameters
    ----------
    cost_matrix : array-like of shape (n_classes, n_classes), mapping or DataFrame
        An array is in the order of `classes`. A mapping ``{(true, predicted): cost}`` has all pairs
        of different classes. A DataFrame has the true labels as index, the predicted ones as
        columns. Mappings and DataFrames may know more labels than there are classes.
    classes : array-like of shape (n_classes,)
        The labels.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Finite, not negative, with zeros on the diagonal.

    Examples
    --------
    >>> from polymargin.costs import costs_for
    >>> costs_for({("ham", "spam"): 5, ("spam", "ham"): 1}, ["ham", "spam"])
    array([[0., 5.],
           [1., 0.]])
    """
    labels = np.asarray(classes)
    if isinstance(cost_matrix, Mapping):
        costs = _from_pairs(cost_matrix, labels.tolist())
    elif isinstance(cost_matrix, CostFrame):
        costs = _from_frame(cost_matrix, labels.tolist())
    else:
        costs = _from_array(cost_matrix, len(labels))
    _check_values(costs, labels.tolist())
    return costs


def without_types(cost_matrix: Costs, classes: ArrayLike) -> Doubles | Pairs:
    """Costs as an array in the order of the classes, whatever they were given as.

    Where costs by label know more labels than these, which a stream may yet bring, they are pairs.
    """
    costs, known = costs_for(cost_matrix, classes), set(np.asarray(classes).tolist())
    if isinstance(cost_matrix, CostFrame):
        columns = set(cost_matrix.columns)
        names = [name for name in cost_matrix.index if name in columns]
        numbers = _square(cost_matrix, names)
        cost_matrix = {
            (a, b): numbers[i, j] for i, a in enumerate(names) for j, b in enumerate(names)
        }
    if not isinstance(cost_matrix, Mapping):
        return costs
    if {label for pair in cost_matrix for label in pair} <= known:
        return costs
    return {pair: float(cost) for pair, cost in cost_matrix.items()}


def mean_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost_matrix: Costs,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """What predictions cost on average.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions.
    cost_matrix : array-like of shape (n_classes, n_classes), mapping or DataFrame
        As for :func:`costs_for`.
    classes : array-like of shape (n_classes,), default=None
        The labels, in the order of an array; by default all that occur, sorted.
    sample_weight : array-like of shape (n,), default=None
        Weights of the examples.

    Returns
    -------
    float
        The mean cost.

    Examples
    --------
    >>> from polymargin.costs import mean_cost
    >>> mean_cost(["ham", "spam"], ["spam", "spam"], [[0, 5], [1, 0]])
    2.5
    """
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if true.shape != predicted.shape or true.ndim != 1 or len(true) == 0:
        raise ValueError(
            f"y_true and y_pred must be 1-D, of one length and not empty, got shapes {true.shape} "
            f"and {predicted.shape}."
        )
    labels = np.asarray(np.union1d(true, predicted) if classes is None else classes).tolist()
    places = {label: place for place, label in enumerate(labels)}
    _require_known([*{*true.tolist(), *predicted.tolist()}], set(labels), "classes")
    costs = costs_for(cost_matrix, labels)
    each = [
        costs[places[a], places[b]] for a, b in zip(true.tolist(), predicted.tolist(), strict=True)
    ]
    weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    return float(np.average(each, weights=weights))


def _from_array(given: ArrayLike, n: int) -> Doubles:
    try:
        costs = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "cost_matrix must be numbers, a row per true class and a column per predicted one: "
            f"{error}."
        ) from error
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1]:
        raise ValueError(
            f"cost_matrix must be square, a row and a column per class, got shape {costs.shape}."
        )
    if len(costs) != n:
        raise ValueError(
            f"cost_matrix has {len(costs)} rows and columns, but there are {n} classes: give one "
            "of each for every class, in the order of classes_ (sorted labels), or costs by label "
            "as a mapping {(true, predicted): cost} or a DataFrame."
        )
    return costs


def _from_frame(frame: CostFrame, labels: list[Label]) -> Doubles:
    for name, axis in (("index", frame.index), ("columns", frame.columns)):
        known = list(axis)
        if len(set(known)) < len(known):
            raise ValueError(f"cost_matrix has a label twice in its {name}: name each class once.")
        _require_known(labels, set(known), f"the {name} of cost_matrix")
    return _from_array(_square(frame, labels), len(labels))


def _square(frame: CostFrame, labels: list[Label]) -> NDArray[np.generic]:
    """A row and a column for each label."""
    places = [{label: at for at, label in enumerate(axis)} for axis in (frame.index, frame.columns)]
    return frame.to_numpy()[np.ix_(*([at[label] for label in labels] for at in places))]


def _from_pairs(pairs: Mapping[tuple[Label, Label], float], labels: list[Label]) -> Doubles:
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(
            "cost_matrix as a mapping must have pairs (true label, predicted label) as keys, such "
            "as {('cat', 'dog'): 2.0}."
        )
    _require_known(labels, {label for pair in pairs for label in pair}, "cost_matrix")
    _require_all(labels, pairs)  # before there is an array of so many rows and columns
    places = {label: place for place, label in enumerate(labels)}
    costs = np.zeros((len(labels), len(labels)))
    for (true, predicted), cost in pairs.items():
        if true in places and predicted in places:
            at = places[true], places[predicted]
            try:
                costs[at] = cost
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"cost_matrix[{(true, predicted)!r}] must be a number, got {cost!r}."
                ) from error
    return costs


def _require_all(labels: list[Label], pairs: Mapping[tuple[Label, Label], object]) -> None:
    """Raise unless there is a cost for every two classes."""
    known = set(labels)
    n_given = sum(true in known and other in known and true != other for true, other in pairs)
    n_missing = len(labels) * (len(labels) - 1) - n_given
    if n_missing == 0:
        return
    every = ((true, other) for true in labels for other in labels if true != other)
    missing = list(islice((pair for pair in every if pair not in pairs), SHOWN))
    raise ValueError(
        f"cost_matrix lacks the cost of {_some(missing, n_missing)}: give one for every pair "
        "(true label, predicted label) of different classes."
    )


def _require_known(labels: list[Label], known: set[Label], where: str) -> None:
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(
            f"The data have classes that {where} does not know: {_some(unknown)}. Give their costs "
            "as well; labels must be of the type that they have in the data."
        )


def _check_values(costs: Doubles, labels: list[Label]) -> None:
    for wrong, what in (
        (~np.isfinite(costs), "is not a finite number"),
        (costs < 0, "is negative"),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"cost_matrix: the cost {costs[i, j]} of predicting {labels[j]!r} where "
                f"{labels[i]!r} is true {what}; costs must be finite, 0 or more."
            )
    own = np.flatnonzero(np.diag(costs))
    if len(own):
        i = own[0]
        raise ValueError(
            f"cost_matrix has {costs[i, i]} on its diagonal, for {labels[i]!r}: a right prediction "
            "costs nothing, so the diagonal must be 0."
        )


def _some(labels: Sequence[Label], count: int | None = None) -> str:
    count = len(labels) if count is None else count
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return ", ".join(map(repr, labels[:SHOWN])) + more


# --- ways to make one ----------------------------------------------------------------------------


def from_taxonomy(
    parents: Mapping[Node, Node | None], classes: ArrayLike | None = None, *, normalize: bool = True
) -> dict[tuple[Node, Node], float]:
    """Costs from a tree of classes: the way up to the lowest ancestor that both have.

    Parameters
    ----------
    parents : mapping
        The parent of every class and of every group of classes; the root has none, or None. A
        forest counts as a tree whose root is above all of its roots.
    classes : array-like, default=None
        The classes; by default the nodes that are no parents.
    normalize : bool, default=True
        Whether to divide by the mean of all costs, so that `C` keeps its meaning.

    Returns
    -------
    dict
        ``{(true, predicted): cost}``, for `cost_matrix`. The cost is the number of edges from the
        true class up to the lowest ancestor (or itself) that is one of the predicted class too;
        at least 1.

    Examples
    --------
    >>> from polymargin.costs import from_taxonomy
    >>> parents = {"cat": "animal", "dog": "animal", "car": "machine"}
    >>> costs = from_taxonomy(parents, normalize=False)
    >>> costs["cat", "dog"], costs["cat", "car"]
    (1.0, 2.0)
    """
    inner = {parent for parent in parents.values() if parent is not None}
    if classes is None:
        leaves: list[Node] = [node for node in parents if node not in inner]
    else:
        leaves = np.asarray(classes).tolist()
        unknown = [label for label in leaves if label not in parents and label not in inner]
        if unknown:
            raise ValueError(f"parents does not know {_some(unknown)}: give the parent of each.")
    if len(leaves) < 2:
        raise ValueError(f"A taxonomy needs at least 2 classes, got {_some(leaves) or 'none'}.")
    ways = {label: _way_up(label, parents) for label in leaves}
    costs = {(a, b): _steps_to_meet(ways[a], ways[b]) for a in leaves for b in leaves if a != b}
    mean = sum(costs.values()) / len(costs) if normalize else 1.0
    return {pair: cost / mean for pair, cost in costs.items()}


def _way_up(label: Node, parents: Mapping[Node, Node | None]) -> list[Node]:
    way = [label]
    while (above := parents.get(way[-1])) is not None:
        if above in way:
            raise ValueError(f"parents is not a tree: {above!r} is above itself.")
        way.append(above)
    return way


def _steps_to_meet(way: Sequence[Label], other: Sequence[Label]) -> float:
    shared = set(other)
    return float(max(1, next((up for up, node in enumerate(way) if node in shared), len(way))))


def from_confusion(
    confusion: ArrayLike,
    classes: Sequence[Label] | NDArray[np.generic] | None = None,
    *,
    smoothing: float = 1.0,
    normalize: bool = True,
) -> Doubles | Pairs:
    """Costs from a confusion matrix: what is often confused costs little.

    Parameters
    ----------
    confusion : array-like of shape (n_classes, n_classes)
        Counts, true classes down and predicted ones across; of people who label the same examples,
        for instance, or of another model.
    classes : array-like, default=None
        The labels of rows and columns, for costs by label.
    smoothing : float, default=1.0
        Added to every count: the larger, the more alike the costs.
    normalize : bool, default=True
        Whether to divide by the mean of all costs, so that `C` keeps its meaning.

    Returns
    -------
    ndarray or dict
        A cost matrix in the order of the rows; with `classes`, ``{(true, predicted): cost}``.
        The cost is ``-log q``, q the share of (true, predicted) among the class's examples.

    Examples
    --------
    >>> from polymargin.costs import from_confusion
    >>> costs = from_confusion([[8, 4, 0], [0, 9, 3], [1, 1, 9]], normalize=False)
    >>> bool(costs[0, 1] < costs[0, 2])
    True
    """
    counts = np.array(confusion, np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or len(counts) < 2:
        raise ValueError(f"confusion must be square, of 2 classes or more, got {counts.shape}.")
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("confusion must hold counts: finite, 0 or more.")
    if not (np.isfinite(smoothing) and smoothing > 0):
        raise ValueError(f"smoothing must be a positive number, got {smoothing!r}.")
    shares: Doubles = (counts + smoothing) / (counts + smoothing).sum(axis=1, keepdims=True)
    costs: Doubles = -np.log(shares)
    np.fill_diagonal(costs, 0.0)
    if normalize:
        costs /= costs.sum() / (costs.size - len(costs))
    if classes is None:
        return costs
    labels = np.asarray(classes).tolist()
    if len(labels) != len(costs) or len(set(labels)) != len(labels):
        raise ValueError(f"classes must be {len(costs)} different labels, got {labels!r}.")
    return {
        (a, b): float(costs[i, j])
        for i, a in enumerate(labels)
        for j, b in enumerate(labels)
        if i != j
    }
