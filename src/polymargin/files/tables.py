"""Reading tables with a label column: CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import itertools
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polymargin.files.columns import (
    Choice,
    Wanted,
    choose,
    labels_from_text,
    labels_from_values,
    no_rows,
)
from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.streams import open_bytes
from polymargin.storage import Json, StrPath

if TYPE_CHECKING:
    from _csv import Reader

    import pyarrow

_DELIMITERS = ",;\t|"
_LONGEST_FIELD = 2**31 - 1


class Rows:
    """The rows of a table that were asked for, as they are read."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.labels: list[Json] = []
        self.texts: list[str] = []
        self.values = array("d")  # of one row after the other
        self.lines: list[int] = []  # in the file; none for CSV, where all cells are strings
        self._seen: dict[str, set[str]] = {condition: set() for condition in choice.where}

    def wants(self, row: Mapping[str, object]) -> bool:
        """Whether a row has the values asked for."""
        found = {condition: str(row[condition]) for condition in self.choice.where}
        for condition, value in found.items():
            self._seen[condition].add(value)
        return all(found[condition] in allowed for condition, allowed in self.choice.where.items())

    def none(self) -> DataFileError:
        """The error for no rows at all."""
        return no_rows(self.choice, self._seen)

    def matrix(self, n: int, dtype: DTypeLike) -> NDArray | None:
        """The features; None where the examples are texts."""
        if self.choice.text is not None:
            return None
        X = np.frombuffer(self.values, dtype=np.float64).reshape(n, -1)
        with np.errstate(over="ignore"):
            return self.finite(X.astype(dtype))

    def finite(self, X: NDArray) -> NDArray:
        """X, if all of it is finite."""
        bad = np.argwhere(~np.isfinite(X))
        if len(bad) == 0:
            return X
        row, column = bad[0]
        line = self.lines[row] if self.lines else None
        what = "value" if self.lines else f"value of example {row + 1}"
        raise DataFileError(
            f"the {what} in column {self.choice.features[column]!r} is not finite "
            f"({X[row, column]}): fill in missing values",
            line=line,
        )

    def dataset(self, X: NDArray | None, source: str, *, names: bool = True) -> Dataset:
        """What a reader returns."""
        y = None
        if self.choice.label is not None and self.lines:
            y = labels_from_values(self.labels, self.lines)
        elif self.choice.label is not None:
            y = labels_from_text(self.labels)
        return Dataset(
            X=X,
            y=y,
            text=self.texts if X is None else None,
            feature_names=self.choice.features if names and X is not None else None,
            source=source,
            label_name=self.choice.label,
        )


def _not_a_number(
    found: object, column: str, line: int, position: int | None = None
) -> DataFileError:
    shown = repr(found) if len(repr(found)) < 60 else repr(found)[:60] + "..."
    what = "is empty" if found in ("", None) else f"holds {shown}, which is not a number"
    return DataFileError(
        f"the column {column!r} {what}; leave it out with features=, or name the text with text=",
        line=line,
        column=position,
    )


# --- CSV and TSV ---------------------------------------------------------------------------------


def read_csv(
    path: StrPath, wanted: Wanted, dtype: DTypeLike, delimiter: str | None = None
) -> Dataset:
    """Read comma- (or semicolon-, tab-, bar-) separated values, with or without a header."""
    reader = None
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with open_bytes(path) as stream:
            lines = _decoded(stream)
            first = next(lines, "")
            delimiter = delimiter or max(_DELIMITERS, key=first.count)
            reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
            return _csv_examples(reader, wanted, dtype)
    except csv.Error as error:
        line = reader.line_num if reader else None
        raise DataFileError(f"not well-formed: {error}", line=line) from error
    except UnicodeDecodeError as error:
        line = reader.line_num + 1 if reader else 1
        raise DataFileError(f"not UTF-8 text ({error.reason})", line=line) from error
    finally:
        csv.field_size_limit(limit)


def _decoded(stream: Iterable[bytes]) -> Iterator[str]:
    for i, line in enumerate(stream):
        yield line.decode("utf-8" if i else "utf-8-sig")


def _csv_examples(reader: Reader, wanted: Wanted, dtype: DTypeLike) -> Dataset:
    first = next((row for row in reader if row), None)
    if first is None:
        raise DataFileError("the file is empty")
    has_header = not any(map(_is_number, first))
    names = [cell.strip() for cell in first]
    if not has_header:
        names = [f"column {i + 1}" for i in range(len(first))]
    rows = Rows(choose(names, wanted, last_column=True))
    label, text = rows.choice.label, rows.choice.text
    column = {name: i for i, name in enumerate(names)}
    features = [column[feature] for feature in rows.choice.features]
    pick = itemgetter(*features) if len(features) > 1 else lambda row: [row[features[0]]]
    n = 0
    for row in itertools.chain([] if has_header else [first], reader):
        if not row:
            continue
        line = reader.line_num
        if len(row) != len(names):
            reason = f"{len(row)} fields, where there are {len(names)} columns"
            raise DataFileError(reason, line=line)
        if rows.choice.where and not rows.wants(dict(zip(names, row, strict=True))):
            continue
        n += 1
        if label is not None:
            rows.labels.append(row[column[label]])
            if not rows.labels[-1]:
                raise DataFileError("the label is empty", line=line, column=column[label] + 1)
        if text is not None:
            rows.texts.append(row[column[text]])
            continue
        try:
            rows.values.extend(map(float, pick(row)))
        except ValueError:
            bad = next(i for i in features if not _is_number(row[i]))
            raise _not_a_number(row[bad], names[bad], line, bad + 1) from None
    if n == 0:
        raise rows.none()
    return rows.dataset(rows.matrix(n, dtype), wanted.source, names=has_header)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --- JSON lines ----------------------------------------------------------------------------------


def read_jsonl(path: StrPath, wanted: Wanted, dtype: DTypeLike) -> Dataset:
    """Read one JSON object per line."""
    rows = None
    with open_bytes(path) as stream:
        for line, record in _json_records(stream):
            if rows is None:
                rows = Rows(choose(list(record), wanted, last_column=False))
            choice = rows.choice
            missing = [key for key in choice.all if key not in record]
            if missing:
                raise DataFileError(f"the field {missing[0]!r} is missing", line=line)
            if not rows.wants(record):
                continue
            rows.lines.append(line)
            if choice.label is not None:
                rows.labels.append(record[choice.label])
            if choice.text is not None:
                rows.texts.append(_text(record[choice.text], choice.text, line))
            else:
                rows.values.extend(_json_numbers(record, choice.features, line))
    rows = rows or Rows(Choice(None, None, []))
    if not rows.lines:
        raise rows.none()
    return rows.dataset(rows.matrix(len(rows.lines), dtype), wanted.source)


def _json_records(stream: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Json]]]:
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        column = None
        try:
            record = json.loads(text.decode("utf-8-sig" if line == 1 else "utf-8"))
            reason = "" if isinstance(record, dict) else "expected an object like {...} per line"
        except json.JSONDecodeError as error:
            reason, column = f"not JSON: {error.msg}", error.colno
        except UnicodeDecodeError as error:
            reason, column = f"not UTF-8 text ({error.reason})", error.start + 1
        except (RecursionError, ValueError) as error:
            reason = f"not JSON that can be read: {error}"
        if reason:
            raise DataFileError(f"{reason}, found {text[:20]!r}", line=line, column=column)
        yield line, record


def _text(text: object, column: str, line: int) -> str:
    if not isinstance(text, str):
        raise DataFileError(f"the field {column!r} holds {text!r}; expected text", line=line)
    return text


def _json_numbers(
    record: Mapping[str, Json], features: Sequence[str], line: int
) -> Iterator[float]:
    for feature in features:
        number = _as_float(record[feature])
        if number is None:
            raise _not_a_number(record[feature], feature, line)
        yield number


def _as_float(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


# --- Parquet -------------------------------------------------------------------------------------


def read_parquet(path: StrPath, wanted: Wanted, dtype: DTypeLike) -> Dataset:
    """Read the columns of a Parquet file that are needed; takes pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow: pip install 'polymargin[parquet]'."
        ) from error
    try:
        with open_bytes(path) as stream:
            source = stream if stream.seekable() else io.BytesIO(stream.read())
            file = pyarrow.parquet.ParquetFile(source)
            choice = choose(file.schema_arrow.names, wanted, last_column=False)
            table = file.read(columns=choice.all)
    except pyarrow.ArrowException as error:
        raise DataFileError(f"not a sound Parquet file: {error}") from error
    rows = Rows(choice)
    kept = list(range(table.num_rows))
    if choice.where:
        conditions = table.select(list(choice.where)).to_pylist()
        kept = [i for i in kept if rows.wants(conditions[i])]
        table = table.take(pyarrow.array(kept, pyarrow.int64()))
    if not kept:
        raise rows.none()
    rows.lines = [i + 1 for i in kept]
    X = None
    if choice.text is None:
        X = _parquet_matrix(table, rows, dtype)
    else:
        pairs = zip(table.column(choice.text).to_pylist(), rows.lines, strict=True)
        rows.texts = [_text(value, choice.text, line) for value, line in pairs]
    if choice.label is not None:
        rows.labels = table.column(choice.label).to_pylist()
    return rows.dataset(X, wanted.source)


def _parquet_matrix(table: pyarrow.Table, rows: Rows, dtype: DTypeLike) -> NDArray:
    X = np.empty((len(rows.lines), len(rows.choice.features)), dtype)
    for j, feature in enumerate(rows.choice.features):
        values = table.column(feature)
        if values.null_count:
            line = rows.lines[values.to_pylist().index(None)]
            reason = f"the column {feature!r} is empty there: fill in missing values"
            raise DataFileError(reason, line=line)
        numbers = values.to_numpy()
        if numbers.dtype.kind not in "biuf":
            raise _not_a_number(values[0].as_py(), feature, rows.lines[0])
        X[:, j] = numbers
    return rows.finite(X)
