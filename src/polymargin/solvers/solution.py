"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.losses import Loss


@dataclass(kw_only=True)
class DualSolution:
    """A dual and its certificate.

    Attributes
    ----------
    primal, dual : float
        Objective values; NaN when not certified.
    gap : float
        Relative duality gap ``(primal - dual) / primal``; NaN when not certified.
    n_iter : int
        Passes made (kernel machines: working sets solved).
    history : dict of str to ndarray
        One entry per certificate: pass, time, primal, dual, gap, n_awake.
    status : str
        ``"converged"``, ``"max_iter"``, ``"time_limit"``, ``"interrupted"``, ``"uncertified"``,
        or ``"stalled"`` where rounding allows no smaller gap (kernel machines).
    block : csr_array of shape (n, n_classes)
        The dual ``p >= 0`` (over the wrong classes; one-vs-rest: over all).
    c, y, loss : the parts of the problem that a warm start needs.
    """

    primal: float
    dual: float
    gap: float
    n_iter: int
    history: dict[str, NDArray]
    status: str
    block: sparse.csr_array = field(repr=False)
    c: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.int32] = field(repr=False)
    loss: Loss

    def dual_coef(self) -> sparse.csr_array:
        """Rows ``a_i`` of the dual, (n, n_classes): ``a_ij = -p_ij`` and ``a_iy = sum_j p_ij``."""
        p = self.block
        rows = np.arange(p.shape[0])
        if not self.loss.coupled:
            signs = np.where(p.indices == np.repeat(self.y, np.diff(p.indptr)), 1, -1)
            values = p.data * signs.astype(p.dtype)
            return sparse.csr_array((values, p.indices, p.indptr), shape=p.shape)
        # a running sum would lose digits: add up row by row
        own = np.zeros(p.shape[0], np.float64)
        filled = np.flatnonzero(np.diff(p.indptr))
        if len(filled):
            own[filled] = np.add.reduceat(p.data.astype(np.float64), p.indptr[filled])
        diagonal = sparse.csr_array((own[filled], (rows[filled], self.y[filled])), shape=p.shape)
        return (diagonal - p).astype(p.dtype).tocsr()


@dataclass(kw_only=True)
class Solution(DualSolution):
    """A linear model, its certificate, and the dual it was certified with.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
    intercept : ndarray of shape (n_classes,)
        ``scores = X @ coef.T + intercept``; the penalised weight of the constant feature is
        ``intercept / intercept_scaling``.
    """

    coef: NDArray
    intercept: NDArray


def feasible_start(c: NDArray[np.float64], start: DualSolution, squared_norm: float) -> float:
    """The factor for the dual of ``start`` that is feasible for ``c`` and best on its ray.

    Scaling by ``r`` is feasible up to the smallest ratio of the bounds; ``r sum p - r^2/2 ||V||^2``
    is largest at ``sum p / ||V||^2``.
    """
    used = np.diff(start.block.indptr) > 0
    if not used.any() or (c[used] == 0).any():
        return 0.0
    largest = float(np.min(c[used] / start.c[used]))
    return best_factor(largest, float(start.block.sum(dtype=np.float64)), squared_norm)


def best_factor(largest: float, dual_sum: float, squared_norm: float) -> float:
    """The factor up to `largest` that is best for a dual with this sum and ``||V||^2``."""
    return largest if squared_norm <= 0 else min(largest, dual_sum / squared_norm)
