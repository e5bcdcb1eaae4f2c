"""Online exponentiated gradient for the Crammer-Singer dual (Collins et al. 2008).

Each example has a distribution ``u_i`` over all classes; ``a_i = C (e_y - u_i)`` and
``W = sum_i x_i a_i^T``. With ``g_m = [m != y] + s_m``, the dual's gradient is ``C g`` and a visit

    u_m  <-  u_m exp(eta_i g_m) / Z

Such a step never reaches a bound. ``eta_i`` is halved until the dual does not fall and grows by a
twentieth after each visit; it starts at ``1 / (C ||x_i||^2)``. A uniform start has a dual far below
zero where the examples are many or long, and it takes many passes to come back: the true class
starts with that share of `STARTS` that has the best dual value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.compiled import Rows, add_row, compiled, scores_of

STARTS = (0.5, 0.9, 0.99, 0.999, 0.9999)


@compiled
def _softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


@compiled
def _epoch(order, data, indices, indptr, squares, y, C, W, logits, rates):
    g = np.empty(W.shape[1])
    for i in order:
        scores_of(i, data, indices, indptr, W, g)
        g += 1.0
        g[y[i]] -= 1.0
        g -= g.max()  # a constant changes nothing
        u = _softmax(logits[i])
        for _ in range(60):
            step = _softmax(logits[i] + rates[i] * g) - u
            gain = C * (step @ g) - 0.5 * C * C * squares[i] * (step @ step)
            if gain >= 0.0:
                logits[i] += rates[i] * g
                logits[i] -= logits[i].max()
                add_row(i, data, indices, indptr, -C * step, W)
                rates[i] *= 1.05
                break
            rates[i] *= 0.5


class ExponentiatedGradient:
    """The method as an object: ``epoch()``, ``coef``, ``dual()``."""

    def __init__(self, X: Any, y: np.ndarray, C: float = 1.0, seed: int = 0) -> None:
        self.rows, self.C = Rows(X, y, seed), C
        self.rates = 1.0 / (C * np.maximum(self.rows.squares, 1e-300))
        values = []
        for share in STARTS:
            self._start(share)
            values.append(self.dual())
        self.share = STARTS[int(np.argmax(values))]
        self._start(self.share)

    def _start(self, share: float) -> None:
        """Give the true class this share and the others the rest."""
        n, k = self.rows.X.shape[0], self.rows.n_classes
        self.logits = np.full((n, k), np.log((1.0 - share) / (k - 1)))
        self.logits[np.arange(n), self.rows.y] = np.log(share)
        self.W = np.ascontiguousarray(self.rows.X.T @ self._alpha())

    def _alpha(self) -> np.ndarray:
        powers = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        alpha = -self.C * powers / powers.sum(axis=1, keepdims=True)
        alpha[np.arange(len(alpha)), self.rows.y] += self.C
        return alpha

    def epoch(self) -> None:
        """One visit to every example, in a random order."""
        rows = self.rows
        _epoch(
            rows.order(), *rows.parts, rows.squares, rows.y, self.C, self.W, self.logits, self.rates
        )

    def dual(self) -> float:
        """``sum p - 1/2 |W|^2``; an empty row counts with its constant loss."""
        own = self._alpha()[np.arange(len(self.rows.y)), self.rows.y]
        own[self.rows.squares == 0] = self.C
        return float(own.sum() - 0.5 * np.vdot(self.W, self.W))

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self.W.T
