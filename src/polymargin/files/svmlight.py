"""Reading svmlight (LIBSVM) text: at once, or in chunks of bounded memory.

The parsing is compiled (``src/core/text/svmlight.hpp``); here are blocks of bytes, the numbering of
features, and errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin._kernels import kernels
from polymargin.files.dataset import Dataset
from polymargin.files.errors import DataFileError
from polymargin.files.streams import is_stdin, name_of, open_bytes
from polymargin.storage import replacing

ZeroBased = bool | Literal["auto"]
BLOCK_BYTES = 1 << 20
ALL_ROWS = 2**62
_LARGEST_INDEX = 2**62


@dataclass(frozen=True)
class Extent:
    """What a first pass over a file finds.

    Attributes
    ----------
    n_examples, n_values : int
        Lines with an example, and their entries.
    min_index, max_index : int
        As written in the file; -1 where there are no entries.
    """

    n_examples: int
    n_values: int
    min_index: int
    max_index: int


def read_svmlight(
    path: Any,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: Any = np.float64,
) -> Dataset:
    """Read a whole svmlight file; see :func:`polymargin.io.read_data`."""
    parser = _new_parser(dtype, n_features, zero_based)
    with open_bytes(path) as stream:
        for _ in _filled(parser, stream, path, ALL_ROWS):
            pass  # one chunk only
    first = _first_index(zero_based, parser.min_index)
    width = _width(n_features, parser.max_index, first, path)
    X, y = _as_arrays(parser.take(), width, first)
    return Dataset(X=X, y=y, source=name_of(path))


def iter_svmlight(
    path: Any,
    *,
    rows: int = 100_000,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: Any = np.float64,
) -> Iterator[tuple[sparse.csr_array, NDArray]]:
    """Read an svmlight file in chunks, for data that do not fit in memory.

    Parameters
    ----------
    path : path or "-"
        The file, which may be compressed; "-" is standard input.
    rows : int, default=100_000
        Examples per chunk; the last one may have fewer.
    n_features : int, default=None
        Number of features. None: a first pass over the file finds the largest index.
    zero_based : bool or "auto", default="auto"
        Whether the first feature has index 0. "auto": if index 0 occurs anywhere in the file, which
        takes a first pass.
    dtype : dtype, default=float64
        float32 or float64.

    Yields
    ------
    X : csr_array of shape (rows, n_features)
        Features, with sorted indices. All chunks have the same number of columns.
    y : ndarray of shape (rows,)
        Labels; integers if all of the chunk's are whole.

    Raises
    ------
    DataFileError
        For a line that is not svmlight text, with its place.
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}.")
    if n_features is None or zero_based == "auto":
        if is_stdin(path):
            raise ValueError(
                "Standard input can be read only once: give n_features, and True or False for "
                "zero_based."
            )
        extent = scan_svmlight(path, n_features=n_features, zero_based=zero_based)
        first = _first_index(zero_based, extent.min_index)
        n_features = _width(n_features, extent.max_index, first, path)
        zero_based = first == 0
    return _chunks(path, rows, n_features, zero_based, dtype)


def _chunks(
    path: Any, rows: int, n_features: int, zero_based: bool, dtype: Any
) -> Iterator[tuple[sparse.csr_array, NDArray]]:
    parser = _new_parser(dtype, n_features, zero_based)
    with open_bytes(path) as stream:
        for _ in _filled(parser, stream, path, rows):
            yield _as_arrays(parser.take(), n_features, 0 if zero_based else 1)


def scan_svmlight(
    path: Any, *, n_features: int | None = None, zero_based: ZeroBased = "auto"
) -> Extent:
    """Check a file from beginning to end and count what it holds, in little memory."""
    parser = _new_parser(np.float64, n_features, zero_based, keep=False)
    with open_bytes(path) as stream:
        for _ in _filled(parser, stream, path, ALL_ROWS):
            pass
    smallest = parser.min_index if parser.max_index >= 0 else -1
    return Extent(parser.n_rows_seen, parser.n_values_seen, smallest, parser.max_index)


def write_svmlight(dataset: Dataset, path: Any, *, zero_based: bool = False) -> None:
    """Write features and labels as svmlight text, which LIBLINEAR and many others read.

    Parameters
    ----------
    dataset : Dataset
        With `X`, and labels that are numbers (without labels: 0).
    path : path
        The file, written whole or not at all. Numbers are written such that reading gives them
        back exactly; zeros are left out.
    zero_based : bool, default=False
        Whether the first feature gets index 0; LIBLINEAR needs 1.
    """
    if dataset.X is None:
        raise ValueError("svmlight files hold features, not text: vectorise it first.")
    y = np.zeros(dataset.n_examples, np.int64) if dataset.y is None else dataset.y
    if y.dtype.kind not in "biuf":
        raise ValueError("svmlight labels are numbers: number the classes first.")
    X = sparse.csr_array(dataset.X)
    labels = (y.astype(np.int64) if y.dtype.kind == "b" else y).tolist()
    with replacing(path) as file:
        for i, label in enumerate(labels):
            row = slice(X.indptr[i], X.indptr[i + 1])
            columns = (X.indices[row] + (not zero_based)).tolist()
            pairs = zip(columns, X.data[row].tolist(), strict=True)
            entries = (f" {column}:{value!r}" for column, value in pairs if value)
            file.write(f"{label!r}{''.join(entries)}\n".encode())


def raw_chunks(path: Any, rows: int, dtype: Any, zero_based: ZeroBased) -> Iterator[Any]:
    """Yield (labels, indptr, indices, values), indices as written; for conversions."""
    parser = _new_parser(dtype, None, zero_based)
    with open_bytes(path) as stream:
        for _ in _filled(parser, stream, path, rows):
            yield parser.take()


def _new_parser(
    dtype: Any, n_features: int | None, zero_based: ZeroBased, keep: bool = True
) -> Any:
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}.")
    if n_features is not None and n_features < 0:
        raise ValueError(f"n_features must not be negative, got {n_features}.")
    parser = kernels.SvmlightParserF32 if dtype == np.float32 else kernels.SvmlightParserF64
    largest = _LARGEST_INDEX
    if n_features is not None:
        largest = n_features - 1 if zero_based is True else n_features
    return parser(smallest=0 if zero_based else 1, largest=largest, keep=keep)


def _filled(parser: Any, stream: Any, path: Any, rows: int) -> Iterator[None]:
    """Feed the parser; yield whenever it holds `rows` rows, and at the end if it holds any."""
    buffer = np.empty(BLOCK_BYTES, np.uint8)
    filled, last = 0, False
    while not last:
        while filled < len(buffer) and not last:
            n_read = stream.readinto(buffer[filled:].data)
            last = not n_read
            filled += n_read
        start = 0
        while True:
            consumed = parser.parse(buffer[start:filled], last, rows)
            if consumed < 0:
                reason, line, column = parser.error
                raise DataFileError(reason, path=name_of(path), line=line, column=column)
            start += consumed
            if parser.n_rows < rows:
                break
            yield
            if parser.n_rows >= rows:
                raise RuntimeError("the rows were not taken")
        buffer[: filled - start] = buffer[start:filled]
        filled -= start
        if filled == len(buffer):  # a line longer than that
            buffer = np.concatenate([buffer, np.empty_like(buffer)])
    if parser.n_rows:
        yield


def _first_index(zero_based: ZeroBased, min_index: int) -> int:
    if zero_based == "auto":
        return 0 if min_index == 0 else 1
    return 0 if zero_based else 1


def _width(n_features: int | None, max_index: int, first: int, path: Any) -> int:
    found = max(max_index + 1 - first, 0)
    if n_features is None:
        return found
    if found > n_features:
        raise DataFileError(
            f"index {max_index} is beyond n_features={n_features}: the first feature has index 0 "
            "in this file",
            path=name_of(path),
        )
    return n_features


def _as_arrays(parts: Any, n_features: int, first: int) -> tuple[sparse.csr_array, NDArray]:
    labels, indptr, indices, values = parts
    if first:
        indices -= indices.dtype.type(first)
    if indices.dtype == np.int32 and len(values) < 2**31:
        indptr = indptr.astype(np.int32)  # of one type, or SciPy would widen the indices
    X = sparse.csr_array((values, indices, indptr), shape=(len(labels), n_features))
    X.has_canonical_format = True
    return X, whole_labels(labels)


def whole_labels(labels: NDArray[np.float64]) -> NDArray:
    """Integers where all labels are whole numbers that integers hold exactly."""
    whole = (labels == np.floor(labels)) & (np.abs(labels) < 2.0**53)
    return labels.astype(np.int64) if whole.all() else labels
