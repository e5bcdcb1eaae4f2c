"""The primal objective in NumPy, written apart from the package so that it can judge it.

    P(W) = 1/2 ||W||^2 + C sum_i max(0, max_{j != y_i} 1 + s_ij - s_iy),    s_i = W x_i

No intercept and no weights: the comparison with LIBLINEAR has neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS_AT_ONCE = 4096


def crammer_singer_primal(X: Any, y: np.ndarray, coef: np.ndarray, C: float) -> float:
    """Evaluate the Crammer-Singer primal in float64.

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

    Returns
    -------
    float
        The value of P.
    """
    W = np.ascontiguousarray(coef.T, dtype=np.float64)
    loss = 0.0
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        codes = y[start : start + ROWS_AT_ONCE]
        margins = 1.0 + np.asarray(X[start : start + ROWS_AT_ONCE].astype(np.float64) @ W)
        rows = np.arange(codes.size)
        margins -= (margins[rows, codes] - 1.0)[:, None]
        margins[rows, codes] = 0.0
        loss += float(margins.max(axis=1).sum())
    return 0.5 * float(np.vdot(W, W)) + C * loss
