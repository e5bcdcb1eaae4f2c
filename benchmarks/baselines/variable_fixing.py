"""The continuous quadratic knapsack problem by variable fixing (Kiwiel 2008, after Bitran and Hax).

    min 1/2 ||p - v||^2   subject to   0 <= p <= upper,  sum p <= total

Lapin, Hein and Schiele compare their projection with it. If the clipped v is within the total, it
is the answer. Otherwise: with tau such that the free v - tau add up to what is left of the total,
compare by how much they are above `upper` and below 0 in sum; fix those at the bound that is
violated more, and go on with the others.
"""

from __future__ import annotations

import numpy as np

from benchmarks.baselines.compiled import compiled


@compiled
def _row(v, upper, total, free, p):
    """One vector; `free` is work space."""
    clipped = 0.0
    for i in range(len(v)):
        p[i] = min(max(v[i], 0.0), upper)
        clipped += p[i]
        free[i] = i
    count = len(v)
    if clipped <= total:
        return
    while count > 0:
        sum_v = 0.0
        for e in range(count):
            sum_v += v[free[e]]
        tau = (sum_v - total) / count
        above, below = 0.0, 0.0
        for e in range(count):
            x = v[free[e]] - tau
            if x > upper:
                above += x - upper
            elif x < 0.0:
                below -= x
        kept = 0
        for e in range(count):
            i = free[e]
            x = v[i] - tau
            p[i] = min(max(x, 0.0), upper)
            if x > upper and above >= below:
                total -= upper
            elif not (x < 0.0 and below >= above):
                free[kept] = i
                kept += 1
        if kept == count or above == below:
            return
        count = kept


@compiled
def _rows(V, upper, total, P):
    free = np.empty(V.shape[1], np.int64)
    for i in range(V.shape[0]):
        _row(V[i], upper, total, free, P[i])


def knapsack(V: np.ndarray, upper: float, total: float = 1.0) -> np.ndarray:
    """Solve the problem for every row of V."""
    P = np.empty_like(V)
    _rows(V, upper, total, P)
    return P
