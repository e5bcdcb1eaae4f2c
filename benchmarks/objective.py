"""The primal objectives in NumPy, written apart from the package so that they can judge it.

    P(W) = 1/2 ||W||^2 + C sum_i loss(s_i),    s_i = W x_i

with ``h_j = 1 + s_j - s_y`` over the wrong classes and the losses

- ``crammer_singer``: ``max(0, max_j h_j)``;
- ``weston_watkins``: ``sum_j max(0, h_j)``;
- ``top_k_alpha``: ``max(0, mean of the k largest h_j)``;
- ``top_k_beta``: ``mean of the k largest max(0, h_j)``;
- ``one_vs_rest``: ``sum_m max(0, 1 - y_m s_m)`` over all classes.

No intercept and no weights: the comparisons have neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS_AT_ONCE = 4096


def primal(
    X: Any,
    y: np.ndarray,
    coef: np.ndarray,
    C: float,
    loss: str = "crammer_singer",
    top_k: int | None = None,
) -> float:
    """Evaluate a primal objective in float64.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
        Features.
    y : ndarray of int of shape (n,)
        Class codes 0..K-1.
    coef : ndarray of shape (K, d)
        One row of weights per class.
    C : float
        Weight of the loss.
    loss : str, default="crammer_singer"
        One of the five names above.
    top_k : int, default=None
        The k of the top-k losses.

    Returns
    -------
    float
        The value of P.
    """
    W = np.ascontiguousarray(coef.T, dtype=np.float64)
    total = 0.0
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        codes = y[start : start + ROWS_AT_ONCE]
        scores = np.asarray(X[start : start + ROWS_AT_ONCE].astype(np.float64) @ W)
        total += _sum_of_losses(scores, codes, loss, top_k)
    return 0.5 * float(np.vdot(W, W)) + C * total


def crammer_singer_primal(X: Any, y: np.ndarray, coef: np.ndarray, C: float) -> float:
    """Evaluate the Crammer-Singer primal; see `primal`."""
    return primal(X, y, coef, C)


def _sum_of_losses(scores: np.ndarray, codes: np.ndarray, loss: str, top_k: int | None) -> float:
    """Sum the loss over the rows; the true class's own margin is put out of the way."""
    rows = np.arange(codes.size)
    true = scores[rows, codes]
    if loss == "one_vs_rest":
        wrong = np.maximum(1.0 + scores, 0.0)
        wrong[rows, codes] = np.maximum(1.0 - true, 0.0)
        return float(wrong.sum())
    margins = 1.0 + scores - true[:, None]
    margins[rows, codes] = -np.inf
    if loss == "crammer_singer":
        return float(np.maximum(margins.max(axis=1), 0.0).sum())
    if loss == "weston_watkins":
        return float(np.maximum(margins, 0.0).sum())
    if loss not in ("top_k_alpha", "top_k_beta") or not top_k:
        raise ValueError(f"no objective for loss={loss!r} with top_k={top_k!r}")
    largest = np.sort(margins, axis=1)[:, -top_k:]
    if loss == "top_k_beta":
        return float(np.maximum(largest, 0.0).mean(axis=1).sum())
    return float(np.maximum(largest.mean(axis=1), 0.0).sum())
