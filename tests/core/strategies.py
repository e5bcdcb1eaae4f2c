"""Restricted problems for Hypothesis: random, tied, degenerate, tiny and huge."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st


def examples(count: int):
    """Return settings for `count` reproducible examples without a deadline."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


EXPONENTS = st.integers(-12, 12)
WELL_SCALED = st.floats(-4, 4, allow_subnormal=False)
TIES = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0, 3.0])


@st.composite
def powers_of_ten(draw, mantissas):
    """Draw numbers of very different sizes."""
    return draw(mantissas) * 10.0 ** draw(EXPONENTS)


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
    m = draw(st.one_of(st.integers(13, 300), st.sampled_from([511, 999, 1000, 1999, 2000])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "tied", "mixed", "near ties", "one stands out"]))
    b = {
        "normal": lambda: rng.normal(size=m),
        "tied": lambda: rng.integers(-2, 4, size=m) / 3.0,
        "mixed": lambda: rng.normal(size=m) * 10.0 ** rng.integers(-12, 13, size=m),
        "near ties": lambda: 1.0 + 1e-12 * rng.normal(size=m),
        "one stands out": lambda: rng.normal(size=m) + 1e3 * (np.arange(m) == m // 2),
    }[kind]()
    b = b * draw(st.sampled_from([1e-12, 1.0, 1.0, 1e12]))
    c = draw(BOUNDS) * draw(st.sampled_from([1.0, float(np.max(np.abs(b)))]))
    top_k = draw(st.one_of(st.sampled_from([1, 2, 5, m // 2, m - 1, m]), st.integers(1, m)))
    return b, c, top_k
