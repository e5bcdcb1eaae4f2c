"""JSON lines: an object per line, read by pyarrow; Python's reader says where one is wrong."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from polymargin.files.columns import Choice, Wanted, choose
from polymargin.files.dataset import DataFileError
from polymargin.files.tables import Found, Source, in_memory, need_pyarrow, not_a_number, not_finite
from polymargin.storage import Json

if TYPE_CHECKING:
    import pyarrow

_SAMPLE = 1000  # lines that say what the fields are
_BLOCK = 1 << 22  # bytes that one thread reads at a time; no object may be longer
_LARGEST_BLOCK = 1 << 30


def read_json_lines(source: Source, wanted: Wanted) -> Found:
    """Read one JSON object per line."""
    need_pyarrow()
    fields = _sample(source)
    choice = choose(list(fields), wanted, last_column=False)
    table = _read(source, choice, fields)
    if choice.is_table and wanted.features is None:  # fields that later objects have
        choice = choose([*fields, *_others(table.column_names, fields)], wanted, last_column=False)

    def explain() -> None:
        _explain(source, choice)

    return Found(
        table=table,
        choice=choice,
        line_of=lambda row: _line_of(source, row),
        explain=explain,
    )


def _others(names: Iterable[str], known: Iterable[str]) -> list[str]:
    return [name for name in names if name not in set(known)]


def _sample(source: Source) -> dict[str, bool]:
    """The fields of the first objects: whether all their values are strings."""
    fields: dict[str, bool] = {}
    with source.open() as stream:
        for _, record in itertools.islice(_records(stream), _SAMPLE):
            for name, value in record.items():
                if value is not None:
                    fields[name] = fields.get(name, True) and isinstance(value, str)
                fields.setdefault(name, True)
    if not fields:
        raise DataFileError("the file holds no examples")
    return fields


def _read(source: Source, choice: Choice, fields: dict[str, bool]) -> pyarrow.Table:
    import pyarrow
    from pyarrow import json as arrow

    # of strings, that they are: pyarrow would make times of some
    strings = [(name, pyarrow.string()) for name in choice.all if fields.get(name)]
    behaviour, block = "infer", _BLOCK
    if choice.is_text and len(strings) == len(choice.all):
        behaviour = "ignore"
    while True:
        options = arrow.ParseOptions(
            explicit_schema=pyarrow.schema(strings), unexpected_field_behavior=behaviour
        )
        try:
            with source.open() as stream:
                table = arrow.read_json(
                    in_memory(stream), arrow.ReadOptions(block_size=block), options
                )
            table.validate(full=True)
        except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
            if "straddling" in str(error) and block < _LARGEST_BLOCK:
                block <<= 4
                continue
            _explain(source, choice)
            raise DataFileError(f"not JSON lines that can be read: {error}") from error
        times = [
            (field.name, pyarrow.string())
            for field in table.schema
            if pyarrow.types.is_timestamp(field.type)
        ]
        if not times:
            return _with_all(table, choice)
        strings += times


def _with_all(table: pyarrow.Table, choice: Choice) -> pyarrow.Table:
    """The table, with empty columns for fields that only the sample's lines had as null."""
    import pyarrow

    for name in choice.all:
        if name not in table.column_names:
            table = table.append_column(name, pyarrow.nulls(table.num_rows))
    return table


def _records(stream: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Json]]]:
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


def _line_of(source: Source, row: int) -> int:
    with source.open() as stream:
        numbers = (number for number, line in enumerate(stream, start=1) if line.strip())
        return next(itertools.islice(numbers, row, None))


def _explain(source: Source, choice: Choice) -> None:
    """Raise an error with its place if some object is not what was wanted."""
    kinds: dict[str, str] = {}
    with source.open() as stream:
        for line, record in _records(stream):
            needed = [*choice.where, *(choice.features if choice.is_numeric else ())]
            needed += [name for name in (choice.label, choice.text) if name is not None]
            missing = [name for name in needed if name not in record]
            if missing:
                raise DataFileError(f"the field {missing[0]!r} is missing", line=line)
            if not all(str(record[name]) in allowed for name, allowed in choice.where.items()):
                continue
            if choice.label is not None:
                _check_label(record[choice.label], line)
            if choice.text is not None:
                _check_text(record[choice.text], choice.text, line)
            if choice.is_numeric:
                for name in choice.features:
                    _check_number(record[name], name, line)
            for name in (*choice.features, *([choice.label] if choice.label else ())):
                _check_kind(record.get(name), name, line, kinds)


def _check_label(label: Json, line: int) -> None:
    if not isinstance(label, (str, int, float)):
        raise DataFileError(f"the label is {label!r}; expected a string or a number", line=line)


def _check_text(text: Json, name: str, line: int) -> None:
    if not isinstance(text, str):
        raise DataFileError(f"the field {name!r} holds {text!r}; expected text", line=line)


def _check_number(value: Json, name: str, line: int) -> None:
    if not isinstance(value, (int, float)):
        raise not_a_number(value, name, line)
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise not_finite(value, name, line)


def _check_kind(value: Json, name: str, line: int, kinds: dict[str, str]) -> None:
    """Refuse values of a field that are of another kind than those before."""
    names = {bool: "truth value", int: "number", float: "number", str: "string"}
    if value is None:
        return
    kind = names.get(type(value), "list or object")
    before = kinds.setdefault(name, kind)
    if kind != before:
        raise DataFileError(
            f"the field {name!r} holds the {kind} {value!r:.60}, which is not of the kind of the "
            f"values before ({before}s)",
            line=line,
        )
