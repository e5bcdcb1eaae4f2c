"""Tables on the command line: which columns a model is made of, said and remembered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import DTypeLike

from polymargin.cli._errors import CommandError, Exit
from polymargin.cli._output import Output, shorten
from polymargin.io import Dataset
from polymargin.tables import Column, TableColumns, TableError, decide

HINTS = {  # what makes use of a column that is left out
    "text": "--text {name} makes words of it",
    "dates": "--dates parts makes numbers of it",
    "split": "--split and --test-split choose by it",
}
MOST_LINES = 40  # columns that are listed one by one


def several(values: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Names of columns, each given by itself or several of them between commas."""
    found: list[str] = []
    for value in values:
        found += [value] if value in names else [part.strip() for part in value.split(",")]
    unknown = [name for name in found if name not in names]
    if unknown:
        shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise CommandError(f"{option}: there is no column {unknown[0]!r}; there are {shown}")
    return found


def decide_columns(
    data: Dataset,
    columns: Sequence[str],
    drop: Sequence[str],
    text: Sequence[str],
    *,
    dates: bool,
) -> list[Column]:
    """Decide what each column of a table is for, as the options say."""
    names = data.table.column_names
    wanted = several(columns, names, "--columns") if columns else None
    dropped = several(drop, names, "--drop")
    words = several(text, names, "--text")
    both = set(dropped) & {*words, *(wanted or ())}
    if both:
        raise CommandError(f"--drop leaves out {min(both)!r}, which is also asked for", Exit.USAGE)
    with located(data):
        found = decide(data.table.drop_columns(dropped), columns=wanted, text=words, dates=dates)
    found += [Column(name, None, "dropped") for name in dropped]
    if not any(one.kind for one in found):
        reasons = "; ".join(f"{one.name}: {one.about}{_hint(one)}" for one in found[:10])
        raise CommandError(f"{data.source}: no column is left for the features ({reasons})")
    return found


def say_columns(columns: Sequence[Column], source: str, output: Output) -> None:
    """Print what becomes of each column; of those that may be missed, loudly."""
    used = [one for one in columns if one.kind is not None]
    output.note(f"{source}: {len(used):,} of {len(columns):,} columns are used")
    listed = columns if len(columns) <= MOST_LINES else [one for one in columns if not one.kind]
    width = max((len(shorten(one.name, 30)) for one in listed), default=0)
    for one in listed:
        if one.kind is not None or one.hint is None:
            left = "" if one.kind else "left out: "
            output.note(f"  {shorten(one.name, 30).ljust(width)}  {left}{one.about}")
    if len(columns) > MOST_LINES:
        kinds: dict[str, int] = {}
        for one in used:
            kinds[str(one.kind)] = kinds.get(str(one.kind), 0) + 1
        output.note("  " + ", ".join(f"{kind}: {n:,} columns" for kind, n in kinds.items()))
    for one in columns:
        if one.kind is None and one.hint is not None:
            output.warn(f"the column {one.name!r} is left out: {one.about}{_hint(one)}")


def _hint(one: Column) -> str:
    """What makes use of a column after all, in the words of the command line."""
    name = one.name if one.name.isidentifier() else f'"{one.name}"'
    return "" if one.hint is None else f"; {HINTS[one.hint].format(name=name)}"


def only_text(columns: Sequence[Column]) -> str | None:
    """The column of text that is all there is, if so."""
    used = [one for one in columns if one.kind is not None]
    return used[0].name if len(used) == 1 and used[0].kind == "text" else None


def only_numbers(columns: Sequence[Column], data: Dataset) -> list[str] | None:
    """The columns, where all of them are numbers and none is missing."""
    used = [one for one in columns if one.kind is not None]
    if any(one.kind != "number" or one.decimal != "." for one in used):
        return None
    names = [one.name for one in used]
    chosen = data.table.select(names)
    plain = all(str(kind) in _NUMBERS for kind in chosen.schema.types)
    return names if plain and not any(one.null_count for one in chosen.columns) else None


_NUMBERS = {"double", "float", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))}


def as_text(data: Dataset, column: str) -> Dataset:
    """Examples that are the texts of one column."""
    first = TableColumns({column: "text"}).fit(data.table)
    texts = first.transform(data.table)[:, 0].tolist()
    return replace(data, table=None, text=texts, feature_names=None)


def as_numbers(data: Dataset, columns: Sequence[str], dtype: DTypeLike) -> Dataset:
    """Examples that are rows of numbers."""
    first = TableColumns(dict.fromkeys(columns, "number")).fit(data.table)
    with located(data):
        X = first.transform(data.table)
    if np.isnan(X).any():
        row, column = np.argwhere(np.isnan(X))[0]
        raise CommandError(
            f"{_place(data, int(row))}: the column {columns[column]!r} is empty, but no value was "
            "missing in training, and with --scale none none is filled in"
        )
    return replace(data, table=None, X=X.astype(dtype), feature_names=list(columns))


def written_as_strings(first: TableColumns) -> list[str]:
    """Columns of which a CSV file's own spelling counts."""
    decimals = first.decimals or {}
    return [name for name, kind in first.kinds.items() if kind != "number" or name in decimals]


@contextmanager
def located(data: Dataset) -> Iterator[None]:
    """Let what is wrong with a row name the line of its file."""
    try:
        yield
    except TableError as error:
        place = data.source if error.row is None else _place(data, error.row)
        raise CommandError(f"{place}: {error}") from error


def _place(data: Dataset, row: int) -> str:
    return f"{data.source}, row {row + 1}" if data.place_of is None else data.place_of(row)


class RowsAsText(Sequence[str]):
    """The rows of a table as a person reads them, made when they are asked for."""

    def __init__(self, data: Dataset, columns: Sequence[str]) -> None:
        self._table = data.table.select(list(columns))

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[i] for i in range(len(self))[row]]
        record = self._table.slice(row, 1).to_pylist()[0]
        return ", ".join(f"{name}: {value}" for name, value in record.items() if value is not None)
