"""The columns of a table are the same whatever the table is made of, and wrong ones are named."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polymargin.tables import TableColumns, TableError
from polymargin.tables.values import category, number, parts

pa = pytest.importorskip("pyarrow")

KINDS = {"n": "number", "c": "category", "t": "text", "d": "date"}
DAYS = [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]
PLAIN = {"n": [1.5, None, 3.0], "c": ["a", None, "b c"], "t": ["x y", None, "z"], "d": DAYS}
EXPECTED = [
    [1.5, "a", "x y", 2024, 2, 29, 3],
    [None, "", "", None, None, None, None],
    [3.0, "b c", "z", 1969, 12, 31, 2],
]
TABLES = {
    "mapping": PLAIN,
    "records": [dict(zip(PLAIN, row, strict=True)) for row in zip(*PLAIN.values(), strict=True)],
    "pandas": pd.DataFrame(PLAIN),
    "pandas, other types": pd.DataFrame(PLAIN).assign(
        n=pd.array([1.5, None, 3.0], "Float64"),
        c=pd.Categorical(PLAIN["c"]),
        t=pd.array(PLAIN["t"], "string"),
        d=pd.to_datetime(pd.Series(DAYS)),
    ),
    "polars": pl.DataFrame(PLAIN),
    "pyarrow": pa.table(PLAIN),
    "strings": {**PLAIN, "n": ["1.5", "", "3"], "d": ["2024-02-29", "NA", "1969-12-31"]},
    "array": np.array([list(row) for row in zip(*PLAIN.values(), strict=True)], dtype=object),
    "another order": pd.DataFrame(PLAIN)[["d", "c", "t", "n"]].assign(more=7),
}


def as_lists(array):
    return [
        [None if isinstance(one, float) and math.isnan(one) else one for one in row]
        for row in array.tolist()
    ]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_gives_the_same_array(name):
    columns = TableColumns(KINDS).fit(PLAIN)
    assert as_lists(columns.transform(TABLES[name])) == EXPECTED
    names = ["n", "c", "t", "d: year", "d: month", "d: day", "d: weekday"]
    assert columns.get_feature_names_out().tolist() == names
    assert columns.places("number", "date") == [0, 3, 4, 5, 6]


def test_numbers_alone_are_an_array_of_floats():
    columns = TableColumns({"a": "number", "b": "number"}).fit({"a": [1], "b": [2]})
    found = columns.transform({"b": ["1,234.5", None], "a": [True, 2]})
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1, 1234.5], [2, np.nan]])
    np.testing.assert_array_equal(columns.transform(np.eye(2)), np.eye(2))


@pytest.mark.parametrize(
    ("kind", "values", "row", "said"),
    [
        ("number", [1, "x"], 1, "the column 'a' holds 'x', which is not a number"),
        ("number", [1, float("inf")], 1, "the value of the column 'a' is not finite: inf"),
        ("number", [1, 2, [3]], 2, "holds [3]"),
        ("number", [datetime.date(2024, 1, 1)], 0, "which is not a number"),
        ("date", ["2024-01-01", "tomorrow"], 1, "which is not a date such as 2024-12-31"),
        ("category", ["x", {}], 1, "which is not a category"),
    ],
)
def test_values_of_another_kind_have_a_row(kind, values, row, said):
    columns = TableColumns({"a": kind}).fit({"a": []})
    with pytest.raises(TableError) as error:
        columns.transform({"a": values})
    assert said in str(error.value) and (error.value.row, error.value.column) == (row, "a")


def test_missing_columns_are_named():
    columns = TableColumns({"a": "number", "b": "number"}).fit({"a": [1], "b": [2]})
    with pytest.raises(TableError, match="there is no column 'b'; the columns are 'a', 'c'"):
        columns.transform({"a": [1], "c": [2]})
    with pytest.raises(TableError, match=r"an array of 2 columns; got ndarray of shape \(1, 3\)"):
        columns.transform(np.zeros((1, 3)))
    with pytest.raises(TableError, match="differ in length"):
        columns.transform({"a": [1], "b": [2, 3]})
    for wrong in ({"a": "numbers"}, {}):
        with pytest.raises(ValueError, match="kinds must"):
            TableColumns(wrong).fit({"a": [1]})


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("1,234", ".", 1234),
        ("-1,234,567.25", ".", -1234567.25),
        ("1 234.5", ".", 1234.5),
        ("1\u202f234", ".", 1234),
        ("1'234", ".", 1234),
        (" 2 ", ".", 2),
        ("1e3", ".", 1000),
        ("1.234,5", ",", 1234.5),
        ("1,5", ",", 1.5),
        ("1.234.567", ",", 1234567),
        ("12", ",", 12),
    ],
)
def test_numbers_as_people_write_them(text, decimal, value):
    assert number(text, decimal) == value


@pytest.mark.parametrize(
    ("text", "decimal"),
    [("1,5", "."), ("12,34,567", "."), ("1.5", ","), ("x", ","), ("1,2,3", ",")],
)
def test_what_is_no_number(text, decimal):
    with pytest.raises(ValueError):
        number(text, decimal)


@given(st.floats(-1e15, 1e15, allow_nan=False), st.sampled_from([".", ","]))
def test_grouped_numbers_are_read_back(value, decimal):
    written = f"{value:,.3f}"
    if decimal == ",":
        written = written.translate(str.maketrans(",.", ".,"))
    assert number(written, decimal) == float(f"{value:.3f}")


@given(st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2400, 1, 1)))
def test_parts_of_dates_are_those_of_the_calendar(when):
    names = ("year", "month", "day", "weekday", "hour")
    found = parts(np.array([np.datetime64(when)]), names)[0].tolist()
    assert found == [when.year, when.month, when.day, when.weekday(), when.hour]
    strings = np.array([when.isoformat()], dtype=object)
    assert parts(strings, names)[0].tolist() == found


def test_categories_are_the_same_in_every_type():
    alike = [[1, 1.0, "1", " 1", np.int64(1)], [True, "True", "TRUE", "true"], [None, "", "NA"]]
    alike += [[datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), "2024-01-01"]]
    for group in alike:
        assert len({category(value) for value in group}) == 1
    assert len({category(group[0]) for group in alike}) == len(alike)
