"""Parquet files: the columns that are needed of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from polymargin.files.columns import Choice, Wanted, choose
from polymargin.files.dataset import DataFileError
from polymargin.files.tables import Found, Source, need_pyarrow, not_a_number, not_finite, plain

if TYPE_CHECKING:
    import pyarrow


def read_parquet(source: Source, wanted: Wanted) -> Found:
    """Read the columns of a Parquet file that are needed; lines are its rows, from 1."""
    need_pyarrow()
    import pyarrow
    import pyarrow.parquet

    try:
        with source.open() as stream:
            file = pyarrow.parquet.ParquetFile(
                stream if stream.seekable() else io.BytesIO(stream.read())
            )
            choice = choose(file.schema_arrow.names, wanted, last_column=False)
            table = plain(file.read(columns=list(dict.fromkeys(choice.all))))
            table.validate(full=True)
    except (pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise DataFileError(f"not a sound Parquet file: {error}") from error

    def explain() -> None:
        _explain(table, choice)

    return Found(table=table, choice=choice, line_of=lambda row: row + 1, explain=explain)


def _explain(table: pyarrow.Table, choice: Choice) -> None:
    """Raise an error with its place if a value is not what was wanted."""
    import pyarrow.compute

    for name in choice.features if choice.is_numeric else ():
        column = table.column(name)
        if column.null_count:
            row = pyarrow.compute.is_null(column).to_pylist().index(True)
            reason = f"the column {name!r} is empty there: fill in missing values"
            raise DataFileError(reason, line=row + 1)
        values = column.to_numpy()
        if values.dtype.kind not in "biuf":
            raise not_a_number(column[0].as_py(), name, 1)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise not_finite(values[bad[0]], name, int(bad[0]) + 1)
    for chosen, what in ((choice.label, "label"), (choice.text, "text")):
        if chosen is not None and table.column(chosen).null_count:
            row = pyarrow.compute.is_null(table.column(chosen)).to_pylist().index(True)
            expected = "a string or a number" if what == "label" else "text"
            raise DataFileError(f"the {what} is None; expected {expected}", line=row + 1)
