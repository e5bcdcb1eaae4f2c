"""Certificates: a primal value, a dual value, and so how far from the optimum a model can be.

For any W and any feasible dual, ``P(W) >= P* = D* >= D``. With ``V = sum_i x_i a_i^T``,
``P(W) - D = 1/2 ||W - V||^2 + sum_i (c_i loss_i - p_i.h_i)``: every example owns a share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.solvers.state import State

ROUNDING = 1e-5  # a dual above the primal by more than this part is not rounding


@dataclass(frozen=True)
class Certificate:
    """Primal value of a model and dual value of the duals of the same moment."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Relative duality gap ``(P - D) / P``; NaN when the values cannot be trusted."""
        difference = self.primal - self.dual
        if not np.isfinite(difference) or difference < -ROUNDING * abs(self.primal):
            return float("nan")
        return max(0.0, difference / self.primal) if self.primal > 0 else 0.0


def squared_norm(W: NDArray) -> float:
    """``||W||^2`` accumulated in double, without a copy of W in double."""
    return float(sum(np.einsum("ij,ij->", part, part, dtype=np.float64) for part in _blocks(W)))


def _blocks(W: NDArray, rows: int = 4096) -> list[NDArray]:
    return [W[first : first + rows] for first in range(0, len(W), rows)]


def certify(
    state: State, primal_point: NDArray | None, v: float | None, n_jobs: int
) -> Certificate:
    """Exact objectives for ``primal_point`` (None: W itself) and the current dual.

    ``v`` is ``||V||^2`` where it is known. In single precision V is rebuilt from the dual first,
    and W with it: thousands of float32 updates drift.
    """
    if state.W.dtype == np.float32:
        V = state.rebuild()
        v = squared_norm(V)
        if state.Y is None:
            state.W[:] = V
        else:
            state.W[:] = (state.kappa * state.Y + V) * np.float32(state.scale)
    elif v is None:
        v = squared_norm(state.dual_weights())
    point = state.W if primal_point is None else primal_point
    losses = state.evaluate(point, n_jobs)
    primal = 0.5 * squared_norm(point) + float(losses.sum())
    dual = state.dual_sum() - 0.5 * v + state.problem.constant_loss
    return Certificate(primal, dual)
