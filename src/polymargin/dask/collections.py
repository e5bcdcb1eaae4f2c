"""Partitions of Dask collections: arrays, frames, and lists of delayed objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Future


def is_frame(X: object) -> bool:
    """Whether it is a Dask DataFrame or Series; without importing them where nobody did."""
    return is_dask_collection(X) and hasattr(X, "to_delayed") and hasattr(X, "map_partitions")


def is_parts(X: object) -> bool:
    """Whether it is a list of delayed partitions."""
    return isinstance(X, list | tuple) and any(isinstance(one, Delayed | Future) for one in X)


def is_lazy(X: object) -> bool:
    """Whether its rows are elsewhere."""
    return isinstance(X, da.Array) or is_frame(X) or is_parts(X)


def partitions_of(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    """Rows, labels and weights (or None) of each partition, to be computed."""
    if not is_lazy(X):
        raise TypeError(
            "X must be a Dask array, a Dask DataFrame or a list of delayed partitions, got "
            f"{type(X).__name__}: use LinearMulticlassSVC for data in memory."
        )
    if isinstance(X, da.Array):
        X = _whole_rows(X)
    rows = _parts(X)
    if not rows:
        raise ValueError("X has no partitions.")
    labels = _beside(X, len(rows), y, "y")
    nothing = [None] * len(rows)
    weights = nothing if sample_weight is None else _beside(X, len(rows), sample_weight, "weights")
    return list(zip(rows, labels, weights, strict=True))


def _whole_rows(X: da.Array) -> da.Array:
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix, got {X.ndim} dimension(s).")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _parts(X: Any) -> list[Any]:
    if isinstance(X, list | tuple):
        return list(X)
    parts = X.to_delayed()
    return list(parts.ravel() if isinstance(parts, np.ndarray) else parts)


def _beside(X: Any, n: int, values: Any, what: str) -> list[Any]:
    """Labels or weights in the partitions of X."""
    if isinstance(values, np.ndarray) and isinstance(X, da.Array):
        _check_known(X, what)
        values = da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))
    if isinstance(values, da.Array) and isinstance(X, da.Array):
        known = not np.isnan([*X.chunks[0], *values.chunks[0]]).any()
        if known and len(values) != len(X):
            raise ValueError(f"X has {len(X)} rows, but {what} has {len(values)}.")
        if known and values.chunks[0] != X.chunks[0]:
            values = values.rechunk({0: X.chunks[0]})
        values = values.rechunk({1: -1}) if values.ndim == 2 else values
    if not is_lazy(values) and not isinstance(values, list | tuple):
        raise TypeError(f"{what} must be in partitions as X is, got {type(values).__name__}.")
    parts = _parts(values)
    if len(parts) != n:
        raise ValueError(f"X has {n} partitions, but {what} has {len(parts)}.")
    return parts


def _check_known(X: da.Array, what: str) -> None:
    if np.isnan(X.chunks[0]).any():
        raise ValueError(
            f"{what} cannot be cut as X is, whose chunk sizes are unknown: give it as a Dask array "
            "of the same partitions, or call X.compute_chunk_sizes() first."
        )


def map_rows(predict: Callable[[Any], Any], X: Any, *, width: int | None, like: np.ndarray) -> Any:
    """`predict` of every partition, lazily, of the kind of X; `width` columns or a vector."""
    if isinstance(X, da.Array):
        X = _whole_rows(X)
        if width is None:
            return X.map_blocks(predict, dtype=like.dtype, drop_axis=1, meta=like[:0])
        chunks = (X.chunks[0], (width,))
        return X.map_blocks(predict, dtype=like.dtype, chunks=chunks, meta=like[:0, None])
    if isinstance(X, list | tuple):
        return [delayed(predict)(part) for part in X]
    import pandas as pd

    if width is None:
        frame: Any = pd.Series(like[:0])
    else:
        frame = pd.DataFrame(dict.fromkeys(range(width), like[:0]))
    return X.map_partitions(partial(_framed, predict), meta=frame)


def _framed(predict: Callable[[Any], Any], frame: Any) -> Any:
    import pandas as pd

    found = predict(frame)
    make = pd.Series if found.ndim == 1 else pd.DataFrame
    return make(found, index=frame.index)
