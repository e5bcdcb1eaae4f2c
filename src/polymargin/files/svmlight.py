"""Reading svmlight (LIBSVM) text: at once, or in chunks of bounded memory.

The parsing is compiled (``src/core/text/svmlight.hpp``); here are blocks of bytes, the numbering of
features, and errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.core import core
from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.streams import errors_in, is_stdin, name_of, open_bytes
from polymargin.storage import StrPath, replacing

Parser = Any  # the compiled one
ZeroBased = bool | Literal["auto"]
BLOCK_BYTES = 1 << 20
ALL_ROWS = 2**62
_LARGEST_INDEX = 2**62


def read_svmlight(
    path: StrPath,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
) -> Dataset:
    """Read a whole svmlight file; see :func:`polymargin.io.read_data`."""
    parser = new_parser(dtype, n_features, zero_based)
    for _ in filled(parser, path, ALL_ROWS):
        pass  # one chunk only
    X, y = _as_arrays(parser, *extent(parser, zero_based, n_features))
    return Dataset(X=X, y=y, source=name_of(path))


def iter_svmlight(
    path: StrPath,
    *,
    rows: int = 100_000,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[sparse.csr_array, NDArray]]:
    r"""Read an svmlight file in chunks, for data that do not fit in memory.

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

    Examples
    --------
    >>> import os, tempfile
    >>> from polymargin.io import iter_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.svm")
    ...     _ = open(path, "w").write("1 1:0.5 3:2\n2 2:1\n1 1:1\n")
    ...     for X, y in iter_svmlight(path, rows=2):
    ...         print(X.shape, y.tolist())
    (2, 3) [1, 2]
    (1, 3) [1]
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}.")
    if n_features is None or zero_based == "auto":
        if is_stdin(path):
            raise ValueError(
                "Standard input can be read only once: give n_features, and True or False for "
                "zero_based."
            )
        scanner = new_parser(dtype, n_features, zero_based, keep=False)
        with errors_in(path):
            for _ in filled(scanner, path, ALL_ROWS):
                pass
            first, n_features = extent(scanner, zero_based, n_features)
        zero_based = first == 0
    return _chunks(new_parser(dtype, n_features, zero_based), path, rows, n_features, zero_based)


def _chunks(
    parser: Parser, path: StrPath, rows: int, n_features: int, zero_based: bool
) -> Iterator[tuple[sparse.csr_array, NDArray]]:
    for _ in filled(parser, path, rows):
        yield _as_arrays(parser, int(not zero_based), n_features)


def write_svmlight(dataset: Dataset, path: StrPath, *, zero_based: bool = False) -> None:
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

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from polymargin.io import Dataset, write_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "eye.svm")
    ...     write_svmlight(Dataset(X=np.eye(2), y=np.array([0, 1])), path)
    ...     print(open(path).read(), end="")
    0 1:1.0
    1 2:1.0
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


def new_parser(
    dtype: DTypeLike, n_features: int | None, zero_based: ZeroBased, *, keep: bool = True
) -> Parser:
    """A parser for numbers of a type; without `keep` it only checks and counts."""
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', got {zero_based!r}.")
    if n_features is not None and n_features < 0:
        raise ValueError(f"n_features must not be negative, got {n_features}.")
    parser = core.SvmlightParserF32 if dtype == np.float32 else core.SvmlightParserF64
    largest = _LARGEST_INDEX
    if n_features is not None:
        largest = n_features - 1 if zero_based is True else n_features
    return parser(smallest=0 if zero_based else 1, largest=largest, keep=keep)


def filled(parser: Parser, path: StrPath, rows: int) -> Iterator[None]:
    """Feed a file to a parser; yield whenever it holds `rows` rows, and at the end if any."""
    with open_bytes(path) as stream:
        yield from _fed(parser, stream, rows)


def _fed(parser: Parser, stream: BufferedIOBase, rows: int) -> Iterator[None]:
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
                raise DataFileError(reason, line=line, column=column)
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


def extent(parser: Parser, zero_based: ZeroBased, n_features: int | None) -> tuple[int, int]:
    """The index of the first feature and the number of features, after all was parsed."""
    first = int(parser.min_index != 0 if zero_based == "auto" else not zero_based)
    found = max(parser.max_index + 1 - first, 0)
    if n_features is not None and found > n_features:
        raise DataFileError(
            f"index {parser.max_index} is beyond n_features={n_features}: the first feature has "
            "index 0 in this file"
        )
    return first, found if n_features is None else n_features


def _as_arrays(parser: Parser, first: int, n_features: int) -> tuple[sparse.csr_array, NDArray]:
    labels, indptr, indices, values = parser.take()
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
