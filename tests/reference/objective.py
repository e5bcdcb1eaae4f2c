"""Primal and dual objective recomputed from scratch in float64, from what a fitted model shows.

    P = 1/2 ||W||^2 + sum_i c_i loss_i          (W with the constant feature's weights)
    D = sum_ij Delta_ij p_ij - sum_i conjugate_i - 1/2 ||V||^2,  V = sum_i x_i a_i^T
                                                (x_i with the constant feature appended)

A row of zeros without an intercept has curvature A = 0; it adds c_i * loss(scores = 0) to P and
to D alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, xlogy

from tests.reference.entropic import ENTROPIC
from tests.reference.restricted import curvature, smooth_value


@dataclass(frozen=True)
class Spec:
    """A whole problem in plain arrays: what P and D depend on besides the model."""

    X: Any
    y: np.ndarray
    c: np.ndarray
    loss: str
    top_k: int | None = None
    intercept_scaling: float = 0.0
    n_classes: int | None = None
    smoothing: float = 0.0
    margins: np.ndarray | None = None  # Delta(y, j); None: 1

    @property
    def delta(self) -> np.ndarray:
        """Return the margins of every example, (n, K)."""
        return (np.ones((self.K, self.K)) if self.margins is None else self.margins)[self.y]

    @property
    def K(self) -> int:
        return int(self.y.max()) + 1 if self.n_classes is None else self.n_classes


def widened(spec: Spec) -> Any:
    """Return X in float64 with the constant feature appended where there is an intercept."""
    X = sparse.csr_array(spec.X, dtype=np.float64)
    if spec.intercept_scaling == 0:
        return X
    constant = np.full((X.shape[0], 1), float(spec.intercept_scaling))
    return sparse.hstack([X, sparse.csr_array(constant)], format="csr")


def wrong_margins(scores: np.ndarray, y: np.ndarray, delta: np.ndarray | float = 1.0) -> np.ndarray:
    """Return h_ij = delta_ij + s_ij - s_iy for the wrong classes j, shape (n, K - 1)."""
    n, K = scores.shape
    h = delta + scores - scores[np.arange(n), y][:, None]
    return h[np.arange(K)[None, :] != y[:, None]].reshape(n, K - 1)


def signs(y: np.ndarray, K: int) -> np.ndarray:
    """Return the (n, K) matrix with 1 at the true class and -1 elsewhere."""
    return np.where(np.arange(K)[None, :] == y[:, None], 1.0, -1.0)


def loss_values(
    scores: np.ndarray,
    y: np.ndarray,
    loss: str,
    top_k: int | None,
    smoothing: float = 0.0,
    delta: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Return the loss of every example in float64."""
    scores = np.asarray(scores, dtype=np.float64)
    separate = loss.startswith("one_vs_rest")
    h = 1.0 - signs(y, scores.shape[1]) * scores if separate else wrong_margins(scores, y, delta)
    if loss == "softmax":
        return np.logaddexp(0.0, logsumexp(h - 1.0, axis=1))  # no margin
    if loss == "top_k_entropy":
        assert top_k is not None
        return top_k_entropy_values(h - 1.0, top_k)
    if smoothing:
        return np.array([float(smooth_value(loss, row, top_k, smoothing)) for row in h])
    if separate:
        return (np.maximum(0.0, h) ** (2 if loss == "one_vs_rest_squared" else 1)).sum(axis=1)
    descending = -np.sort(-h, axis=1)
    if loss == "crammer_singer":
        return np.maximum(0.0, descending[:, 0])
    if loss == "weston_watkins":
        return np.maximum(0.0, descending).sum(axis=1)
    if loss == "top_k_beta":
        return np.maximum(0.0, descending[:, :top_k]).sum(axis=1) / top_k
    assert loss == "top_k_alpha"
    return np.maximum(0.0, descending[:, :top_k].sum(axis=1) / top_k)


def top_k_entropy_values(h: np.ndarray, k: int) -> np.ndarray:
    """Return log(1 + e^E) of rows, E = max x.h - sum x log x over x_j <= 1/k, sum x = 1.

    The u largest x are 1/k and the others in proportion to e^h. That is feasible where none of them
    exceeds 1/k; more at 1/k than must be lower the maximum.
    """
    descending = -np.sort(-h, axis=1)
    best = np.full(len(h), -np.inf)
    for u in range(k):
        Z = logsumexp(descending[:, u:], axis=1)
        feasible = descending[:, u] - Z + np.log((k - u) / k) <= -np.log(k) + 1e-12
        E = descending[:, :u].sum(axis=1) / k + (k - u) / k * (Z - np.log(k - u)) + np.log(k)
        best = np.maximum(best, np.where(feasible, E, -np.inf))
    return np.logaddexp(0.0, best)


def primal(spec: Spec, coef: np.ndarray, intercept: np.ndarray) -> float:
    """Return P at coef (K, d) and intercept (K,), scores being X @ coef.T + intercept."""
    coef, intercept = np.asarray(coef, np.float64), np.asarray(intercept, np.float64)
    penalty = np.vdot(coef, coef)
    if spec.intercept_scaling == 0:
        assert not intercept.any(), "an intercept without a constant feature"
    else:
        penalty += np.vdot(intercept, intercept) / spec.intercept_scaling**2
    scores = sparse.csr_array(spec.X, dtype=np.float64) @ coef.T + intercept
    losses = loss_values(scores, spec.y, spec.loss, spec.top_k, spec.smoothing, spec.delta)
    return float(0.5 * penalty + np.dot(spec.c, losses))


def block_mass(spec: Spec, a: np.ndarray) -> np.ndarray:
    """Return sum_j Delta_ij p_ij for every example from the rows a_i."""
    if spec.loss in ENTROPIC:  # no margin
        return np.zeros(len(a))
    if spec.loss.startswith("one_vs_rest"):
        return np.abs(a).sum(axis=1)
    if spec.margins is None:
        return a[np.arange(len(a)), spec.y]
    p = -a
    p[np.arange(len(a)), spec.y] = 0.0
    return (spec.delta * p).sum(axis=1)


def conjugates(spec: Spec, a: np.ndarray) -> np.ndarray:
    """Return the conjugate of every example's c loss at its block."""
    p = a.copy()
    if not spec.loss.startswith("one_vs_rest"):
        p[np.arange(len(a)), spec.y] = 0.0
    c = np.where(spec.c > 0, spec.c, 1.0)
    if spec.loss in ENTROPIC:
        q = -p / c[:, None]
        rest = np.maximum(0.0, 1.0 - q.sum(axis=1))
        return c * (xlogy(q, q).sum(axis=1) + xlogy(rest, rest))
    return float(curvature(spec.loss, spec.smoothing)) / (2 * c) * (p**2).sum(axis=1)


def dual(spec: Spec, a: Any) -> float:
    """Return D at the dual matrix a of shape (n, K), dense or sparse."""
    a = dense_rows(a)
    X = widened(spec)
    empty = np.asarray(abs(X).sum(axis=1)).ravel() == 0
    at_zero = loss_values(
        np.zeros(a.shape), spec.y, spec.loss, spec.top_k, spec.smoothing, spec.delta
    )
    gained = np.where(empty, spec.c * at_zero, block_mass(spec, a) - conjugates(spec, a))
    V = X.T @ a
    return float(gained.sum() - 0.5 * np.vdot(V, V))


def relative_gap(spec: Spec, coef: np.ndarray, intercept: np.ndarray, a: Any) -> float:
    """Return (P - D) / P."""
    P = primal(spec, coef, intercept)
    return (P - dual(spec, a)) / P


def dense_rows(a: Any) -> np.ndarray:
    """Return the dual matrix as a dense float64 array."""
    return np.asarray(a.todense() if sparse.issparse(a) else a, dtype=np.float64)


def dual_infeasibility(spec: Spec, a: Any) -> float:
    """Return the largest violation of the block sets, relative to each example's c."""
    a = dense_rows(a)
    absent = spec.c == 0
    assert not a[absent].any(), "an absent example has a dual variable"
    a, y, c = a[~absent], spec.y[~absent], spec.c[~absent]
    if spec.loss.startswith("one_vs_rest"):
        p = signs(y, spec.K) * a / c[:, None]
        excess = 0.0 if spec.loss == "one_vs_rest_squared" else (p - 1).max()
        return float(max(0.0, (-p).max(), excess))
    wrong = np.arange(spec.K)[None, :] != y[:, None]
    p = -a[wrong].reshape(len(a), spec.K - 1) / c[:, None]
    total = p.sum(axis=1)
    balance = np.abs(a.sum(axis=1)) / np.maximum(c, c * total)
    return float(max(0.0, balance.max(), (-p).max(), _excess(spec, p, total)))


def _excess(spec: Spec, p: np.ndarray, total: np.ndarray) -> float:
    """Return by how much p, already divided by c, exceeds its upper bounds."""
    if spec.loss == "weston_watkins":
        return float((p - 1).max())
    excess = [(total - 1).max()]
    if spec.loss == "top_k_beta":
        excess.append((p - 1 / spec.top_k).max())
    if spec.loss in ("top_k_alpha", "top_k_entropy"):
        excess.append((p - total[:, None] / spec.top_k).max())
    return float(max(excess))
