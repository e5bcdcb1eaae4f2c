"""The primal problem of every loss as a QP for a general solver (CVXPY with Clarabel)."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from tests.reference.block_sets import CLARABEL, LOOSE
from tests.reference.entropic import ENTROPIC
from tests.reference.objective import Spec, dual, dual_infeasibility, primal, signs
from tests.reference.restricted import curvature


@cache
def random_spec(
    loss: str,
    top_k: int | None,
    K: int,
    *,
    weights: bool = False,
    zero_rows: bool = False,
    intercept: bool = False,
    seed: int = 0,
    smoothing: float = 0.0,
) -> Spec:
    """Draw a small problem: overlapping classes, n = 25, d = 4."""
    rng = np.random.default_rng(seed)
    n, d = 25, 4
    y = np.arange(n, dtype=np.int32) % K
    X = rng.normal(size=(n, d)) + rng.normal(size=(K, d))[y]
    X[rng.random(size=X.shape) < 0.2] = 0.0
    if zero_rows:
        X[[2, 11, 17]] = 0.0
    c = np.full(n, 0.8)
    if weights:
        c *= rng.uniform(0.2, 3.0, size=n)
        c[[5, 9]] = 0.0
    return Spec(X, y, c, loss, top_k, 1.5 if intercept else 0.0, K, smoothing)


def example_loss(spec: Spec, scores: cp.Expression, i: int) -> cp.Expression:
    """Return the loss of example i as a convex expression of its scores."""
    if spec.loss.startswith("one_vs_rest"):
        h = 1 - cp.multiply(signs(spec.y[i : i + 1], spec.K)[0], scores)
    else:
        wrong = [j for j in range(spec.K) if j != spec.y[i]]
        h = spec.delta[i, wrong] + scores[wrong] - scores[int(spec.y[i])]
    if spec.smoothing == 0:
        return loss_of_margins(spec, h)
    apart = cp.Variable(h.shape)  # the conjugate of a sum is the infimal convolution
    return loss_of_margins(spec, h - apart) + cp.sum_squares(apart) / (2 * spec.smoothing)


def loss_of_margins(spec: Spec, h: cp.Expression) -> cp.Expression:
    """Return the loss at margins, before smoothing."""
    if spec.loss == "one_vs_rest":
        return cp.sum(cp.pos(h))
    if spec.loss == "one_vs_rest_squared":
        return cp.sum_squares(cp.pos(h))
    if spec.loss == "softmax":  # no margin
        return cp.log_sum_exp(cp.hstack([0, h - 1]))
    if spec.loss == "top_k_entropy":
        return cp.logistic(largest_with_entropy(h - 1, spec.top_k))
    if spec.loss == "crammer_singer":
        return cp.pos(cp.max(h))
    if spec.loss == "weston_watkins":
        return cp.sum(cp.pos(h))
    if spec.loss == "top_k_beta":
        return cp.sum_largest(cp.pos(h), spec.top_k) / spec.top_k
    return cp.pos(cp.sum_largest(h, spec.top_k) / spec.top_k)


def largest_with_entropy(h: cp.Expression, k: int) -> cp.Expression:
    """Return max x.h - sum x log x over x_j <= 1/k, sum x = 1, by its dual: an upper bound of it.

    Bounds x_j <= 1/k have multipliers m >= 0, which lower h at a price of m/k.
    """
    m = cp.Variable(h.shape, nonneg=True)
    return cp.log_sum_exp(h - m) + cp.sum(m) / k


def optimum(spec: Spec) -> float:
    """Return the smallest primal value."""
    dense = spec.X.toarray() if sparse.issparse(spec.X) else np.asarray(spec.X)
    n = dense.shape[0]
    if spec.intercept_scaling:
        dense = np.column_stack([dense, np.full(n, spec.intercept_scaling)])
    W = cp.Variable((spec.K, dense.shape[1]))
    losses = [spec.c[i] * example_loss(spec, W @ dense[i], i) for i in range(n) if spec.c[i] > 0]
    program = cp.Problem(cp.Minimize(cp.sum_squares(W) / 2 + cp.sum(cp.hstack(losses))))
    flat = spec.loss not in ENTROPIC and not curvature(spec.loss, spec.smoothing)
    return float(program.solve(**(CLARABEL if flat else LOOSE)))


def assert_optimal(spec, best, solution):
    """The solution is feasible, says what it is, and is within 1e-6 of the QP's optimum."""
    P = primal(spec, solution.coef, solution.intercept)
    D = dual(spec, solution.dual_coef())
    assert dual_infeasibility(spec, solution.dual_coef()) <= 1e-12
    assert solution.status == "converged"
    assert solution.primal == pytest.approx(P, rel=1e-10)
    assert solution.dual == pytest.approx(D, rel=1e-10)
    assert (P - D) / P <= 1e-9 + 1e-13
    assert pytest.approx(best, rel=1e-6) == P
    assert pytest.approx(best, rel=1e-6) == D
