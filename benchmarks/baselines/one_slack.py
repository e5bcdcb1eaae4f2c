"""The 1-slack cutting plane method for Crammer-Singer (Joachims, Finley and Yu 2009).

The sum of all losses is approximated from below by planes. A round asks every example for its worst
class, adds the plane ``Delta - <Psi, W>`` that this gives, and solves

    max_b  Delta.b - 1/2 |sum_t b_t Psi_t|^2     over  b >= 0, sum b <= C

by an interior-point method (Clarabel); ``W = sum_t b_t Psi_t``. Planes without weight for
`PATIENCE` rounds are forgotten, as in SVM-struct. Bundle methods (Teo et al. 2007) differ in
details only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.baselines.compiled import Rows

PATIENCE = 30


def solve_planes(gram: np.ndarray, delta: np.ndarray, C: float) -> np.ndarray:
    """The quadratic program over the planes."""
    import clarabel

    m = len(delta)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = 1e-10
    scale = max(gram.diagonal().max(), 1e-300)  # of the objective: curvatures of about one
    rows = sparse.vstack([np.ones((1, m)), -sparse.identity(m)]).tocsc()
    solver = clarabel.DefaultSolver(
        sparse.triu(sparse.csc_matrix(gram / scale)).tocsc(),
        -delta / scale,
        rows,
        np.concatenate([[C], np.zeros(m)]),
        [clarabel.NonnegativeConeT(m + 1)],
        settings,
    )
    b = np.maximum(np.array(solver.solve().x), 0.0)
    return b * min(1.0, C / max(b.sum(), 1e-300))  # feasible to the last digit


class OneSlack:
    """The method as an object: ``epoch()`` is one round, which is one look at every example."""

    def __init__(self, X: Any, y: np.ndarray, C: float = 1.0) -> None:
        self.rows, self.C = Rows(X, y), C
        self.W = self.rows.zeros()
        self.planes: list[np.ndarray] = []  # float32: they are many and large
        self.delta = np.zeros(0)
        self.gram = np.zeros((0, 0))
        self.weights = np.zeros(0)
        self.idle = np.zeros(0, np.int64)

    def worst(self) -> tuple[np.ndarray, float]:
        """The most violated plane at W: Psi and Delta."""
        X, y = self.rows.X, self.rows.y
        margins = X @ self.W + 1.0
        at = np.arange(len(y))
        margins[at, y] -= 1.0
        guess = margins.argmax(axis=1)
        wrong = np.flatnonzero(guess != y)
        ones = np.ones(len(wrong))
        shape = (len(y), self.rows.n_classes)
        signs = sparse.csr_array(
            (np.concatenate([ones, -ones]), (np.tile(wrong, 2), np.r_[y[wrong], guess[wrong]])),
            shape=shape,
        )
        return (X.T @ signs).toarray().astype(np.float32), float(len(wrong))

    def epoch(self) -> None:
        """Find the worst plane, solve the quadratic program, forget idle planes."""
        psi, delta = self.worst()
        keep = np.flatnonzero(self.idle < PATIENCE)
        self.planes = [self.planes[t] for t in keep] + [psi]
        self.delta = np.append(self.delta[keep], delta)
        self.idle = np.append(self.idle[keep], 0)
        row = np.array([np.vdot(plane, psi) for plane in self.planes], np.float64)
        gram = np.empty((len(row), len(row)))
        gram[:-1, :-1] = self.gram[np.ix_(keep, keep)]
        gram[-1] = gram[:, -1] = row
        self.gram = gram
        self.weights = solve_planes(gram, self.delta, self.C)
        self.idle = np.where(self.weights > 1e-8 * self.C, 0, self.idle + 1)
        self.W = np.zeros_like(self.W)
        for weight, plane in zip(self.weights, self.planes, strict=True):
            self.W += weight * plane

    def dual(self) -> float:
        """Value of the planes' quadratic program, a lower bound on the optimum."""
        return float(self.delta @ self.weights - 0.5 * np.vdot(self.W, self.W))

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self.W.T
