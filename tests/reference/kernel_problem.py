"""The Crammer-Singer dual with a kernel as a QP for a general solver, and LaRank in plain NumPy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from tests.reference.block_sets import CLARABEL


def dual_optimum(K: np.ndarray, y: np.ndarray, C: float) -> float:
    """Return the largest value of problem (7) of Bordes et al. 2007."""
    n, n_classes = len(y), int(y.max()) + 1
    beta = cp.Variable((n, n_classes))
    own = np.eye(n_classes)[y]
    root = np.linalg.cholesky(K + 1e-12 * np.eye(n)).T
    value = cp.sum(cp.multiply(own, beta)) - cp.sum_squares(root @ beta) / 2
    constraints = [beta <= C * own, cp.sum(beta, axis=1) == 0]
    return float(cp.Problem(cp.Maximize(value), constraints).solve(**CLARABEL))


def dual_value(K: np.ndarray, y: np.ndarray, beta: np.ndarray) -> float:
    """Return the dual objective of beta, (n, n_classes)."""
    return float(beta[np.arange(len(y)), y].sum() - np.sum(beta * (K @ beta)) / 2)


def primal_value(K: np.ndarray, y: np.ndarray, beta: np.ndarray, C: float) -> float:
    """Return the primal objective of ``w = sum_i beta_i phi(x_i)``."""
    scores = K @ beta
    margin = 1 + scores - scores[np.arange(len(y)), y][:, None]
    margin[np.arange(len(y)), y] = 0
    return float(np.sum(beta * scores) / 2 + C * margin.max(axis=1).sum())


def infeasibility(y: np.ndarray, beta: np.ndarray, C: float) -> float:
    """Return by how much beta violates the constraints of problem (7)."""
    upper = C * np.eye(beta.shape[1])[y]
    return float(max(np.max(beta - upper), np.abs(beta.sum(axis=1)).max()))


def process_new_only(
    K: np.ndarray, y: np.ndarray, order: np.ndarray, C: float, tau: float
) -> np.ndarray:
    """Return beta after one pass of ProcessNew (algorithms 1 and 2), every score from scratch."""
    beta = np.zeros((len(y), int(y.max()) + 1))
    for i in order:
        gradient = -(K[i] @ beta)
        gradient[y[i]] += 1
        worst = int(np.argmin(gradient))
        slope = gradient[y[i]] - gradient[worst]
        if slope > tau:
            step = min(slope / (2 * K[i, i]), C)
            beta[i, y[i]] += step
            beta[i, worst] -= step
    return beta
