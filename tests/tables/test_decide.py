"""What each column of a table is taken for."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from polymargin.tables import TableError, decide

N = 60
RNG = np.random.default_rng(0)
WORDS = ["red", "green", "blue", "grey", "pink"]
NOTES = [" ".join(RNG.choice(WORDS, 6)) for _ in range(N)]
DAYS = [str(np.datetime64("2024-01-01") + i) for i in range(N)]


def look(name, values, **options):
    (found,) = decide({name: np.asarray(values)}, **options)
    return found


def strings(make):
    return np.array([make(i) for i in range(N)], dtype=object)


@pytest.mark.parametrize(
    ("name", "values", "kind", "about"),
    [
        ("age", RNG.normal(size=N), "number", "a number"),
        ("age", [1.0, np.nan, 3.0], "number", "a number, 1 missing"),
        ("age", strings(lambda i: f"{1000 * i:,}"), "number", "a number (1,000 is 1000)"),
        ("age", strings(lambda i: f"{i},5"), "number", "a number (0,5 is 0.5)"),
        ("ok", RNG.random(N) < 0.5, "category", "truth values"),
        ("ok", strings(lambda i: ["True", "False", None][i % 3]), "category", "truth values, 20 m"),
        ("size", strings(lambda i: "SML"[i % 3]), "category", "a category of 3 values"),
        ("text", strings(lambda i: "SML"[i % 3]), "text", "its words"),
        ("a", np.full(N, 7), None, "constant (7)"),
        ("a", strings(lambda i: "x"), None, "constant ('x')"),
        ("a", np.full(N, np.nan), None, "empty"),
        ("a", strings(lambda i: ["", "NA", None][i % 3]), None, "empty"),
        ("a", np.arange(N), None, "it numbers the rows"),
        ("order_id", RNG.permutation(N), None, "an identifier"),
        ("orders", RNG.permutation(N), "number", "a number"),
        ("__index_level_0__", RNG.normal(size=N), None, "the index of a frame"),
        ("name", strings(lambda i: f"u{i}x"), None, "60 different values"),
        ("note", np.array(NOTES, dtype=object), None, "text, such as"),
        ("day", np.array(DAYS, dtype="datetime64[D]"), None, "dates"),
        ("day", np.array(DAYS, dtype=object), None, "dates"),
        ("day", strings(lambda i: f"{i % 28 + 1}.{i // 28 + 1}.2024"), None, "order of day and m"),
        ("cost", strings(lambda i: f"${i}.50"), None, "numbers with a sign or a unit"),
        ("split", strings(lambda i: ["train", "test"][i % 2]), None, "which part of the data"),
        ("a", strings(lambda i: [i]), None, "lists or objects"),
    ],
)
def test_a_column_is_taken_for(name, values, kind, about):
    found = look(name, values)
    assert found.kind == kind and about in found.about


def test_hints_name_what_makes_use_of_a_column():
    assert look("note", np.array(NOTES, dtype=object)).hint == "text"
    assert look("note", np.array(NOTES, dtype=object), text=["note"]).kind == "text"
    days = np.array(DAYS, dtype=object)
    assert look("day", days).hint == "dates"
    assert look("day", days, dates=True).kind == "date"
    times = [datetime.datetime(2024, 1, 1, i % 24) for i in range(N)]
    assert look("day", np.array(times, dtype=object), dates=True).kind == "time"


def test_chosen_columns_are_used_though_they_say_little():
    table = {"a": np.arange(N), "k": np.full(N, 1), "b": RNG.normal(size=N)}
    found = decide(table, columns=["a", "k"])
    assert [(one.name, one.kind) for one in found] == [
        ("a", "number"),
        ("k", "number"),
        ("b", None),
    ]
    with pytest.raises(TableError, match="there is no column 'z'; the columns are 'a', 'k', 'b'"):
        decide(table, columns=["z"])


def test_the_mark_of_decimals_is_found():
    assert look("p", strings(lambda i: f"{i}.250,5")).decimal == ","
    assert look("p", strings(lambda i: f"{i},250.5")).decimal == "."
