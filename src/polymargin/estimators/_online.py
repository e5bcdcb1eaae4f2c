"""What a machine that learns online looks like from outside: arrays, made when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.arrays import Floats, Matrix
from polymargin.estimators._labels import StreamLabels
from polymargin.losses import get_loss
from polymargin.solvers.engines.machine import LaRank, Model

LOSS = get_loss("crammer_singer")


class OnlineModel:
    """A machine with its labels, and copies of what it has learned.

    Make a new one when the machine has learned more. The arrays are made when they are first asked
    for: on a stream of small batches, copies of all support patterns after every batch would cost
    more than learning does.
    """

    def __init__(self, machine: LaRank, labels: StreamLabels) -> None:
        self.machine, self.labels = machine, labels

    @cached_property
    def _state(self) -> Model:
        return self.machine.model()

    @property
    def support(self) -> NDArray[np.int64]:
        """Numbers of the support patterns' examples."""
        return self._state.examples

    @cached_property
    def vectors(self) -> Matrix:
        """Rows of the support patterns."""
        return self.machine.vectors()

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


def model_array(name: str) -> property:
    """An attribute of an estimator that is one of its model."""

    def get(self: Any) -> Any:
        if not hasattr(self, "_model"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        return getattr(self._model, name)

    return property(get)
