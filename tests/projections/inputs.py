"""What the tests of the projections draw: vectors of all sizes and scales, with ties."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

DTYPES = (np.float64, np.float32)
ACCURACY = {np.float64: 1e-12, np.float32: 2e-6}  # relative to the largest |v|, z, ...

WELL_SCALED = st.floats(-4, 4, allow_subnormal=False)
TIES = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0, 3.0])
EXPONENTS = st.integers(-12, 12)


def examples(count: int):
    """Return settings for `count` reproducible examples without a deadline."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@st.composite
def powers_of_ten(draw, mantissas):
    """Draw numbers of very different sizes."""
    return draw(mantissas) * 10.0 ** draw(EXPONENTS)


@st.composite
def small_vectors(draw, max_size=12):
    """Draw a vector: well scaled, tied, of one scale between 1e-12 and 1e12, or of all of them."""
    kind = draw(st.sampled_from(["random", "tied", "equal", "scaled", "scaled ties", "mixed"]))
    size = draw(st.integers(1, max_size))
    if kind == "equal":
        return [draw(powers_of_ten(WELL_SCALED))] * size
    entries = {"random": WELL_SCALED, "tied": TIES, "scaled": WELL_SCALED, "scaled ties": TIES}
    elements = powers_of_ten(WELL_SCALED) if kind == "mixed" else entries[kind]
    v = draw(st.lists(elements, min_size=size, max_size=size))
    scale = 10.0 ** draw(EXPONENTS) if kind.startswith("scaled") else 1.0
    return [scale * value for value in v]


@st.composite
def large_vectors(draw):
    """Draw a vector of up to 2,000 entries from a seeded generator."""
    n = draw(st.one_of(st.integers(13, 300), st.sampled_from([511, 999, 1000, 1999, 2000])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "tied", "mixed", "near ties", "one stands out"]))
    v = {
        "normal": lambda: rng.normal(size=n),
        "tied": lambda: rng.integers(-2, 4, size=n) / 3.0,
        "mixed": lambda: rng.normal(size=n) * 10.0 ** rng.integers(-12, 13, size=n),
        "near ties": lambda: 1.0 + 1e-12 * rng.normal(size=n),
        "one stands out": lambda: rng.normal(size=n) + 1e3 * (np.arange(n) == n // 2),
    }[kind]()
    return v * draw(st.sampled_from([1e-12, 1.0, 1.0, 1e12]))


SMALL_VECTORS = small_vectors()
SIZES = st.one_of(
    st.sampled_from([1e-12, 0.1, 0.5, 1.0, 2.0, 1e12]),
    st.floats(0.01, 10),
    powers_of_ten(st.floats(1, 10)),
)


def assert_close(p, expected, scale, dtype=np.float64):
    """The answer has the right shape and dtype and is within rounding of the exact one."""
    assert p.dtype == dtype
    assert p.shape == expected.shape
    error = np.max(np.abs(p.astype(np.float64) - expected))
    step = float(np.finfo(dtype).smallest_subnormal)  # between the numbers next to zero
    allowed = max(ACCURACY[dtype] * scale, 2 * step)
    assert error <= allowed, f"error {error:.2e} at scale {scale:.2e}"


def assert_sum(p, z, dtype=np.float64, at_most=False):
    """No entry is negative, and the sum is z to a few units in the last place per entry."""
    assert np.all(p >= 0)
    excess = float(np.sum(p, dtype=np.longdouble)) - z
    slack = 8 * len(p) ** 0.5 * np.finfo(dtype).eps * z
    assert excess <= slack, f"sum too large by {excess / z:.2e}"
    assert at_most or excess >= -slack, f"sum too small by {-excess / z:.2e}"
