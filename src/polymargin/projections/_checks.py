"""Checks of what the projections are given: one place for each kind of argument."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from polymargin.arrays import Doubles, Floats


def as_rows(v: ArrayLike) -> Floats:
    """Return v as a C-contiguous matrix of float32 or float64, a vector as its only row.

    Whether the entries are finite is seen by the kernel as it reads them.
    """
    array = np.asarray(v)
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    native = array.dtype.newbyteorder("=")
    if native not in (np.float32, np.float64):
        raise TypeError(
            f"v has the dtype {array.dtype}; give float32 or float64 (or integers, which are "
            "converted to float64)."
        )
    if array.ndim not in (1, 2):
        raise ValueError(
            f"v has {array.ndim} dimensions; give a vector or a matrix whose rows are projected."
        )
    if array.shape[-1] == 0:
        raise ValueError(f"v is empty, of shape {array.shape}; a row needs one entry at least.")
    return np.ascontiguousarray(np.atleast_2d(array), dtype=native)


def positive_per_row(name: str, value: ArrayLike, rows: int) -> Doubles:
    """Return one positive finite number per row, given as such or as a single number."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number or one number per row, got {value!r}.")
    if array.ndim > 1 or (array.ndim == 1 and len(array) != rows):
        raise ValueError(
            f"{name} has the shape {array.shape}; give a number or one for each of the {rows} rows."
        )
    array = array.astype(np.float64)
    if not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
    if not np.all(array < 1e300):
        raise ValueError(f"{name} must be less than 1e300, got {value!r}.")
    return np.ascontiguousarray(np.broadcast_to(array, (rows,)))


def check_method(method: str, known: tuple[str, ...]) -> None:
    """Raise if there is no method of that name."""
    if method not in known:
        raise ValueError(f"Unknown method {method!r}; choose one of {', '.join(known)}.")


def in_range(name: str, value: object, bound: float, must: str) -> float:
    """Return a real number as a float; it is at least zero and less than `bound`."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}.")
    number = float(value)
    if not 0 <= number < bound:
        raise ValueError(f"{name} must {must}, got {number!r}.")
    return number


def check_k(k: object, entries: int) -> int:
    """Return k, an integer between 1 and the number of entries."""
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise TypeError(f"k must be an integer, got {k!r}.")
    if not 1 <= int(k) <= entries:
        raise ValueError(f"k must lie between 1 and the {entries} entries of a row, got {k}.")
    return int(k)


def result(bad_row: int, P: Floats, v: ArrayLike) -> Floats:
    """Return what a kernel has written, in the shape of v; raise if it met a row it cannot use."""
    if bad_row >= 0:
        raise ValueError(
            f"Row {bad_row} of v contains NaN, infinity or (in float64) a value beyond 1e300; "
            "every entry must be finite."
        )
    return P.reshape(np.shape(v))
