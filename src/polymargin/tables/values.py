"""Values of a column in one form, whatever file or frame they come from."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.files.columns import MISSING

DATE_PARTS = ("year", "month", "day", "weekday")
TIME_PARTS = (*DATE_PARTS, "hour")
_WORDS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_GAP = "['’ \u00a0\u202f]"
_GROUPED = {  # by the mark of decimals
    ".": re.compile(
        rf"[-+]?\d{{1,3}}(?:,\d{{3}})+(?:\.\d*)?|[-+]?\d{{1,3}}(?:{_GAP}\d{{3}})+(?:\.\d*)?"
    ),
    ",": re.compile(rf"[-+]?(?:\d+|\d{{1,3}}(?:\.\d{{3}})+|\d{{1,3}}(?:{_GAP}\d{{3}})+)(?:,\d*)?"),
}
_NOT_GROUPS = re.compile(r"[^-+0-9.]")

Table = Any  # a pandas or polars frame, a pyarrow table, a mapping, a list of records, an array


class NotOfThisKindError(ValueError):
    """A value that a column of some kind cannot hold, and its row."""

    def __init__(self, value: object, row: int) -> None:
        super().__init__(f"{value!r:.60}")
        self.value, self.row = value, row


def names_of(X: Table) -> list[str] | None:
    """The names of a table's columns; None for an array, which has none."""
    if isinstance(X, Mapping):
        return [str(name) for name in X]
    if hasattr(X, "column_names"):  # pyarrow
        return list(X.column_names)
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    if isinstance(X, Sequence) and X and isinstance(X[0], Mapping):
        return list(dict.fromkeys(str(name) for record in X for name in record))
    return None


def column_of(X: Table, name: str, place: int) -> NDArray:
    """The values of a column; of an array, the one at this place."""
    values: Any
    if isinstance(X, Mapping):
        values = X[name]
    elif hasattr(X, "column_names"):
        values = X.column(name)
    elif hasattr(X, "columns"):
        values = X[name]
    elif isinstance(X, Sequence) and X and isinstance(X[0], Mapping):
        values = [record.get(name) for record in X]
    else:
        values = np.asarray(X)[:, place]
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        return values
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def is_missing(value: object) -> bool:
    """Whether there is no value: None, NaN, and what pandas has for them."""
    if value is None:
        return True
    if isinstance(value, float):
        return value != value
    return type(value).__name__ in ("NAType", "NaTType")


def number(text: str, decimal: str = ".") -> float:
    """A number as people write it: 1234.5, 1,234.5 or, with a comma for decimals, 1.234,5."""
    text = text.strip()
    if text in MISSING:
        return float("nan")
    if decimal == ",":
        if not _GROUPED[","].fullmatch(text):
            raise ValueError(text)
        return float(_NOT_GROUPS.sub("", text.replace(".", "").replace(",", ".")))
    if _GROUPED["."].fullmatch(text):
        return float(_NOT_GROUPS.sub("", text))
    return float(text)


def numbers(values: NDArray, decimal: str = ".") -> NDArray[np.float64]:
    """A column of numbers, NaN where one is missing."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    found = np.empty(len(values))
    for row, value in enumerate(values.tolist()):
        try:
            if isinstance(value, str):
                found[row] = number(value, decimal)
            elif isinstance(value, datetime.date):
                raise TypeError
            else:
                found[row] = float("nan") if is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            raise NotOfThisKindError(value, row) from None
    return found


def category(value: object) -> str:
    """A category as a string without spaces around it; empty where it is missing."""
    if isinstance(value, str):
        text = value.strip()
        return "" if text in MISSING else _WORDS.get(text, text)
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def categories(values: NDArray) -> NDArray:
    """A column of categories, as strings."""
    known: dict[tuple[type, object], str] = {}
    found = np.empty(len(values), dtype=object)
    for row, value in enumerate(_listed(values)):
        key = (type(value), value)
        try:
            text = known.get(key)
        except TypeError:
            raise NotOfThisKindError(value, row) from None
        if text is None:
            text = known[key] = category(value)
        found[row] = text
    return found


def texts(values: NDArray) -> NDArray:
    """A column of texts; a missing one is empty."""
    found = np.empty(len(values), dtype=object)
    found[:] = [value if isinstance(value, str) else category(value) for value in _listed(values)]
    return found


def _listed(values: NDArray) -> Iterable[object]:
    if values.dtype.kind == "M":
        values = values.astype("datetime64[s]")
    return values.tolist()


def moments(values: NDArray) -> NDArray[np.datetime64]:
    """A column of dates or times, in seconds."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    found = np.empty(len(values), "datetime64[s]")
    for row, value in enumerate(values.tolist()):
        try:
            found[row] = _moment(value)
        except (TypeError, ValueError):
            raise NotOfThisKindError(value, row) from None
    return found


def _moment(value: object) -> np.datetime64:
    if is_missing(value) or (isinstance(value, str) and value.strip() in MISSING):
        return np.datetime64("NaT")
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.datetime64(value.replace(microsecond=0), "s")
    if isinstance(value, datetime.date):
        return np.datetime64(value, "s")
    raise TypeError(value)


def parts(values: NDArray, names: Sequence[str]) -> NDArray[np.float64]:
    """Parts of dates as columns of numbers; weekdays from 0, Monday."""
    when = moments(values)
    day = when.astype("datetime64[D]")
    month = when.astype("datetime64[M]")
    year = when.astype("datetime64[Y]")
    found = {
        "year": year.astype(np.int64) + 1970,
        "month": month.astype(np.int64) % 12 + 1,
        "day": (day - month).astype(np.int64) + 1,
        "weekday": (day.astype(np.int64) + 3) % 7,  # 1970 began on a Thursday
        "hour": (when - day).astype(np.int64) // 3600,
    }
    columns = np.column_stack([found[name] for name in names]).astype(np.float64)
    columns[np.isnat(when)] = np.nan
    return columns
