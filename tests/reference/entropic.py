"""Softmax and top-k entropy in 50 digits (mpmath), from a bisection in double precision.

    minimise  A/2 (||p||^2 + (sum p)^2) - A b.p + sum p log(p/c) + r log(r/c),   r = c - sum p >= 0.

With v = (b, c) and q = (p, r): A q_j + log(A q_j) = A v_j - t for all j, and sum q = c gives t.
Top-k entropy has p_j <= sum(p)/k as well. There, all numbers of classes at that bound are tried,
and what is returned satisfies the optimality conditions to 30 digits.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
from scipy.special import wrightomega

DIGITS = 50
ENTROPIC = ("softmax", "top_k_entropy")


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


def with_u_at_the_cap(y, total, k: int, u: int):
    """Return (x, A r) where the u largest x are the cap, whose excess over omega is not looked at.

    Omega of the others is taken at t, A r at t' = t + 1/k sum_U (y_j - t - v - log v), where
    v = sum_M omega(y_j - t) / (k - u) is the cap; t is where x and A r add up to A c.
    """
    upper, free = y[:u], y[u:]
    size = np.array([float(value) for value in free])

    def in_double(t: float) -> float:
        v = wrightomega(size - t).sum() / (k - u)
        if v == 0:
            return -np.inf
        lifted = sum(float(value) - t - v - np.log(v) for value in upper)
        return k * v + wrightomega(float(total) - t - lifted / k) - float(total)

    width = float(total) + 800 + max(abs(float(value)) for value in [*y, total])
    low, high = float(free[0]) - width, float(free[0]) + width
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if in_double(middle) > 0 else (low, middle)
    t = mp.mpf(low)
    for _ in range(60):
        x = [omega(value - t) for value in free]
        v, slope = mp.fsum(x) / (k - u), mp.fsum(w / (1 + w) for w in x) / (k - u)
        own = total - t - mp.fsum(value - t - v - mp.log(v) for value in upper) / k
        r = omega(own)
        falls = k * slope + r / (1 + r) * (k - u + u * slope * (1 + 1 / v)) / k
        step = (k * v + r - total) / falls
        if abs(step) <= mp.mpf(10) ** (-DIGITS + 10) * max(1, abs(t), total):
            return [v] * u + x, r, t
        t += step
    return None


def likely_at_the_cap(y, total, k: int) -> int:
    """Return how many classes are at the cap, but for rounding: a bisection in double precision."""
    size = np.array([float(value) for value in y])
    low, high = size[k - 1] - float(total) - 800, max(size[0], float(total)) + 800
    u = 0
    for _ in range(120):
        t = (low + high) / 2
        w = wrightomega(size - t)
        behind = w[::-1].cumsum()[::-1][:k]  # sums of all but the first
        u = int(np.argmax(w[:k] * (k - np.arange(k)) <= behind * (1 + 1e-15)))
        v = max(behind[u] / (k - u), 1e-300)
        r = wrightomega(float(total) - t - (size[:u] - t - v - np.log(v)).sum() / k)
        low, high = (t, high) if k * v + r > float(total) else (low, t)
    return u


def solve_top_k_entropy(b, c: float, k: int, A: float = 1.0) -> np.ndarray:
    """Return the minimiser, rounded once to float64."""
    with mp.workdps(DIGITS):
        total, slack = mp.mpf(float(A)) * mp.mpf(float(c)), mp.mpf(10) ** -30
        order = sorted(range(len(b)), key=lambda j: -b[j])
        y = [mp.mpf(float(A)) * mp.mpf(float(b[j])) for j in order]
        likely = likely_at_the_cap(y, total, k)
        for u in sorted(range(k), key=lambda u: abs(u - likely)):
            found = with_u_at_the_cap(y, total, k, u)
            if found is None:
                continue
            x, _, t = found
            v = mp.fsum(x) / k
            if x[u] <= v * (1 + slack) and all(
                omega(y[i] - t) >= v * (1 - slack) for i in range(u)
            ):
                p = np.empty(len(b))
                p[order] = [float(value / mp.mpf(float(A))) for value in x]
                return p
    raise AssertionError("no number of classes at the cap is right")


def top_k_entropy_value(h, k: int) -> float:
    """Return log(1 + e^E), E = max x.h - sum x log x over x_j <= 1/k, sum x = 1."""
    with mp.workdps(DIGITS):
        h = sorted((mp.mpf(float(value)) for value in h), reverse=True)
        for u in range(k):
            t = mp.log(mp.fsum(mp.exp(value - h[u]) for value in h[u:]) * k / (k - u)) + h[u]
            x = [mp.mpf(1) / k] * u + [mp.exp(value - t) for value in h[u:]]
            if x[u] <= (1 + mp.mpf(10) ** -30) / k:
                E = mp.fsum(own * (value - mp.log(own)) for own, value in zip(x, h, strict=True))
                return float(mp.log1p(mp.exp(E)))
    raise AssertionError("no number of classes at the cap is right")
