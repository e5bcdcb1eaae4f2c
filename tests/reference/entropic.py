"""The restricted problem of softmax in 50 digits (mpmath), from a bisection in double precision.

    minimise  A/2 (||p||^2 + (sum p)^2) - A b.p + sum p log(p/c) + r log(r/c),   r = c - sum p >= 0.

With v = (b, c) and q = (p, r): A q_j + log(A q_j) = A v_j - t for all j, and sum q = c gives t.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
from scipy.special import wrightomega

DIGITS = 50


def omega(z: mp.mpf) -> mp.mpf:
    """Return x with x + log x = z, by Newton's method."""
    x = mp.exp(z) if z < -20 else mp.mpf(float(wrightomega(float(z))))
    for _ in range(100):
        step = x * (1 + z - mp.log(x)) / (1 + x) - x
        x += step
        if abs(step) <= abs(x) * mp.mpf(10) ** (-DIGITS + 4):
            return x
    raise AssertionError("Newton's method did not end")


def solve_softmax(b, c: float, A: float = 1.0) -> np.ndarray:
    """Return the minimiser, rounded once to float64."""
    with mp.workdps(DIGITS):
        total = mp.mpf(float(A)) * mp.mpf(float(c))
        y = [mp.mpf(float(A)) * mp.mpf(float(value)) for value in b] + [total]
        top = max(y)
        shifted = np.array([float(value - top) for value in y])
        share = float(total) / len(y)
        low, high = -float(total) - np.log(float(total)), -share - np.log(share)
        for _ in range(80):
            middle = (low + high) / 2
            excess = wrightomega(shifted - middle).sum() > float(total)
            low, high = (middle, high) if excess else (low, middle)
        t = top + mp.mpf(low)
        for _ in range(50):
            x = [omega(value - t) for value in y]
            step = (mp.fsum(x) - total) / mp.fsum(value / (1 + value) for value in x)
            if abs(step) <= mp.mpf(10) ** (-DIGITS + 10) * max(1, abs(t), total):
                return np.array([float(value / mp.mpf(float(A))) for value in x[:-1]])
            t += step
    raise AssertionError("Newton's method did not end")
