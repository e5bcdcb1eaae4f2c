"""Hypothesis strategies of svmlight text, beside what it means."""

from __future__ import annotations

import math

from hypothesis import strategies as st

NAN_FREE = st.floats(allow_nan=False, allow_infinity=False)
BLANKS = st.sampled_from([" ", "  ", "\t", " \t "])


@st.composite
def decimals(draw) -> str:
    """A finite decimal number in one of the ways people and programs write them."""
    sign = draw(st.sampled_from(["", "-", "+"]))
    digits = st.text("0123456789", min_size=1, max_size=25)
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return repr(draw(NAN_FREE))
    if kind == 1:
        return sign + draw(digits)
    mantissa = draw(st.sampled_from(["{}.{}", "{}.", ".{}"])).format(draw(digits), draw(digits))
    if kind == 2:
        return sign + mantissa
    exponent = draw(st.integers(-330, 280))
    text = f"{sign}{mantissa}{draw(st.sampled_from('eE'))}{exponent}"
    return text if math.isfinite(float(text)) else sign + mantissa


@st.composite
def rows(draw, smallest: int, largest: int, in_order: bool = False) -> str:
    """A line with an example; indices are distinct, and in any order unless `in_order`."""
    label = draw(st.one_of(st.integers(-5, 5).map(str), decimals()))
    indices = draw(st.lists(st.integers(smallest, largest), unique=True, max_size=8))
    indices = sorted(indices) if in_order else indices
    entries = [f"{index}:{draw(decimals())}" for index in indices]
    if draw(st.booleans()):
        entries.insert(0, f"qid:{draw(st.integers(0, 99))}")
    line = draw(st.sampled_from(["", " "])) + label
    for entry in entries:
        line += draw(BLANKS) + entry
    return line + draw(st.sampled_from(["", " ", " # a comment: 3:4", "#"]))


@st.composite
def files(draw, zero_based: bool = False, in_order: bool = False) -> bytes:
    """A valid file with at least one entry."""
    smallest = 0 if zero_based else 1
    lines = draw(st.lists(rows(smallest, 40, in_order), min_size=1, max_size=6))
    lines.append(f"1 {smallest}:1 41:2")  # it settles the numbering and the number of features
    for noise in draw(st.lists(st.sampled_from(["", "   ", "# comment", "\t#"]), max_size=3)):
        lines.insert(draw(st.integers(0, len(lines))), noise)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
