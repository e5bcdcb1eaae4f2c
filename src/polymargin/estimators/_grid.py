"""Grids of C: what is accepted, and which values are tried when only their number is given."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEAKEST, STRONGEST = 1e-2, 1e2  # C times the mean squared length of a row


def check_grid(Cs: Any) -> NDArray[np.float64] | int:
    """Give the values of C as floats, in the order given, or their number.

    Raises
    ------
    ValueError
        For an empty grid, for values that are no positive finite numbers, and for duplicates.
    """
    if isinstance(Cs, Integral) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ValueError(f"Cs must be at least 1 when it is a number of values, got {Cs}.")
        return int(Cs)
    try:
        grid = np.asarray(Cs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Cs must be positive numbers, or how many of them, got {Cs!r}."
        ) from error
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(
            "Cs must be a non-empty list of values of C, or how many of them, got "
            f"{'an empty one' if grid.size == 0 else f'{grid.ndim} dimension(s)'}."
        )
    wrong = grid[~(np.isfinite(grid) & (grid > 0))]
    if wrong.size:
        raise ValueError(f"Every C must be positive and finite, but Cs has {wrong.tolist()}.")
    values, counts = np.unique(grid, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"Cs has duplicates: {values[counts > 1].tolist()}; give each C once.")
    return grid


def spread_grid(
    Cs: NDArray[np.float64] | int, squared_lengths: NDArray, c: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the values of C; a number of them is spread to where the data can tell them apart.

    What regularises is ``C ||x||^2``, so the values reach from 0.01 to 100 divided by the mean
    squared length of the examples (with a kernel: the mean ``k(x, x)``), evenly in their logarithm.
    ``c`` are the costs of the examples at C = 1.
    """
    if isinstance(Cs, int):
        scale = float(squared_lengths[c > 0].mean())
        scale = scale if scale > 0 else 1.0
        Cs = np.geomspace(WEAKEST, STRONGEST, Cs) / scale if Cs > 1 else np.array([1.0 / scale])
    if not np.isfinite(float(Cs.max()) * float(c.max())):
        raise ValueError("C * sample_weight * class_weight overflows: use smaller ones.")
    return Cs
