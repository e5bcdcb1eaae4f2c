"""The projections in exact rational arithmetic, and as programs for a general QP solver.

Floats are rationals, so the inputs convert without error and the answers are exact. All problems
are strictly convex: the answer is unique and any correct method must return it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from tests.reference.block_sets import CLARABEL
from tests.reference.restricted import ZERO, decreasing_root, solve_top_k_alpha


def exact(values) -> list[Fraction]:
    """Convert floats without error."""
    return [Fraction(float(value)) for value in values]


def rounded(values: Sequence[Fraction]) -> np.ndarray:
    """Round rationals once, to float64."""
    return np.array([float(value) for value in values])


def simplex_threshold(v: Sequence[Fraction], z: Fraction) -> Fraction:
    """Return tau with sum_j max(v_j - tau, 0) = z: the largest mean excess of the top entries."""
    total, best = ZERO, None
    for count, value in enumerate(sorted(v, reverse=True), start=1):
        total += value
        tau = (total - z) / count
        if best is not None and tau <= best:
            break
        best = tau
    assert best is not None
    return best


def project_simplex(v, z: float) -> np.ndarray:
    """Project onto {p >= 0, sum p = z}."""
    v = exact(v)
    tau = simplex_threshold(v, Fraction(float(z)))
    return rounded([max(value - tau, ZERO) for value in v])


def project_l1_ball(v, z: float) -> np.ndarray:
    """Project onto {sum |p| <= z}."""
    v, radius = exact(v), Fraction(float(z))
    if sum(map(abs, v)) <= radius:
        return rounded(v)
    tau = simplex_threshold([abs(value) for value in v], radius)
    return rounded([max(abs(value) - tau, ZERO) * (1 if value > 0 else -1) for value in v])


def project_capped_simplex(v, upper, z: float, equality: bool = True) -> np.ndarray:
    """Project onto {0 <= p <= upper, sum p = z}, or sum p <= z; upper has an entry per entry."""
    v, upper, total = exact(v), exact(upper), Fraction(float(z))

    def clipped(t: Fraction) -> list[Fraction]:
        return [min(max(a - t, ZERO), u) for a, u in zip(v, upper, strict=True)]

    if not equality and sum(clipped(ZERO)) <= total:
        return rounded(clipped(ZERO))
    if sum(upper) <= total:  # feasible only up to the rounding of z
        return rounded(upper)
    points = sorted([*v, *(a - u for a, u in zip(v, upper, strict=True))])
    return rounded(clipped(decreasing_root(lambda t: sum(clipped(t)) - total, points)))


def project_top_k(v, k: int, r: float = np.inf, bias: float = 0.0) -> np.ndarray:
    """Project onto the top-k simplex of size r, or the top-k cone; with a bias."""
    v = exact(v)
    # the projection is no longer than v, so that this bound on its sum is never active
    bound = 2 * len(v) * (1 + max(map(abs, v))) if np.isinf(r) else Fraction(float(r))
    return rounded(solve_top_k_alpha(v, k, bound, Fraction(float(bias))))


@cache
def program(kind: str, n: int, k: int, bias: float):
    """Return (program, p, parameters) of a projection."""
    p, v = cp.Variable(n), cp.Parameter(n)
    size, upper = cp.Parameter(nonneg=True), cp.Parameter(n, nonneg=True)
    total = cp.sum(p)
    constraints = {
        "capped": lambda: [p >= 0, p <= upper, total == size],
        "capped at most": lambda: [p >= 0, p <= upper, total <= size],
        "top-k cone": lambda: [p >= 0, p <= total / k],
        "top-k simplex": lambda: [p >= 0, p <= total / k, total <= size],
    }[kind]()
    objective = (cp.sum_squares(p) + bias * cp.square(total)) / 2 - v @ p
    parameters = {"v": v, "size": size, "upper": upper}
    return cp.Problem(cp.Minimize(objective), constraints), p, parameters


def project_with_clarabel(kind: str, v, k: int = 1, bias: float = 0.0, **values: Any):
    """Return a projection as Clarabel finds it (about 8 digits)."""
    problem, p, parameters = program(kind, len(v), k, bias)
    for name, value in {"v": v, **values}.items():
        parameters[name].value = np.asarray(value, dtype=np.float64)
    problem.solve(**CLARABEL)
    return np.asarray(p.value)
