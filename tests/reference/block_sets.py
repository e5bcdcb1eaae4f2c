"""The block sets as CVXPY constraints, and the restricted problem for a general QP solver."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

CLARABEL: dict[str, Any] = {
    "solver": cp.CLARABEL,
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "max_iter": 500,
}


def block_constraints(loss: str, p: cp.Variable, c: Any, top_k: int | None) -> list[cp.Constraint]:
    """Return the constraints on one example's block p, one line of DESIGN's table."""
    total = cp.sum(p)
    return {
        "crammer_singer": lambda: [p >= 0, total <= c],
        "weston_watkins": lambda: [p >= 0, p <= c],
        "top_k_beta": lambda: [p >= 0, p <= c / top_k, total <= c],
        "top_k_alpha": lambda: [p >= 0, p <= total / top_k, total <= c],
        "one_vs_rest": lambda: [p >= 0, p <= c],
    }[loss]()


@cache
def restricted_program(loss: str, m: int, top_k: int | None):
    """Return (program, p, b, c) of the restricted problem; b and c are parameters."""
    p, b, c = cp.Variable(m), cp.Parameter(m), cp.Parameter(nonneg=True)
    quadratic = cp.sum_squares(p)
    if loss != "one_vs_rest":
        quadratic += cp.square(cp.sum(p))
    objective = cp.Minimize(quadratic / 2 - b @ p)
    return cp.Problem(objective, block_constraints(loss, p, c, top_k)), p, b, c


def solve_with_clarabel(loss: str, b, c: float, top_k: int | None = None) -> np.ndarray:
    """Return the restricted problem's minimiser as Clarabel finds it (about 8 digits)."""
    program, p, b_parameter, c_parameter = restricted_program(loss, len(b), top_k)
    b_parameter.value, c_parameter.value = np.asarray(b, dtype=np.float64), float(c)
    program.solve(**CLARABEL)
    return np.asarray(p.value)


def largest_inner_product(loss: str, h, c: float, top_k: int | None = None) -> float:
    """Return max h.p over the block set, as a linear program."""
    h = np.asarray(h, dtype=np.float64)
    p = cp.Variable(len(h))
    program = cp.Problem(cp.Maximize(h @ p), block_constraints(loss, p, c, top_k))
    return float(program.solve(**CLARABEL))
