"""BOXCQP: quadratic programs with bounds, by guessing the active set (Voglis and Lagaris 2004).

    min 1/2 b'Hb - v'b    over  0 <= b <= C

Fix the variables whose bound or multiplier is violated, solve for the rest, look at the signs, and
repeat until nothing changes. Simple and fast where it ends; it can cycle, hence the limit.
"""

from __future__ import annotations

import numpy as np


def box_cqp(H: np.ndarray, v: np.ndarray, C: float, max_iter: int = 200) -> np.ndarray:
    """The minimiser, or the last guess clipped to the bounds when it does not end."""
    b = np.linalg.solve(H, v)
    low = high = np.zeros(len(v))  # multipliers of the bounds
    for _ in range(max_iter):
        at_low = (b < 0) | ((b == 0) & (low > 0))
        at_high = (b > C) | ((b == C) & (high > 0))
        free = ~(at_low | at_high)
        b = np.where(at_high, C, 0.0)
        if free.any():
            b[free] = np.linalg.solve(
                H[np.ix_(free, free)], v[free] - H[free][:, at_high].sum(1) * C
            )
        gradient = H @ b - v
        low = np.where(at_low, gradient, 0.0)
        high = np.where(at_high, -gradient, 0.0)
        inside = ((b[free] >= 0) & (b[free] <= C)).all()
        if inside and (low >= 0).all() and (high >= 0).all():
            return b
    return np.clip(b, 0.0, C)
