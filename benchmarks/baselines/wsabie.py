"""Wsabie++: classes and features embedded in one space (Gupta, Bengio and Weston 2014).

A class g has a vector ``b_g``, a feature r a vector ``v_r``, and the score of g on x is
``b_g . V^T x``. On seeing (x, y), wrong classes are drawn until one violates the margin:

    margin + b_h . V^T x > b_y . V^T x

If h is among the last `memory` violators of y, nothing happens: classes that are confused all the
time would drown the others. Else a step on the hinge of the pair (y, h), with AdaGrad step sizes,
one for each class and one for all features; then vectors longer than one are scaled back.

Written from the description in the papers, without their pseudo-code: that the class vectors start
as means of the embedded examples, features at random, and violators weigh the same whatever their
rank, is our choice where the description leaves one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.compiled import Rows, add_row, compiled, scores_of


@compiled
def _shorten(vector):
    length = np.sqrt((vector * vector).sum())
    if length > 1.0:
        vector /= length


@compiled
def _epoch(order, draws, data, indices, indptr, squares, y, margin, step, V, B, recent, sums):
    """One pass; ``sums`` are AdaGrad's, the last one is that of the features."""
    n_classes, memory = B.shape[0], recent.shape[1]
    z = np.empty(B.shape[1])
    updates = 0
    for turn, i in enumerate(order):
        own = y[i]
        scores_of(i, data, indices, indptr, V, z)
        bound = (B[own] * z).sum() - margin
        found = -1
        for attempt in range(n_classes):  # from a random class on, by a step prime to their number
            h = (draws[turn, 0] + attempt * draws[turn, 1]) % n_classes
            if h != own and (B[h] * z).sum() > bound:
                found = h
                break
        if found < 0 or (recent[own] == found).any():
            continue
        if memory > 0:
            recent[own, 1:] = recent[own, :-1].copy()
            recent[own, 0] = found
        change = B[own] - B[found]
        size = (z * z).mean()
        sums[own] += size
        sums[found] += size
        sums[n_classes] += (change * change).mean() * squares[i]
        if size > 0.0:
            B[own] += step / np.sqrt(sums[own]) * z
            B[found] -= step / np.sqrt(sums[found]) * z
            _shorten(B[own])
            _shorten(B[found])
        if sums[n_classes] > 0.0:
            change *= step / np.sqrt(sums[n_classes])
            add_row(i, data, indices, indptr, change, V)
            for place in range(indptr[i], indptr[i + 1]):
                _shorten(V[indices[place]])
        updates += 1
    return updates


class Wsabie:
    """``epoch()`` is one pass; `memory` is the Q of the papers' tables, 0 is plain AdaGrad."""

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        step: float,
        memory: int = 0,
        dimension: int = 256,
        margin: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.rows, self.step, self.margin = Rows(X, y, seed), step, margin
        d, n_classes = self.rows.X.shape[1], self.rows.n_classes
        self.V = self.rows.rng.normal(size=(d, dimension))
        self.V /= np.linalg.norm(self.V, axis=1, keepdims=True)
        counts = np.bincount(self.rows.y, minlength=n_classes)
        members = np.equal.outer(np.arange(n_classes), self.rows.y) / np.maximum(counts, 1)[:, None]
        self.B = np.asarray(members @ self.rows.X) @ self.V
        self.B /= np.maximum(np.linalg.norm(self.B, axis=1, keepdims=True), 1.0)
        self.recent = np.full((n_classes, memory), -1)
        self.sums = np.zeros(n_classes + 1)
        self._strides = np.flatnonzero(np.gcd(np.arange(n_classes + 1), n_classes) == 1)
        self.updates = 0

    def epoch(self) -> None:
        """One pass in a random order."""
        rows = self.rows
        order = rows.order()
        first = rows.rng.integers(rows.n_classes, size=order.size)
        draws = np.stack([first, rows.rng.choice(self._strides, size=order.size)], axis=1)
        self.updates += _epoch(
            order, draws, *rows.parts, rows.squares, rows.y, self.margin, self.step,
            self.V, self.B, self.recent, self.sums,
        )  # fmt: skip

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self.B @ self.V.T
