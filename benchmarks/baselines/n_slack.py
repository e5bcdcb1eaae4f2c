"""The n-slack cutting plane method for Crammer-Singer, as in SVM-struct (Joachims et al. 2009).

Every example keeps a working set of classes. An epoch asks each example for its worst class and
takes it in if its margin is missed by more than ``epsilon`` beyond the example's slack so far; then
the dual over all working sets is solved to a violation of ``epsilon`` by block coordinate ascent
(thirty passes at most; the next epoch goes on from there).
(SVM-struct solves it with SVM-light, every hundred new constraints; the working sets are what makes
the method.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.compiled import Rows, add_row, block_step, compiled, scores_of


@compiled
def _look(data, indices, indptr, y, W, working, epsilon):
    """Add the worst class of every example where it is missing; returns how many."""
    added = 0
    h = np.empty(W.shape[1])
    for i in range(len(y)):
        scores_of(i, data, indices, indptr, W, h)
        h += 1.0 - h[y[i]]
        h[y[i]] = 0.0
        slack = 0.0
        for m in range(len(h)):
            if working[i, m] and h[m] > slack:
                slack = h[m]
        worst = h.argmax()
        if h[worst] > slack + epsilon:
            working[i, worst] = True
            added += 1
    return added


@compiled
def _sweep(order, data, indices, indptr, squares, y, C, W, working, P):
    """One pass of exact steps over the working sets; returns the largest change of a score."""
    largest = 0.0
    s = np.empty(W.shape[1])
    change = np.zeros(W.shape[1])
    for i in order:
        classes = np.flatnonzero(working[i])
        if len(classes) == 0:
            continue
        scores_of(i, data, indices, indptr, W, s)
        old = P[i][classes]
        own = s[y[i]] - squares[i] * old.sum()
        b = (1.0 + s[classes] + squares[i] * old - own) / squares[i]
        new = block_step(b, C)
        step = new - old
        if np.abs(step).max() > 0.0:
            largest = max(largest, squares[i] * np.abs(step).max())
            change[:] = 0.0
            change[classes] = -step
            change[y[i]] = step.sum()
            add_row(i, data, indices, indptr, change, W)
            for place in range(len(classes)):
                P[i, classes[place]] = new[place]
    return largest


class NSlack:
    """The method as an object; ``sweeps`` counts the passes its quadratic programs took."""

    def __init__(
        self, X: Any, y: np.ndarray, C: float = 1.0, epsilon: float = 0.01, seed: int = 0
    ) -> None:
        self.rows, self.C, self.epsilon = Rows(X, y, seed), C, epsilon
        self.W = self.rows.zeros()
        shape = (len(self.rows.y), self.rows.n_classes)
        self.working, self.P = np.zeros(shape, np.bool_), np.zeros(shape)
        self.added = self.sweeps = 0

    def epoch(self, max_sweeps: int = 30) -> None:
        """Take in violated constraints, then solve over the working sets, for a while at most."""
        rows = self.rows
        self.added = _look(*rows.parts, rows.y, self.W, self.working, self.epsilon)
        self.working[rows.squares == 0] = False
        active = np.flatnonzero(self.working.any(axis=1))
        for _ in range(max_sweeps):
            order = rows.rng.permutation(active)
            change = _sweep(
                order, *rows.parts, rows.squares, rows.y, self.C, self.W, self.working, self.P
            )
            self.sweeps += 1
            if change <= self.epsilon:
                break

    def dual(self) -> float:
        """``sum p - 1/2 |W|^2``; an empty row counts with its constant loss."""
        constant = self.C * float((self.rows.squares == 0).sum())
        return float(self.P.sum() - 0.5 * np.vdot(self.W, self.W)) + constant

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self.W.T
