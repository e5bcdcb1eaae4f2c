"""The structural SVM for recall at k (Joachims 2005), on the multiclass problem as a binary one.

Lapin, Hein and Schiele compare with it so: every pair (i, l) of an example and a class is one
example of a binary problem, x_i in the place of class l, positive if l is the class of i. A
prediction chooses k n of the n K pairs, k for each example on average; the loss is the number of
positive ones
it leaves out, n (1 - recall). With Psi the sum of a choice's examples, the upper bound is

    1/2 |W|^2 + C max over choices of (loss(choice) - <Psi(truth) - Psi(choice), W>)

a maximum that the k n pairs with the largest s_il - [l = y_i] attain. One slack for all, hence the
planes of `one_slack`, which finds a choice per round instead of a class per example.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.baselines.one_slack import OneSlack


class RecallAtK(OneSlack):
    """``epoch()`` is one round: the worst choice at W, and the program over all planes so far."""

    def __init__(self, X: Any, y: np.ndarray, C: float, k: int) -> None:
        super().__init__(X, y, C)
        self.k = k

    def worst(self) -> tuple[np.ndarray, float]:
        """The most violated plane at W: Psi(truth) - Psi(choice), and the choice's loss."""
        X, y = self.rows.X, self.rows.y
        n, n_classes = len(y), self.rows.n_classes
        at = np.arange(n)
        scores = np.asarray(X @ self.W)
        scores[at, y] -= 1.0
        size = min(self.k * n, scores.size)
        chosen = np.argpartition(-scores.ravel(), size - 1)[:size]
        rows, classes = np.divmod(chosen, n_classes)
        signs = sparse.csr_array(
            (
                np.concatenate([np.ones(n), -np.ones(size)]),
                (np.concatenate([at, rows]), np.concatenate([y, classes])),
            ),
            shape=scores.shape,
        )
        found = int((y[rows] == classes).sum())
        return np.asarray((X.T @ signs).toarray(), np.float32), float(n - found)

    def primal(self) -> float:
        """``1/2 |W|^2 + C slack`` at W."""
        psi, loss = self.worst()
        slack = loss - float(np.vdot(psi, self.W))
        return 0.5 * float(np.vdot(self.W, self.W)) + self.C * max(slack, 0.0)
