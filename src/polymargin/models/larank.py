"""The state of a LaRank machine as plain values, and back: it goes on learning where it was."""

from __future__ import annotations

import numpy as np

from polymargin.arrays import Attributes
from polymargin.estimators import LaRankClassifier
from polymargin.kernel_functions import squared_row_norms
from polymargin.solvers.engines.machine import LaRank, MachineSettings
from polymargin.solvers.engines.patterns import (
    PatternStore,
    PrecomputedPatterns,
    VectorPatterns,
)

_PER_PATTERN = ("examples", "y", "diagonal")
_PER_VECTOR = ("patterns", "classes", "beta", "gradient")
_NUMBERS = ("n_classes", "n_seen", "evaluation_cost", "counts", "rates", "random_state")
_TYPES = {
    "examples": np.int64,
    "y": np.int32,
    "diagonal": np.float64,
    "patterns": np.int32,
    "classes": np.int32,
    "beta": np.float64,
    "gradient": np.float64,
}


def state_of(model: LaRankClassifier) -> Attributes:
    """Everything that a machine knows, as numbers and arrays."""
    machine, labels = model.learned()
    state = machine.state_dict()  # compacts the patterns: slots are 0, 1, ... afterwards
    store = machine.patterns
    state |= {
        "settings": {**vars(machine.settings)},
        "dtype": machine.dtype.name,
        "labels": labels,
        "n_evaluations": int(store.n_evaluations),
    }
    if isinstance(store, VectorPatterns):
        vectors = store.vectors(np.arange(machine.n_patterns, dtype=np.int32))
        # computed again by who reads them
        return state | {"vectors": vectors, "norms": squared_row_norms(vectors)}
    assert isinstance(store, PrecomputedPatterns)
    return state | {"columns": store.columns}


def restore(model: LaRankClassifier, state: Attributes) -> None:
    """Give a classifier the machine that the state describes; ``ValueError`` where it is wrong."""
    settings = MachineSettings(**{**state["settings"]})
    if not all(isinstance(one, (bool, int, float, tuple)) for one in vars(settings).values()):
        raise ValueError("settings of a LaRank machine that are not numbers")
    _check(state)
    machine = LaRank(settings, _patterns(model, state), np.dtype(state["dtype"]), 1.0, 0)
    machine.load_state_dict({key: state[key] for key in (*_PER_PATTERN, *_PER_VECTOR, *_NUMBERS)})
    model.go_on_from(machine, state["labels"])
    if not np.array_equal(np.sort(state["labels"]), model.classes_):
        raise ValueError("the labels of a LaRank machine are not the classes of its classifier")


def _check(state: Attributes) -> None:
    for key, dtype in _TYPES.items():
        array = state[key]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            raise ValueError(f"{key} of a LaRank machine is not an array as it should be")
        if not np.isfinite(array).all():
            raise ValueError(f"{key} of a LaRank machine is not finite")
    n_classes, n = state["n_classes"], len(state["examples"])
    if state["dtype"] not in ("float32", "float64"):
        raise ValueError("a LaRank machine of unknown type")
    if len(state["labels"]) != n_classes:
        raise ValueError("a LaRank machine with more classes than labels, or fewer")
    if any(len(state[key]) != n for key in _PER_PATTERN):
        raise ValueError("patterns of a LaRank machine differ in number")
    if any(len(state[key]) != len(state["beta"]) for key in _PER_VECTOR):
        raise ValueError("support vectors of a LaRank machine differ in number")
    for key, limit in (("y", n_classes), ("classes", n_classes), ("patterns", n)):
        if len(state[key]) and not 0 <= state[key].min() <= state[key].max() < limit:
            raise ValueError(f"{key} of a LaRank machine points outside")
    entries = state["patterns"].astype(np.int64) * n_classes + state["classes"]
    examples = state["examples"]
    if len(np.unique(entries)) != len(entries) or len(np.unique(examples)) != n:
        raise ValueError("a LaRank machine with the same pattern twice")
    if n and not 0 <= examples.min() <= examples.max() < state["n_seen"]:
        raise ValueError("examples of a LaRank machine that it has not seen")
    if len(np.unique(state["patterns"])) != n:
        raise ValueError("a LaRank machine with patterns that support nothing")


def _patterns(model: LaRankClassifier, state: Attributes) -> PatternStore:
    n, dtype = len(state["examples"]), np.dtype(state["dtype"])
    store: PrecomputedPatterns | VectorPatterns
    if "columns" in state:
        columns = state["columns"]
        if columns.shape != (n,) or (n and not 0 <= columns.min() <= columns.max()):
            raise ValueError("columns of a LaRank machine are wrong")
        if model.kernel != "precomputed":
            raise ValueError("a LaRank machine without its patterns")
        store = PrecomputedPatterns(dtype, columns)
    else:
        vectors, norms = state["vectors"], state["norms"]
        if vectors.shape != (n, model.n_features_in_) or norms.shape != (n,):
            raise ValueError("patterns of a LaRank machine have the wrong shape")
        if vectors.dtype != dtype or norms.dtype != dtype:
            raise ValueError("patterns of a LaRank machine have the wrong type")
        store = VectorPatterns.of_rows(model._kernel_function(), vectors)
    store.n_evaluations = state["n_evaluations"]
    return store
