"""Class codes for a stream of labels, where new labels may appear at any time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TEXT = "OUS"


class StreamLabels:
    """Labels with codes 0, 1, ... that never change: a new label gets the next code.

    Attributes
    ----------
    by_code : ndarray
        The labels in the order of their codes.
    """

    def __init__(self) -> None:
        self.by_code: NDArray = np.empty(0)

    def copy(self) -> StreamLabels:
        """Give labels that can grow without these."""
        labels = StreamLabels()
        labels.by_code = self.by_code
        return labels

    def add(self, labels: Any) -> None:
        """Give codes to the labels that have none, in sorted order."""
        new = np.unique(np.asarray(labels))
        if len(self.by_code) == 0:
            self.by_code = new
            return
        if (new.dtype.kind in _TEXT) != (self.by_code.dtype.kind in _TEXT):
            raise ValueError(
                f"Labels of type {new.dtype} do not go with those seen before, of type "
                f"{self.by_code.dtype}: use labels of one type."
            )
        new = new[~np.isin(new, self.by_code)]
        if len(new):
            self.by_code = np.concatenate([self.by_code, new])

    def encode(self, y: NDArray) -> NDArray[np.int32]:
        """Give the codes of labels that have been added."""
        order = np.argsort(self.by_code)
        return order[np.searchsorted(self.by_code[order], y)].astype(np.int32)

    def sorted_codes(self) -> NDArray[np.intp]:
        """The codes in the order of the sorted labels."""
        return np.argsort(self.by_code)
