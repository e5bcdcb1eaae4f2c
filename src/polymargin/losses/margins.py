"""The margins between classes that a loss demands, where they are not all 1."""

from __future__ import annotations

import numpy as np

from polymargin.arrays import Doubles
from polymargin.storage import digest_of


class Margins:
    """``Delta(y, j)``, a row per true class; equal to others with the same numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from polymargin import get_loss
    >>> from polymargin.losses import Margins
    >>> margins = Margins(np.array([[0.0, 1.0], [5.0, 0.0]]))  # true, wrong class
    >>> get_loss("crammer_singer", margins=margins).name
    'crammer_singer'
    """

    def __init__(self, delta: Doubles) -> None:
        self.delta = np.ascontiguousarray(delta, np.float64)
        if self.delta.ndim != 2 or self.delta.shape[0] != self.delta.shape[1]:
            raise ValueError(f"margins must be a square matrix, got shape {self.delta.shape}.")
        off = self.delta[~np.eye(len(self.delta), dtype=bool)]
        if not np.isfinite(off).all() or (off < 0).any() or np.diag(self.delta).any():
            raise ValueError("margins must be finite, 0 or more, and 0 on the diagonal.")
        self.delta.flags.writeable = False
        self.digest = digest_of(self.delta)

    @staticmethod
    def of(delta: Doubles) -> Margins | None:
        """Margins, or None where all of them are 1: that is what a loss has without."""
        off = ~np.eye(len(delta), dtype=bool)
        return None if (delta[off] == 1).all() else Margins(np.array(delta, np.float64))

    def __len__(self) -> int:
        return len(self.delta)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Margins) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Margins of {len(self)} classes, {self.digest[:12]}"

    def __reduce__(self) -> tuple[type[Margins], tuple[Doubles]]:
        return Margins, (self.delta,)
