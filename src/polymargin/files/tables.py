"""Tables with a label column, read by pyarrow: what is common to CSV, JSON lines and Parquet."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polymargin.files.columns import (
    Choice,
    Wanted,
    labels_from_text,
    labels_from_values,
    no_rows,
)
from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.streams import is_stdin, open_bytes
from polymargin.storage import StrPath

if TYPE_CHECKING:
    import pyarrow


class Source:
    """A file that can be opened more than once; so can standard input, which is kept."""

    def __init__(self, path: StrPath) -> None:
        self.path = path
        self._kept: bytes | None = None

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Its bytes, decompressed."""
        if not is_stdin(self.path):
            with open_bytes(self.path) as stream:
                yield stream
            return
        if self._kept is None:
            with open_bytes(self.path) as stream:
                self._kept = stream.read()
        yield io.BytesIO(self._kept)


@dataclass(frozen=True)
class Found:
    """A table as its reader found it.

    `line_of` gives the line in the file of a row; `explain` raises a located error if a row is not
    what was wanted, and is called where something was seen to be wrong. Labels `from_text` are
    numbers if they are written as such.
    """

    table: pyarrow.Table
    choice: Choice
    line_of: Callable[[int], int | None]
    explain: Callable[[], None]
    from_text: bool = False
    named: bool = True


def in_memory(stream: io.BufferedIOBase) -> pyarrow.BufferReader:
    """The rest of a stream, for pyarrow's readers.

    Their threads let go of a stream some time after the table is there. If Python ends just then,
    one that waits for Python to let go of a stream of its own would end the process.
    """
    import pyarrow

    held = pyarrow.BufferOutputStream()
    shutil.copyfileobj(stream, held, 1 << 20)
    return pyarrow.BufferReader(held.getvalue())


def need_pyarrow() -> None:
    """Say which extra is missing, if it is."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "CSV, JSON lines and Parquet files are read by pyarrow: "
            "pip install 'polymargin[tables]'."
        ) from error


def as_dataset(found: Found, wanted: Wanted, dtype: DTypeLike) -> Dataset:
    """The examples of a table that were asked for."""
    choice, table = found.choice, plain(found.table)
    line_of = found.line_of
    if choice.where:
        kept = _chosen_rows(table, choice)
        table = table.take(kept)
        line_of = lambda row: found.line_of(int(kept[row]))  # noqa: E731
    if table.num_rows == 0:
        raise no_rows(choice, {})
    label = choice.label
    return Dataset(
        X=matrix(table, choice.features, found.explain, dtype) if choice.is_numeric else None,
        y=None if label is None else _labels(table.column(label), found, line_of, wanted.source),
        text=None if choice.text is None else _texts(table.column(choice.text), found),
        table=table.select(choice.features) if choice.is_table else None,
        feature_names=choice.features
        if choice.is_table or (choice.is_numeric and found.named)
        else None,
        source=wanted.source,
        label_name=label,
        place_of=lambda row: f"{wanted.source}:{line_of(row)}",
    )


def plain(table: pyarrow.Table) -> pyarrow.Table:
    """The table with a few types only: categories as what they are of, times of day as strings."""
    import pyarrow
    from pyarrow import types

    for i, field in enumerate(table.schema):
        kind = field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_large_string(kind) or types.is_string_view(kind) or types.is_time(kind):
            kind = pyarrow.string()
        elif types.is_decimal(kind) or types.is_float16(kind):
            kind = pyarrow.float64()
        if kind != field.type:
            table = table.set_column(i, field.name, table.column(i).cast(kind))
    return table


def _chosen_rows(table: pyarrow.Table, choice: Choice) -> NDArray[np.int64]:
    """Numbers of the rows with the values asked for."""
    wanted = np.ones(table.num_rows, bool)
    seen = {}
    for name, allowed in choice.where.items():
        codes, values = _encoded(table.column(name))
        shown = [str(value) for value in values]
        seen[name] = set(shown)
        wanted &= np.array([value in allowed for value in shown], bool)[codes]
    if not wanted.any():
        raise no_rows(choice, seen)
    return np.flatnonzero(wanted)


def _encoded(column: pyarrow.ChunkedArray) -> tuple[NDArray[np.int64], list[object]]:
    """Values as positions in the list of the different ones, in the order of their occurrence."""
    import pyarrow

    if pyarrow.types.is_nested(column.type):  # lists and the like, which have no such encoding
        return np.arange(len(column)), column.to_pylist()
    encoded = column.combine_chunks().dictionary_encode("encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), encoded.dictionary.to_pylist()


def _labels(
    column: pyarrow.ChunkedArray,
    found: Found,
    line_of: Callable[[int], int | None],
    source: str,
) -> NDArray:
    if column.null_count:
        found.explain()
    codes, values = _encoded(column)
    if found.from_text:
        if "" in values:
            found.explain()
        return labels_from_text([str(value) for value in values], source)[codes]
    first = {int(code): row for code, row in zip(*np.unique(codes, return_index=True), strict=True)}
    lines = [line_of(int(first[i])) for i in range(len(values))]
    return labels_from_values(values, lines, source)[codes]


def _texts(column: pyarrow.ChunkedArray, found: Found) -> list[str]:
    import pyarrow

    if column.null_count or not pyarrow.types.is_string(column.type):
        found.explain()
        raise DataFileError(f"the column {found.choice.text!r} is not text: {column.type}")
    texts: list[str] = column.to_pylist()
    return texts


def matrix(
    table: pyarrow.Table, features: Sequence[str], explain: Callable[[], None], dtype: DTypeLike
) -> NDArray:
    """The features as numbers; `explain` says where one is not finite, or none."""
    X = np.empty((table.num_rows, len(features)), dtype)
    start = 0
    chosen = table.select(features)
    for batch in chosen.to_batches():  # so many rows at a time that they stay in the cache
        part = X[start : start + batch.num_rows]
        for j, column in enumerate(batch.columns):
            part[:, j] = _numbers(column, explain, features[j])
        start += batch.num_rows
    with np.errstate(over="ignore"):
        if not np.isfinite(X.sum()) and not np.isfinite(X).all():
            explain()
            _refuse_infinite(X, features)
    return X


def _numbers(column: pyarrow.Array, explain: Callable[[], None], name: str) -> NDArray:
    if column.null_count:
        explain()
        raise DataFileError(f"the column {name!r} has missing values: fill them in")
    values: NDArray = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "biuf":
        return values
    try:  # written in a way that Python reads as a number
        return np.array([float(value) for value in values.tolist()])
    except (TypeError, ValueError):
        explain()
        raise not_a_number(values[0], name, None) from None


def _refuse_infinite(X: NDArray, features: Sequence[str]) -> None:
    row, column = np.argwhere(~np.isfinite(X))[0]
    raise DataFileError(
        f"the value of example {row + 1} in column {features[column]!r} is not finite "
        f"({X[row, column]}) in this precision"
    )


def not_a_number(
    found: object, column: str, line: int | None, position: int | None = None
) -> DataFileError:
    """The error for a cell that should be a number."""
    shown = repr(found) if len(repr(found)) < 60 else repr(found)[:60] + "..."
    what = "is empty" if found in ("", None) else f"holds {shown}, which is not a number"
    return DataFileError(
        f"the column {column!r} {what}; leave it out with features=, name the text with text=, or "
        "take columns of all kinds with table=True",
        line=line,
        column=position,
    )


def not_finite(
    found: object, column: str, line: int | None, position: int | None = None
) -> DataFileError:
    """The error for a number that no model can use."""
    return DataFileError(
        f"the value of the column {column!r} is not finite ({found}): fill in missing values",
        line=line,
        column=position,
    )
