"""Data that need not be in memory: data directories, and sources of blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from polymargin.arrays import Matrix
from polymargin.files import BlockSource, Dataset, open_directory, write_blocks
from polymargin.storage import TemporaryFolder

ROWS = 2**15  # predicted at a time
_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def is_stored(X: Any) -> bool:
    """Whether X is a path, an opened data file or a source of blocks."""
    return isinstance(X, str | os.PathLike | Dataset | BlockSource)


def blocks_of(X: Any) -> Iterator[tuple[Matrix, NDArray | None, NDArray | None]]:
    """Features, labels and weights of stored data, a block after the other."""
    if isinstance(X, BlockSource):
        yield from X
        return
    data, _ = opened(X)
    for first in range(0, data.n_examples, ROWS):
        part = slice(first, first + ROWS)
        labels = (None if one is None else one[part] for one in (data.y, data.weight))
        yield data.X[part], *labels


def opened(X: Any) -> tuple[Dataset, TemporaryFolder | None]:
    """A data directory with features; where a source was copied to one, what to hold on to."""
    if isinstance(X, BlockSource):
        folder = TemporaryFolder()
        try:
            return copied(X, folder), folder
        except BaseException:
            folder.remove()
            raise
    return _with_features(X if isinstance(X, Dataset) else open_directory(X)), None


def copied(source: BlockSource, folder: TemporaryFolder) -> Dataset:
    """The data of a source, on disk."""
    return open_directory(write_blocks(source, folder.path / "data"))


def _with_features(data: Dataset) -> Dataset:
    if data.X is None:
        raise ValueError(f"{data.source} holds text: vectorise it first.")
    return data


def bytes_of(limit: str | float) -> float:
    """A size such as "2GB" (10^9 bytes each), "500 MB" or "1GiB" (2^30) in bytes."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", str(limit))
    unit = None if match is None else _UNITS.get(match[2].upper())
    try:
        if match is not None and unit is not None and float(match[1]) > 0:
            return float(match[1]) * unit
    except ValueError:
        pass
    raise ValueError(f'memory_limit must be a size such as "2GB" or "500MB", got {limit!r}.')
