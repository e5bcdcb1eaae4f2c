"""Learning online: codes for labels that may appear at any time, and arrays made when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.arrays import Attributes, Floats, Matrix
from polymargin.losses import get_loss
from polymargin.solvers.engines.machine import LaRank, Model

LOSS = get_loss("crammer_singer")
_TEXT = "OUS"


class StreamLabels:
    """Labels with codes 0, 1, ... (`by_code`) that never change: a new label gets the next."""

    def __init__(self, by_code: NDArray | None = None) -> None:
        self.by_code: NDArray = np.empty(0) if by_code is None else by_code

    def copy(self) -> StreamLabels:
        """Give labels that can grow without these."""
        return StreamLabels(self.by_code)

    def add(self, labels: Any) -> None:
        """Give codes to the labels that have none, in sorted order."""
        self._append(np.unique(np.asarray(labels)))

    def add_in_order(self, y: NDArray) -> NDArray[np.intp]:
        """Give codes to the labels that have none, in the order of their first appearance.

        Returns where in ``y`` each of them appears first.
        """
        labels, first = np.unique(y, return_index=True)
        order = np.argsort(first)
        labels, first = labels[order], first[order]
        return first[self._append(labels)]

    def missing(self, y: NDArray) -> NDArray:
        """The labels that have no code."""
        labels = np.unique(y)
        self.check_type(labels)
        return labels[~np.isin(labels, self.by_code)]

    def _append(self, labels: NDArray) -> NDArray[np.bool_]:
        """Append the labels that have no code; returns which."""
        self.check_type(labels)
        new = ~np.isin(labels, self.by_code)
        if len(self.by_code) == 0:
            self.by_code = labels
        elif new.any():
            self.by_code = np.concatenate([self.by_code, labels[new]])
        return new

    def check_type(self, labels: NDArray) -> None:
        """Raise ``ValueError`` where words come after numbers, or the other way round."""
        if len(self.by_code) == 0 or len(labels) == 0:
            return
        if (labels.dtype.kind in _TEXT) != (self.by_code.dtype.kind in _TEXT):
            raise ValueError(
                f"Labels of type {labels.dtype} do not go with those seen before, of type "
                f"{self.by_code.dtype}: use labels of one type."
            )

    def encode(self, y: NDArray) -> NDArray[np.int32]:
        """Give the codes of labels that have been added."""
        order = np.argsort(self.by_code)
        return order[np.searchsorted(self.by_code[order], y)].astype(np.int32)

    def sorted_codes(self) -> NDArray[np.intp]:
        """The codes in the order of the sorted labels."""
        return np.argsort(self.by_code)


class OnlineModel:
    """A machine with its labels, and copies of what it has learned.

    Make a new one when the machine has learned more. The arrays are made when they are first asked
    for: on a stream of small batches, copies of all support patterns after every batch would cost
    more than learning does.
    """

    def __init__(self, machine: LaRank, labels: StreamLabels) -> None:
        self.machine, self.labels = machine, labels

    @cached_property
    def _seen(self) -> tuple[Model, Matrix]:
        """The machine at one moment."""
        with self.machine.lock:
            model, vectors = self.machine.model(), self.machine.vectors()
        late = len(self.labels.by_code) - len(model.beta)  # not known to the machine yet
        if late > 0:
            model = model._replace(beta=np.pad(model.beta, ((0, late), (0, 0))))
        return model, vectors

    @property
    def _state(self) -> Model:
        return self._seen[0]

    @property
    def support(self) -> NDArray[np.int64]:
        """Numbers of the support patterns' examples."""
        return self._state.examples

    @property
    def vectors(self) -> Matrix:
        """Rows of the support patterns."""
        return self._seen[1]

    @cached_property
    def dual_coef(self) -> Floats:
        """Coefficients in the order of the sorted labels; one row for two classes."""
        beta = self._state.beta[self.labels.sorted_codes()].astype(self.machine.dtype)
        folded: Floats = LOSS.fold(beta)
        return folded

    @cached_property
    def n_support(self) -> NDArray[np.int64]:
        """Support patterns per class, in the order of the sorted labels."""
        codes = self.labels.sorted_codes()
        return np.bincount(self._state.y, minlength=len(codes))[codes]


class FrozenModel:
    """A model as it is now, for pickles and deep copies; they make an `OnlineModel` of it again."""

    def __init__(self, model: OnlineModel) -> None:
        with model.machine.lock:
            self._machine = model.machine.__getstate__()
            settings, patterns, dtype = self._machine.pop("made")
            self._made = settings, type(patterns), patterns.__getstate__(), dtype
            self._labels = model.labels

    def thawed(self) -> OnlineModel:
        """The model."""
        return _thawed(self._machine, self._made, self._labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return _thawed, (self._machine, self._made, self._labels)


def _thawed(state: Attributes, made: tuple[Any, ...], labels: StreamLabels) -> OnlineModel:
    settings, kind, of_patterns, dtype = made
    patterns, machine = kind.__new__(kind), LaRank.__new__(LaRank)
    patterns.__setstate__(of_patterns)
    machine.__setstate__(state | {"made": (settings, patterns, dtype)})
    return OnlineModel(machine, labels)


def model_array(name: str) -> property:
    """An attribute of an estimator that is one of its model."""

    def get(self: Any) -> Any:
        if not hasattr(self, "_model"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        return getattr(self._model, name)

    return property(get)


def check_unchanged(before: Attributes, now: Attributes) -> None:
    """Raise ``ValueError`` where a parameter is not what a stream began with."""
    changed = [name for name, value in before.items() if now[name] != value]
    if changed:
        raise ValueError(
            f"{', '.join(changed)} must not change along a stream: set back what was changed, "
            "or begin another one with a clone of the estimator."
        )
