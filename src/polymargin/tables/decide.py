"""What each column of a table is for, from a look at its values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.files.columns import MISSING, index_columns
from polymargin.tables.columns import TableError, listed
from polymargin.tables.values import (
    NotOfThisKindError,
    Table,
    category,
    column_of,
    is_missing,
    moments,
    names_of,
    number,
)

MANY = 20  # different strings up to which a column is never taken for text or a name of each row
LONG = 3.0  # words on average from which strings are taken for text
SPLIT = "split"  # a column of this name says which part of the data a row belongs to
SPLITS = {"train", "training", "test", "val", "valid", "validation", "dev", "eval"}
_IDENTIFIER = re.compile(r"(?i)(.*[_\W])?(id|uuid|guid|key|index|row|nr|no)|.*[a-z](Id|ID)")
_OTHER_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([ T]\d{1,2}:\d\d(:\d\d)?)?")
_UNIT = re.compile(  # $5, 5 %, EUR 5, 5 kg
    r"[-+]?[$€£¥]\s?[\d.,]*\d|[-+]?[\d.,]*\d\s?[%$€£¥]|[A-Z]{3} [-+]?[\d.,]*\d|"
    r"[-+]?[\d.,]*\d [A-Za-z]{1,3}"
)


@dataclass(frozen=True)
class Column:
    """A column of a table: what it is, and what becomes of it.

    `kind` is one of `KINDS`, or None where the column is left out; `about` says the rest; `hint`
    names what makes use of it after all: "text" or "dates".

    Examples
    --------
    >>> from polymargin.tables import decide
    >>> column = decide({"price": ["1.5", "2", "7"]})[0]
    >>> column.name, column.kind
    ('price', 'number')
    """

    name: str
    kind: str | None
    about: str
    decimal: str = "."
    hint: str | None = None


def decide(
    X: Table,
    *,
    columns: Collection[str] | None = None,
    text: Collection[str] = (),
    dates: bool = False,
) -> list[Column]:
    """Decide what each column of a table is for.

    Parameters
    ----------
    X : table
        A pandas or polars DataFrame, a pyarrow Table, or a mapping of names to columns, without
        the labels.
    columns : collection of str, default=None
        Columns to use; also those that would be left out for saying nothing new. None: all.
    text : collection of str, default=()
        Columns that hold text.
    dates : bool, default=False
        Whether dates are taken apart into numbers; left out otherwise.

    Returns
    -------
    list of Column
        One for each column of the table, in its order.

    Examples
    --------
    >>> from polymargin.tables import decide
    >>> table = {"price": ["1.5", "2", "7"], "country": ["FR", "DE", "FR"]}
    >>> [(column.name, column.kind) for column in decide(table)]
    [('price', 'number'), ('country', 'category')]
    """
    names = names_of(X)
    if names is None:
        raise TypeError(f"expected a table whose columns have names, got {type(X).__name__}.")
    unknown = [name for name in (*(columns or ()), *text) if name not in names]
    if unknown:
        raise TableError(f"there is no column {listed(unknown)}; the columns are {listed(names)}")
    index = index_columns(names)
    found = []
    for place, name in enumerate(names):
        if columns is not None and name not in (*columns, *text):
            found.append(Column(name, None, "not asked for"))
        elif name in text:
            found.append(Column(name, "text", "text: its words"))
        elif name in index and columns is None:
            found.append(Column(name, None, "the index of a frame"))
        else:
            values = column_of(X, name, place)
            found.append(_Look(name, values, forced=columns is not None, dates=dates).decide())
    return found


class _Look:
    """A look at one column."""

    def __init__(self, name: str, values: NDArray, *, forced: bool, dates: bool) -> None:
        self.name, self.values, self.forced, self.dates = name, values, forced, dates

    def decide(self) -> Column:
        kind = self.values.dtype.kind
        if kind == "b":
            return self._category(["false", "true"], "truth values")
        if kind in "iuf":
            return self._number(self.values.astype(np.float64))
        if kind == "M":
            return self._date(self.values)
        return self._objects()

    def _left_out(self, why: str, hint: str | None = None) -> Column:
        return Column(self.name, None, why, hint=hint)

    def _number(self, values: NDArray[np.float64], decimal: str = ".", how: str = "") -> Column:
        present = values[~np.isnan(values)]
        n, n_missing = len(values), len(values) - len(present)
        if not len(present):
            return self._left_out("empty")
        if not n_missing and present.min() == present.max() and not self.forced:
            return self._left_out(f"constant ({present[0]:g})")
        if n > 2 and not n_missing and not self.forced:
            if (np.diff(present) == 1).all() and present[0] in (0, 1):
                return self._left_out("it numbers the rows")
            named = _IDENTIFIER.fullmatch(self.name) is not None
            if named and (present % 1 == 0).all() and len(np.unique(present)) == n:
                return self._left_out("an identifier: another number in every row")
        return Column(self.name, "number", "a number" + how + _missing(n_missing), decimal)

    def _date(self, values: NDArray) -> Column:
        when = moments(values)
        present = when[~np.isnat(when)]
        if not len(present):
            return self._left_out("empty")
        timed = bool((present != present.astype("datetime64[D]")).any())
        if not self.dates:
            return self._left_out("dates" if not timed else "dates and times", "dates")
        kind, hour = ("time", ", hour") if timed else ("date", "")
        about = f"a date: year, month, day, weekday{hour}"
        return Column(self.name, kind, about + _missing(len(values) - len(present)))

    def _objects(self) -> Column:
        values = self.values.tolist()
        present = [
            value
            for value in values
            if not (is_missing(value) or (isinstance(value, str) and value.strip() in MISSING))
        ]
        if not present:
            return self._left_out("empty")
        kinds = {type(value) for value in present}
        if kinds & {list, dict, tuple, set, bytes, np.ndarray}:
            return self._left_out("lists or objects, which are no features")
        if kinds == {bool}:
            return self._category(sorted({category(value) for value in present}), "truth values")
        if all(issubclass(kind, datetime.date) for kind in kinds):
            return self._date(self.values)
        if str not in kinds:
            return self._number(np.array([_as_float(value) for value in values]))
        return self._strings(values, [category(value) for value in present])

    def _strings(self, values: list[object], present: list[str]) -> Column:
        different = list(dict.fromkeys(present))
        for decimal in (".", ","):
            if _all_numbers(different, decimal):
                return self._written_numbers(values, different, decimal)
        try:
            return self._date(self.values)
        except NotOfThisKindError:
            pass
        if set(different) <= {"true", "false"}:
            return self._category(sorted(different), "truth values")
        n_missing = len(values) - len(present)
        if len(different) == 1 and not n_missing and not self.forced:
            return self._left_out(f"constant ({different[0]!r:.40})")
        is_split = self.name.lower() == SPLIT and set(map(str.lower, different)) <= SPLITS
        if is_split and not self.forced:
            return self._left_out("it says which part of the data a row belongs to", "split")
        if self.name.lower() == "text":
            return Column(self.name, "text", "text: its words")
        if len(different) > MANY and 2 * len(different) > len(present):
            return self._nearly_unique(different)
        return self._category(different, f"a category of {len(different)} values", n_missing)

    def _written_numbers(self, values: list[object], different: list[str], decimal: str) -> Column:
        read = np.array(
            [
                number(value, decimal) if isinstance(value, str) else _as_float(value)
                for value in values
            ]
        )
        odd = next((text for text in different if not _plain(text)), None)
        how = "" if odd is None else f" ({odd} is {number(odd, decimal):.15g})"
        return self._number(read, decimal, how)

    def _nearly_unique(self, different: list[str]) -> Column:
        count = f"{len(different):,} different values"
        shown = f"such as {different[0]!r:.40}"
        if all(map(_OTHER_DATE.fullmatch, different)):
            why = (
                f"dates {shown}, of which the order of day and month is not known: write 2024-12-31"
            )
            return self._left_out(why)
        if all(map(_UNIT.fullmatch, different)):
            return self._left_out(f"numbers with a sign or a unit, {shown}: write them without")
        words = sum(len(text.split()) for text in different) / len(different)
        if words >= LONG:
            return self._left_out(f"{count}: text, {shown}", "text")
        return self._left_out(f"{count}, {shown}: an identifier, or text", "text")

    def _category(self, different: list[str], about: str, n_missing: int | None = None) -> Column:
        if n_missing is None:
            n_missing = sum(map(is_missing, self.values.tolist()))
            if len({str(value) for value in self.values.tolist()}) == 1 and not self.forced:
                return self._left_out(f"constant ({self.values[0]})")
        return Column(self.name, "category", about + _missing(n_missing))


def _missing(n: int) -> str:
    return f", {n:,} missing" if n else ""


def _as_float(value: object) -> float:
    return float("nan") if is_missing(value) else float(str(value))


def _all_numbers(different: list[str], decimal: str) -> bool:
    try:
        return all(np.isfinite(number(text, decimal)) for text in different)
    except ValueError:
        return False


def _plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
