r"""Where sweeps of a dense dual begin: a part of the way from no dual variables to equal ones.

At zero weights all K classes are equally likely, and every block of a probabilistic loss is best at
``p_ij = c_i / K``. All of it would be too far where the examples are many: with ``p_ij = a c_i``
the weights are a multiple of one matrix, ``V = a V_1``, and so the dual value is a function of a,

    D(a)  =  -sum_i c_i ((K - 1) a log a + r log r)  -  a^2 / 2 ||V_1||^2,      r = 1 - (K - 1) a,

whose maximum is where ``(K - 1) sum c log(r / a) = a ||V_1||^2``. ``V_1`` takes sums of the rows by
class, which costs less than a pass; the start saves about one while C is small.
"""

from __future__ import annotations

import math

from polymargin.solvers.certificate import squared_norm
from polymargin.solvers.state import State

HALVINGS = 80


def best_share(total: float, v: float, n_classes: int) -> float:
    """The a of the highest dual value, where the costs add up to `total` and ``||V_1||^2 = v``."""
    others = n_classes - 1
    low, high = 0.0, 1.0 / n_classes
    for _ in range(HALVINGS):
        a = 0.5 * (low + high)
        if others * total * math.log((1.0 - others * a) / a) > a * v:
            low = a
        else:
            high = a
    return low


def spread_start(state: State) -> float:
    """Set the dual and the weights, which are zero, to this start; returns the sum of the dual."""
    problem = state.problem
    total, others = float(problem.c[problem.visited].sum()), problem.n_classes - 1
    V = state.spread_weights()
    v = squared_norm(V)
    if not (total > 0 and math.isfinite(v)):
        return 0.0
    a = best_share(total, v, problem.n_classes)
    if a == 0.0:
        return 0.0
    state.spread_dual(a)
    state.W[:] = V * V.dtype.type(a)
    rest = 1.0 - others * a
    return -total * (others * a * math.log(a) + rest * math.log(rest))
