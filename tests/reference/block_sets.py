"""The block sets as CVXPY constraints, and the restricted problem for a general QP solver."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from tests.reference.entropic import ENTROPIC
from tests.reference.restricted import curvature

CLARABEL: dict[str, Any] = {
    "solver": cp.CLARABEL,
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "max_iter": 500,
}
TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
CURVED = CLARABEL | dict.fromkeys(TOLERANCES, 1e-12)
LOOSE = CLARABEL | dict.fromkeys(TOLERANCES, 1e-9)


def block_constraints(loss: str, p: cp.Variable, c: Any, top_k: int | None) -> list[cp.Constraint]:
    """Return the constraints on one example's block p, a line of mathematics.md's table."""
    total = cp.sum(p)
    return {
        "crammer_singer": lambda: [p >= 0, total <= c],
        "weston_watkins": lambda: [p >= 0, p <= c],
        "top_k_beta": lambda: [p >= 0, p <= c / top_k, total <= c],
        "top_k_alpha": lambda: [p >= 0, p <= total / top_k, total <= c],
        "one_vs_rest": lambda: [p >= 0, p <= c],
        "one_vs_rest_squared": lambda: [p >= 0],
        "softmax": lambda: [p >= 0, total <= c],
        "top_k_entropy": lambda: [p >= 0, p <= total / top_k, total <= c],
    }[loss]()


def conjugate(loss: str, p: cp.Variable, c: float, smoothing: float = 0.0) -> cp.Expression:
    """Return the conjugate of c loss at a block."""
    if loss in ENTROPIC:
        return -c * (cp.sum(cp.entr(p / c)) + cp.entr(1 - cp.sum(p) / c))
    return float(curvature(loss, smoothing)) / (2 * c) * cp.sum_squares(p)


@cache
def restricted_program(loss: str, m: int, top_k: int | None):
    """Return (program, p, b, c, w) of the restricted problem; b, c and w are parameters."""
    p, b, c = cp.Variable(m), cp.Parameter(m), cp.Parameter(nonneg=True)
    w = cp.Parameter(nonneg=True)
    quadratic = w * cp.sum_squares(p)
    if not loss.startswith("one_vs_rest"):
        quadratic += cp.square(cp.sum(p))
    objective = cp.Minimize(quadratic / 2 - b @ p)
    return cp.Problem(objective, block_constraints(loss, p, c, top_k)), p, b, c, w


def solve_with_clarabel(
    loss: str, b, c: float, top_k: int | None = None, smoothing: float = 0.0
) -> np.ndarray:
    """Return the restricted problem's minimiser as Clarabel finds it (about 8 digits)."""
    if loss in ENTROPIC:
        p = cp.Variable(len(b))
        quadratic = cp.sum_squares(p) / 2 + cp.square(cp.sum(p)) / 2
        objective = quadratic - np.asarray(b) @ p + conjugate(loss, p, c)
        cp.Problem(cp.Minimize(objective), block_constraints(loss, p, c, top_k)).solve(**LOOSE)
        return np.asarray(p.value)
    program, p, b_parameter, c_parameter, w = restricted_program(loss, len(b), top_k)
    b_parameter.value, c_parameter.value = np.asarray(b, dtype=np.float64), float(c)
    w.value = 1 + float(curvature(loss, smoothing)) / c
    program.solve(**(CURVED if curvature(loss, smoothing) else CLARABEL))
    return np.asarray(p.value)


def largest_inner_product(
    loss: str, h, c: float, top_k: int | None = None, smoothing: float = 0.0
) -> float:
    """Return max h.p - conjugate(p) over the block set."""
    h = np.asarray(h, dtype=np.float64)
    p = cp.Variable(len(h))
    objective = cp.Maximize(h @ p - conjugate(loss, p, c, smoothing))
    program = cp.Problem(objective, block_constraints(loss, p, c, top_k))
    if loss in ENTROPIC:
        return float(program.solve(**LOOSE))
    return float(program.solve(**(CURVED if curvature(loss, smoothing) else CLARABEL)))
