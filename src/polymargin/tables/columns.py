"""The first step of a model of tables: chosen columns of any table as one array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polymargin.tables.values import (
    DATE_PARTS,
    TIME_PARTS,
    NotOfThisKindError,
    Table,
    categories,
    column_of,
    names_of,
    numbers,
    parts,
    texts,
)

KINDS: dict[str, str] = {
    "number": "a number",
    "category": "a category",
    "text": "text",
    "date": "a date such as 2024-12-31",
    "time": "a time such as 2024-12-31 23:59",
}
_PARTS = {"date": DATE_PARTS, "time": TIME_PARTS}


class TableError(ValueError):
    """A table that is not what a model was made for; `row` is where, from 0, if it is one row.

    Examples
    --------
    >>> from polymargin.tables import TableColumns, TableError
    >>> table = {"price": ["1.5", "2", "7"], "country": ["FR", "DE", "FR"]}
    >>> columns = TableColumns({"price": "number", "country": "category"}).fit(table)
    >>> try:
    ...     columns.transform({"price": ["3"]})
    ... except TableError:
    ...     print("a column is missing")
    a column is missing
    """

    def __init__(self, reason: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__(reason)
        self.row, self.column = row, column


class TableColumns(TransformerMixin, BaseEstimator):
    """Columns of a table as one array, alike whatever the table is made of.

    Takes a pandas or polars DataFrame, a pyarrow Table, a mapping of names to columns, a list of
    records, or a 2-D array whose columns are those of `kinds`, in their order. Columns are found by
    their names; others are ignored. Numbers may be written with thousands separators, truth values
    and codes in any type: what one file format says in another way than the next is the same here.

    Parameters
    ----------
    kinds : dict
        The columns that are used, and what each holds: "number", "category", "text", "date" or
        "time". A date becomes the numbers year, month, day and weekday, a time also the hour.
    decimals : dict, default=None
        Columns whose decimals are not marked by a point: ``{"price": ","}``.
    about : dict, default=None
        What to tell of columns to those who ask, also of columns that are not used.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        The columns that are used.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> from polymargin.tables import TableColumns
    >>> table = {"price": ["1.5", "2", "7"], "country": ["FR", "DE", "FR"]}
    >>> columns = TableColumns({"price": "number", "country": "category"}).fit(table)
    >>> columns.get_feature_names_out().tolist()
    ['price', 'country']
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        decimals: Mapping[str, str] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        self.kinds = kinds
        self.decimals = decimals
        self.about = about

    def fit(self, X: Table, y: object = None) -> TableColumns:
        """Check that the table has the columns.

        Parameters
        ----------
        X : table
        y : ignored

        Returns
        -------
        TableColumns
            Itself.
        """
        check_kinds(self)
        self.feature_names_in_ = np.array(list(self.kinds), dtype=object)
        self.n_features_in_ = len(self.kinds)
        self._check_columns(X)
        return self

    def transform(self, X: Table) -> NDArray:
        """Give the columns as an array.

        Parameters
        ----------
        X : table

        Returns
        -------
        ndarray of shape (n, n_columns)
            Of floats, NaN where a number is missing; of objects where there are categories (empty
            strings where one is missing) or texts.
        """
        check_is_fitted(self)
        self._check_columns(X)
        found = [
            self._converted(column_of(X, name, place), name, kind)
            for place, (name, kind) in enumerate(self.kinds.items())
        ]
        lengths = {len(one) for one in found}
        if len(lengths) > 1:
            raise TableError(f"the columns differ in length: {sorted(lengths)}")
        result = np.empty((lengths.pop(), self._width()), np.result_type(*found))
        start = 0
        for one in found:
            width = 1 if one.ndim == 1 else one.shape[1]
            result[:, start : start + width] = one.reshape(-1, width)
            start += width
        return result

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns of the array.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        names = []
        for name, kind in self.kinds.items():
            names += [f"{name}: {part}" for part in _PARTS[kind]] if kind in _PARTS else [name]
        return np.array(names, dtype=object)

    def places(self, *kinds: str) -> list[int]:
        """Columns of the array that come from columns of these kinds.

        Parameters
        ----------
        *kinds : str

        Returns
        -------
        list of int
        """
        found: list[int] = []
        start = 0
        for kind in self.kinds.values():
            width = len(_PARTS.get(kind, " "))
            if kind in kinds:
                found += range(start, start + width)
            start += width
        return found

    def described(self) -> list[tuple[str, str]]:
        """Say what becomes of each column that is known.

        Returns
        -------
        list of (str, str)
            Names and words.
        """
        return describe_columns(self.kinds, self.about)

    def _width(self) -> int:
        return len(self.places(*KINDS))

    def _check_columns(self, X: Table) -> None:
        names = names_of(X)
        if names is None:
            shape = np.shape(X)
            if len(shape) != 2 or shape[1] != len(self.kinds):
                raise TableError(
                    f"expected a table with the columns {listed(self.kinds)}, or an array of "
                    f"{len(self.kinds)} columns; got {type(X).__name__} of shape {shape}"
                )
            return
        missing = [name for name in self.kinds if name not in names]
        if missing:
            raise TableError(
                f"there is no column {listed(missing)}; the columns are {listed(names)}"
            )

    def _converted(self, values: NDArray, name: str, kind: str) -> NDArray:
        try:
            match kind:
                case "number":
                    found = numbers(values, (self.decimals or {}).get(name, "."))
                    infinite = np.flatnonzero(np.isinf(found))
                    if len(infinite):
                        raise TableError(
                            f"the value of the column {name!r} is not finite: "
                            f"{found[infinite[0]]:g}",
                            int(infinite[0]),
                            name,
                        )
                    return found
                case "category":
                    return categories(values)
                case "text":
                    return texts(values)
                case _:
                    return parts(values, _PARTS[kind])
        except NotOfThisKindError as error:
            raise TableError(
                f"the column {name!r} holds {error}, which is not {KINDS[kind]}", error.row, name
            ) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


def describe_columns(
    kinds: Mapping[str, str], about: Mapping[str, str] | None
) -> list[tuple[str, str]]:
    """What becomes of each column, from the parameters of `TableColumns`.

    Examples
    --------
    >>> from polymargin.tables import describe_columns
    >>> describe_columns({"price": "number"}, {"id": "an identifier"})
    [('id', 'left out: an identifier'), ('price', 'a number')]
    """
    words = dict(about or {})
    words |= {name: KINDS[kind] for name, kind in kinds.items() if name not in words}
    return [(name, text if name in kinds else f"left out: {text}") for name, text in words.items()]


def check_kinds(columns: TableColumns) -> None:
    """Raise ``ValueError`` unless the columns and their kinds are what they can be."""
    for name, kind in columns.kinds.items():
        if not isinstance(name, str) or kind not in KINDS:
            raise ValueError(f"kinds must say {', '.join(KINDS)} of names; got {name!r}: {kind!r}.")
    if not columns.kinds:
        raise ValueError("kinds must have a column at least.")
    for name, mark in (columns.decimals or {}).items():
        if columns.kinds.get(name) != "number" or mark not in (".", ","):
            raise ValueError(f"decimals must be '.' or ',' of numbers; got {name!r}: {mark!r}.")


def listed(names: Any, most: int = 20) -> str:
    """Names for a message."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
