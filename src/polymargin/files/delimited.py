"""Comma-separated values and their kin: found out by Python's reader, read by pyarrow's.

Where pyarrow refuses a file, or a value is not what was wanted, Python's reader goes through it
again, to say in which line and field.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

from polymargin.files.columns import MISSING, Choice, Wanted, choose
from polymargin.files.dataset import DataFileError
from polymargin.files.tables import Found, Source, in_memory, need_pyarrow, not_a_number, not_finite

if TYPE_CHECKING:
    from _csv import Reader

    import pyarrow

DELIMITERS = ",;\t|"
_BLOCK = 1 << 20  # bytes that one thread reads at a time; no row may be longer
_LARGEST_BLOCK = 1 << 30
_LONGEST_FIELD = 2**31 - 1
_QUOTED = re.compile('"[^"]*"')


@dataclass(frozen=True)
class Dialect:
    """How a file is written."""

    delimiter: str
    names: list[str]  # of its columns, as they are or made up
    header: bool
    skipped: int  # lines before the values begin


def read_delimited(source: Source, wanted: Wanted, delimiter: str | None) -> Found:
    """Read comma- (or semicolon-, tab-, bar-) separated values, with or without a header."""
    need_pyarrow()
    dialect = _dialect(source, delimiter)
    choice = choose(dialect.names, wanted, last_column=True)

    def explain() -> None:
        _explain(source, dialect, choice)

    return Found(
        table=_read(source, dialect, choice, wanted),
        choice=choice,
        line_of=lambda row: _line_of(source, dialect, row),
        explain=explain,
        from_text=True,
        named=dialect.header,
    )


def _dialect(source: Source, delimiter: str | None) -> Dialect:
    with _rows(source, delimiter) as (reader, delimiter):
        empty = 0
        for first in reader:
            if first:
                break
            empty += 1
        else:
            raise DataFileError("the file is empty")
        header = not any(map(_is_number, first))
        if header and not any(reader):
            raise DataFileError("the file holds no examples")
    if not header:
        return Dialect(delimiter, [f"column {i + 1}" for i in range(len(first))], False, empty)
    names = [cell.strip() for cell in first]
    # the first column of an index has no name; other such columns are called by their place
    names = [name or (f"column {i + 1}" if i else "") for i, name in enumerate(names)]
    return Dialect(delimiter, names, True, empty + 1)


@contextmanager
def _rows(source: Source, delimiter: str | None) -> Iterator[tuple[Reader, str]]:
    """The rows as Python reads them, strictly; and the delimiter."""
    reader = None
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with source.open() as stream:
            lines = io.TextIOWrapper(cast(IO[bytes], stream), "utf-8-sig", newline="")
            try:
                first = next(lines, "")
                if delimiter is None:
                    delimiter = max(DELIMITERS, key=_QUOTED.sub("", first).count)
                both = itertools.chain([first], lines)
                reader = csv.reader(both, delimiter=delimiter, strict=True)
                yield reader, delimiter
            finally:
                lines.detach()
    except csv.Error as error:
        line = reader.line_num if reader else None
        raise DataFileError(f"not well-formed: {error}", line=line) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(source, error) from error
    finally:
        csv.field_size_limit(limit)


def _not_utf8(source: Source, error: UnicodeDecodeError) -> DataFileError:
    number = 1
    with source.open() as stream:
        for number, line in enumerate(stream, start=1):
            if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                return DataFileError("the file is UTF-16: write it as UTF-8", line=1)
            try:
                line.decode()
            except UnicodeDecodeError:
                break
    reason = f"not UTF-8 text ({error.reason}): write the file as UTF-8"
    return DataFileError(reason, line=number)


def _read(source: Source, dialect: Dialect, choice: Choice, wanted: Wanted) -> pyarrow.Table:
    import pyarrow
    from pyarrow import csv as arrow

    text, number = pyarrow.string(), pyarrow.float64()
    strings = {*choice.where, *wanted.strings, choice.label, choice.text}
    types = {name: text for name in choice.all if name in strings}
    numbers = choice.features if choice.is_numeric else ()
    block = _BLOCK
    kind = number
    while True:
        types |= dict.fromkeys(numbers, kind)
        convert = arrow.ConvertOptions(
            column_types=types,
            include_columns=list(dict.fromkeys(choice.all)),
            null_values=MISSING,
        )
        read = arrow.ReadOptions(
            column_names=dialect.names, skip_rows_after_names=dialect.skipped, block_size=block
        )
        parse = arrow.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)
        try:
            with source.open() as stream:
                table = arrow.read_csv(in_memory(stream), read, parse, convert)
            break
        except pyarrow.ArrowInvalid as error:
            if "straddling" in str(error) and block < _LARGEST_BLOCK:
                block <<= 5
                continue
            _explain(source, dialect, choice)
            if kind is text or not numbers:
                raise DataFileError(f"not well-formed: {error}") from error
            kind = text  # numbers that only Python reads as such
    _check(table, source, dialect, choice)
    return table


def _check(table: pyarrow.Table, source: Source, dialect: Dialect, choice: Choice) -> None:
    """Find what pyarrow lets pass: bytes that are no text, and a quote that is never closed."""
    import pyarrow

    last = table.slice(max(0, table.num_rows - 1))
    for name, column in zip(table.column_names, last.columns, strict=True):
        odd = pyarrow.types.is_binary(column.type)
        if pyarrow.types.is_string(column.type):
            odd = any("\n" in (value or "") for value in column.to_pylist())
        if odd:
            _explain(source, dialect, choice)
        if pyarrow.types.is_binary(column.type):
            raise DataFileError(f"the column {name!r} is not UTF-8 text")


def _line_of(source: Source, dialect: Dialect, row: int) -> int:
    """The line in which a row of the table ends."""
    with _rows(source, dialect.delimiter) as (reader, _):
        rows = (one for one in reader if one)
        for _ in itertools.islice(rows, dialect.header + row + 1):
            pass
        return reader.line_num


def _explain(source: Source, dialect: Dialect, choice: Choice) -> None:
    """Raise an error with its place if some row is not what was wanted."""
    names, header = dialect.names, dialect.header
    place = {name: i for i, name in enumerate(names)}
    label = None if choice.label is None else place[choice.label]
    features = [place[name] for name in choice.features] if choice.is_numeric else []
    where = [(place[name], allowed) for name, allowed in choice.where.items()]
    with _rows(source, dialect.delimiter) as (reader, _):
        for row in reader:
            if not row:
                continue
            if header:
                header = False
                continue
            line = reader.line_num
            if len(row) != len(names):
                reason = f"{len(row)} fields, where there are {len(names)} columns"
                raise DataFileError(reason, line=line)
            if not all(row[i] in allowed for i, allowed in where):
                continue
            if label is not None and not row[label].strip():
                raise DataFileError("the label is empty", line=line, column=label + 1)
            for i in features:
                if not _is_number(row[i]):
                    raise not_a_number(row[i], names[i], line, i + 1)
                if not math.isfinite(float(row[i])):
                    raise not_finite(row[i], names[i], line, i + 1)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
