"""Reading tables with a label column: CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.files.columns import (
    Choice,
    Wanted,
    choose,
    labels_from_text,
    labels_from_values,
    no_rows,
)
from polymargin.files.dataset import Dataset
from polymargin.files.errors import DataFileError
from polymargin.files.streams import name_of, open_bytes

_DELIMITERS = ",;\t|"
_LONGEST_FIELD = 2**31 - 1


# --- CSV and TSV ---------------------------------------------------------------------------------


def read_csv(path: Any, wanted: Wanted, dtype: Any, delimiter: str | None = None) -> Dataset:
    """Read comma- (or semicolon-, tab-, bar-) separated values, with or without a header."""
    name = name_of(path)
    with open_bytes(path) as stream, _csv_errors(name) as place:
        lines = _decoded(stream)
        first_line = next(lines, "")
        delimiter = delimiter or max(_DELIMITERS, key=first_line.count)
        reader = csv.reader(_chain(first_line, lines), delimiter=delimiter, strict=True)
        place.append(reader)
        return _csv_examples(reader, wanted, dtype, name)


def _decoded(stream: Any) -> Iterator[str]:
    for i, line in enumerate(stream):
        yield line.decode("utf-8" if i else "utf-8-sig")


def _csv_examples(reader: Any, wanted: Wanted, dtype: Any, path: str) -> Dataset:
    first = next((row for row in reader if row), None)
    if first is None:
        raise DataFileError("the file is empty", path=path)
    has_header = not any(map(_is_number, first))
    names = [cell.strip() for cell in first] if has_header else _numbered(first)
    choice = choose(names, wanted, path, last_column=True)
    column = {name: i for i, name in enumerate(names)}
    features = [column[feature] for feature in choice.features]
    pick = itemgetter(*features) if len(features) > 1 else lambda row: [row[features[0]]]
    labels: list[str] = []
    texts: list[str] = []
    values = array("d")
    seen: dict[str, set[str]] = {condition: set() for condition in choice.where}
    n = 0
    for row in _chain(*([] if has_header else [first]), reader):
        if not row:
            continue
        if len(row) != len(names):
            raise DataFileError(
                f"{len(row)} fields, where there are {len(names)} columns",
                path=path,
                line=reader.line_num,
            )
        if not _passes(choice, seen, {c: row[column[c]] for c in choice.where}):
            continue
        n += 1
        if choice.label is not None:
            labels.append(row[column[choice.label]])
            if not labels[-1]:
                raise DataFileError(
                    "the label is empty",
                    path=path,
                    line=reader.line_num,
                    column=column[choice.label] + 1,
                )
        if choice.text is not None:
            texts.append(row[column[choice.text]])
            continue
        try:
            values.extend(map(float, pick(row)))
        except ValueError:
            bad = next(i for i in features if not _is_number(row[i]))
            raise _not_a_number(row[bad], names[bad], path, reader.line_num, bad + 1) from None
    if n == 0:
        raise no_rows(choice, seen, path)
    X = None if choice.text is not None else _matrix(values, n, choice, dtype, path)
    return Dataset(
        X=X,
        y=None if choice.label is None else labels_from_text(labels),
        text=None if choice.text is None else texts,
        feature_names=choice.features if X is not None and has_header else None,
        source=path,
        label_name=choice.label,
    )


@contextmanager
def _csv_errors(path: str) -> Iterator[list[Any]]:
    """Give errors of the csv module, and of text that is not UTF-8, their place."""
    place: list[Any] = []
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield place
    except csv.Error as error:
        line = place[0].line_num if place else None
        raise DataFileError(f"not well-formed: {error}", path=path, line=line) from error
    except UnicodeDecodeError as error:
        line = place[0].line_num + 1 if place else 1
        raise DataFileError(f"not UTF-8 text ({error.reason})", path=path, line=line) from error
    finally:
        csv.field_size_limit(limit)


def _chain(*parts: Any) -> Iterator[Any]:
    """Single things (strings, rows) and iterators of such, one after the other."""
    for part in parts:
        if isinstance(part, (str, list)):
            yield part
        else:
            yield from part


def _numbered(row: Sequence[str]) -> list[str]:
    return [f"column {i + 1}" for i in range(len(row))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --- JSON lines ----------------------------------------------------------------------------------


def read_jsonl(path: Any, wanted: Wanted, dtype: Any) -> Dataset:
    """Read one JSON object per line."""
    name = name_of(path)
    choice: Choice | None = None
    labels: list[Any] = []
    lines: list[int] = []
    texts: list[str] = []
    values = array("d")
    seen: dict[str, set[str]] = {}
    with open_bytes(path) as stream:
        for line, record in _json_records(stream, name):
            if choice is None:
                choice = choose(list(record), wanted, name, last_column=False)
                seen = {condition: set() for condition in choice.where}
            missing = [key for key in choice.all if key not in record]
            if missing:
                raise DataFileError(f"the field {missing[0]!r} is missing", path=name, line=line)
            if not _passes(choice, seen, {c: str(record[c]) for c in choice.where}):
                continue
            lines.append(line)
            if choice.label is not None:
                labels.append(record[choice.label])
            if choice.text is not None:
                texts.append(_json_text(record[choice.text], choice.text, name, line))
            else:
                values.extend(_json_numbers(record, choice.features, name, line))
    if choice is None or not lines:
        raise no_rows(choice or Choice(None, None, []), seen, name)
    is_text = choice.text is not None
    return Dataset(
        X=None if is_text else _matrix(values, len(lines), choice, dtype, name, lines),
        y=None if choice.label is None else labels_from_values(labels, name, lines),
        text=texts if is_text else None,
        feature_names=None if is_text else choice.features,
        source=name,
        label_name=choice.label,
    )


def _json_records(stream: Any, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text.decode("utf-8-sig" if line == 1 else "utf-8"))
        except json.JSONDecodeError as error:
            raise DataFileError(
                f"not JSON: {error.msg}", path=path, line=line, column=error.colno
            ) from error
        except UnicodeDecodeError as error:
            raise DataFileError(
                f"not UTF-8 text ({error.reason})", path=path, line=line, column=error.start + 1
            ) from error
        except (RecursionError, ValueError) as error:
            raise DataFileError(
                f"not JSON that can be read: {error}", path=path, line=line
            ) from None
        if not isinstance(record, dict):
            raise DataFileError(
                f"expected an object like {{...}} per line, found {text[:20]!r}",
                path=path,
                line=line,
            )
        yield line, record


def _json_text(text: Any, field: str, path: str, line: int) -> str:
    if not isinstance(text, str):
        raise DataFileError(
            f"the field {field!r} holds {text!r}; expected text", path=path, line=line
        )
    return text


def _json_numbers(record: Any, features: Sequence[str], path: str, line: int) -> list[float]:
    numbers = []
    for feature in features:
        number = record[feature]
        if not isinstance(number, (int, float)):
            raise _not_a_number(number, feature, path, line)
        try:
            numbers.append(float(number))
        except OverflowError:
            raise _not_a_number(number, feature, path, line) from None
    return numbers


# --- Parquet -------------------------------------------------------------------------------------


def read_parquet(path: Any, wanted: Wanted, dtype: Any) -> Dataset:
    """Read the columns of a Parquet file that are needed; takes pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow: pip install 'polymargin[parquet]'."
        ) from error
    name = name_of(path)
    try:
        with open_bytes(path) as stream:
            source = stream if stream.seekable() else io.BytesIO(stream.read())
            file = pyarrow.parquet.ParquetFile(source)
            choice = choose(file.schema_arrow.names, wanted, name, last_column=False)
            table = file.read(columns=choice.all)
    except pyarrow.ArrowException as error:
        raise DataFileError(f"not a sound Parquet file: {error}", path=name) from error
    rows = np.arange(table.num_rows)
    seen: dict[str, set[str]] = {}
    for condition, allowed in choice.where.items():
        found = np.array([str(value) for value in table.column(condition).to_pylist()])
        seen[condition] = set(found.tolist())
        rows = rows[np.isin(found[rows], sorted(allowed))]
    if len(rows) == 0:
        raise no_rows(choice, seen, name)
    columns = {column: table.column(column).take(pyarrow.array(rows)) for column in choice.all}
    lines = (rows + 1).tolist()
    text = None
    if choice.text is not None:
        pairs = zip(columns[choice.text].to_pylist(), lines, strict=True)
        text = [_json_text(value, choice.text, name, line) for value, line in pairs]
    X = None if text is not None else _parquet_matrix(columns, choice, dtype, name, lines)
    y = None
    if choice.label is not None:
        y = labels_from_values(columns[choice.label].to_pylist(), name, lines)
    return Dataset(
        X=X,
        y=y,
        text=text,
        feature_names=None if X is None else choice.features,
        source=name,
        label_name=choice.label,
    )


def _parquet_matrix(
    columns: Any, choice: Choice, dtype: Any, path: str, lines: Sequence[int]
) -> NDArray:
    X = np.empty((len(lines), len(choice.features)), dtype)
    for j, feature in enumerate(choice.features):
        values = columns[feature]
        if values.null_count:
            row = values.to_pylist().index(None)
            raise DataFileError(
                f"the column {feature!r} is empty there: fill in missing values",
                path=path,
                line=lines[row],
            )
        array_ = values.to_numpy()
        if array_.dtype.kind not in "biuf":
            raise _not_a_number(values[0].as_py(), feature, path, lines[0])
        X[:, j] = array_
    return _finite(X, choice, path, lines)


# --- what they share -----------------------------------------------------------------------------


def _passes(choice: Choice, seen: dict[str, set[str]], row: dict[str, str]) -> bool:
    for condition, value in row.items():
        seen[condition].add(value)
    return all(row[condition] in allowed for condition, allowed in choice.where.items())


def _matrix(
    values: array[float],
    n: int,
    choice: Choice,
    dtype: Any,
    path: str,
    lines: Sequence[int] | None = None,
) -> NDArray:
    X = np.frombuffer(values, dtype=np.float64).reshape(n, -1)
    with np.errstate(over="ignore"):
        return _finite(X.astype(dtype), choice, path, lines)


def _finite(X: NDArray, choice: Choice, path: str, lines: Sequence[int] | None) -> NDArray:
    finite = np.isfinite(X)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        line = lines[row] if lines is not None else None
        what = "value" if line is not None else f"value of example {row + 1}"
        raise DataFileError(
            f"the {what} in column {choice.features[column]!r} is not finite ({X[row, column]}): "
            "fill in missing values",
            path=path,
            line=line,
        )
    return X


def _not_a_number(
    found: Any, column: str, path: str, line: int, position: int | None = None
) -> DataFileError:
    shown = repr(found) if len(repr(found)) < 60 else repr(found)[:60] + "..."
    what = "is empty" if found in ("", None) else f"holds {shown}, which is not a number"
    return DataFileError(
        f"the column {column!r} {what}; leave it out with features=, or name the text with text=",
        path=path,
        line=line,
        column=position,
    )
