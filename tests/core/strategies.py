"""Restricted problems for Hypothesis: random, tied, degenerate, tiny and huge."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.projections.inputs import TIES, WELL_SCALED, examples, large_vectors, powers_of_ten

__all__ = ["examples", "large_problems", "restricted_problems"]


def scaled(elements, scale):
    return elements.map(lambda value: value * scale)


BOUNDS = st.one_of(
    st.sampled_from([1e-12, 0.1, 0.5, 1.0, 2.0, 1e12]),
    st.floats(0.01, 10),
    powers_of_ten(st.floats(1, 10)),
)
ENTRIES = {
    "random": WELL_SCALED,
    "tied": TIES,
    "tiny": scaled(WELL_SCALED, 1e-12),
    "tiny tied": scaled(TIES, 1e-12),
    "huge": scaled(WELL_SCALED, 1e12),
    "huge tied": scaled(TIES, 1e12),
    "mixed": powers_of_ten(st.floats(-10, 10, allow_subnormal=False)),
}


@st.composite
def restricted_problems(draw, kinds=tuple(ENTRIES), max_size=12):
    """Draw (b, c, top_k) with 1 to max_size wrong classes."""
    entries = ENTRIES[draw(st.sampled_from(kinds))]
    b = draw(st.lists(entries, min_size=1, max_size=max_size))
    return b, draw(BOUNDS), draw(st.integers(1, len(b)))


@st.composite
def large_problems(draw):
    """Draw (b, c, top_k) with up to 2,000 wrong classes, the entries from a seeded generator."""
    b = draw(large_vectors())
    m = len(b)
    c = draw(BOUNDS) * draw(st.sampled_from([1.0, float(np.max(np.abs(b)))]))
    top_k = draw(st.one_of(st.sampled_from([1, 2, 5, m // 2, m - 1, m]), st.integers(1, m)))
    return b, c, top_k
