"""TopPush, one class against the rest (Li, Jin and Zhou 2014), for all classes at once.

For one class with m positive rows, push them above the highest negative one:

    min_w  lambda/2 |w|^2 + 1/m sum_i l(max_j w.x_j- - w.x_i+),    l(z) = max(0, 1 + z)^2

Its dual, over a >= 0 (positives) and b >= 0 (negatives) with sum a = sum b, is

    min  lambda m/2 |w|^2 + sum_i (a_i^2 / 4 - a_i),    w = (X+^T a - X-^T b) / (lambda m)

solved by Nesterov's accelerated projected gradient, which starts its sequence anew for a class
whose step goes uphill (O'Donoghue and Candes 2015). The columns of ``P`` are the duals (a, b) of
the classes: a step is two products with X whatever the number of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from benchmarks.baselines.compiled import compiled


@compiled
def _balance(V, positive, t):
    """Sum over positives of max(v - t, 0) minus the others' of max(v + t, 0), and its slope."""
    excess, slope = np.zeros(V.shape[1]), np.zeros(V.shape[1])
    for i in range(V.shape[0]):
        for c in range(V.shape[1]):
            p = V[i, c] - t[c] if positive[i, c] else V[i, c] + t[c]
            if p > 0.0:
                excess[c] += p if positive[i, c] else -p
                slope[c] += 1.0
    return excess, slope


def project_balanced(V: np.ndarray, positive: np.ndarray, rounds: int = 100) -> np.ndarray:
    """Project columns onto ``p >= 0, sum over positive = sum over the others``.

    The projection is ``max(v - t, 0)`` at positives and ``max(v + t, 0)`` elsewhere, for the t that
    balances the sums, by Newton's method in a bracket (they differ by a piecewise linear function).
    """
    low, high = -np.abs(V).max(axis=0), np.abs(V).max(axis=0)
    t = np.zeros(V.shape[1])
    for _ in range(rounds):
        excess, slope = _balance(V, positive, t)
        low, high = np.where(excess > 0, t, low), np.where(excess <= 0, t, high)
        step = t + excess / np.maximum(slope, 1.0)
        inside = (step > low) & (step < high)
        new = np.where(excess == 0, t, np.where(inside, step, 0.5 * (low + high)))
        if np.abs(new - t).max() <= 1e-15 * np.abs(V).max():
            break
        t = new
    return np.maximum(np.where(positive, V - t, V + t), 0.0)


class TopPush:
    """``epoch()`` is one accelerated step of all classes."""

    def __init__(self, X: Any, y: np.ndarray, regularization: float) -> None:
        self.X, self.regularization = X, regularization
        self.n_classes = int(y.max()) + 1
        self.positive = np.asarray(y)[:, None] == np.arange(self.n_classes)
        self.m = np.maximum(self.positive.sum(axis=0), 1)
        (largest,) = svds(X.astype(np.float64), 1, return_singular_vectors=False, random_state=0)
        self.lipschitz = 1.001 * float(largest) ** 2 / (regularization * self.m) + 0.5
        self.P = np.zeros(self.positive.shape)
        self.Q, self.t = self.P, np.ones(self.n_classes)  # extrapolated point, Nesterov's sequence

    def _weights(self, P: np.ndarray) -> np.ndarray:
        signed = np.where(self.positive, P, -P)
        return np.asarray(self.X.T @ signed) / (self.regularization * self.m)

    def epoch(self) -> None:
        """Gradient at the extrapolated point, projection, extrapolation."""
        scores = np.asarray(self.X @ self._weights(self.Q))
        gradient = np.where(self.positive, scores + 0.5 * self.Q - 1.0, -scores)
        new = project_balanced(self.Q - gradient / self.lipschitz, self.positive)
        uphill = ((self.Q - new) * (new - self.P)).sum(axis=0) > 0.0
        self.t[uphill] = 1.0
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.t**2))
        self.Q = new + (self.t - 1.0) / t * (new - self.P)
        self.P, self.t = new, t

    def objectives(self) -> tuple[np.ndarray, np.ndarray]:
        """Primal and dual (as a lower bound) of every class, both times m."""
        W = self._weights(self.P)
        scores = np.asarray(self.X @ W)
        highest = np.where(self.positive, -np.inf, scores).max(axis=0)
        losses = np.where(self.positive, np.maximum(0.0, 1.0 + highest - scores) ** 2, 0.0)
        ridge = 0.5 * self.regularization * self.m * (W**2).sum(axis=0)
        conjugates = np.where(self.positive, self.P - 0.25 * self.P**2, 0.0).sum(axis=0)
        return ridge + losses.sum(axis=0), conjugates - ridge

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self._weights(self.P).T
