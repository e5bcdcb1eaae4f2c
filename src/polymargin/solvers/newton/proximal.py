r"""The proximal dual: a smooth primal problem near a feasible dual point.

Adding ``-mu/2 sum_i ||a_i - b_i||^2`` to the dual, with the centre b a feasible dual point (as rows
over all classes, ``a_ij = -p_ij``, ``a_iy = sum_j p_ij``), smooths the primal:

    phi(W) = 1/2 ||W||^2 + sum_i max_p { p.h_i - mu/2 ||a_i(p) - b_i||^2 : p in B(c_i) },

where ``h_ij = 1 + s_ij - s_iy``. As ``||a - b||^2 = ||p - q||^2 + (sum p - sum q)^2`` with q the
block of b, the maximiser N is the solution of the restricted problem with ``A = mu`` and

    b_j  =  h_j / mu + q_j + sum q

(one-vs-rest: ``h = 1 - z s`` and no sums). phi is convex and has the gradient ``W - V(N)``, V the
weights of a dual point; its generalised Hessian is ``I + 1/mu sum_i (x_i x_i^T) (x) Pi_i``, with
the projectors of :mod:`~polymargin.solvers.newton.faces`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.core import core
from polymargin.problem import Problem
from polymargin.solvers.newton.faces import Doubles, Faces, faces_of

FAR = -1e30  # the margin of the true class, which is never in a block
CHUNK = 5e8  # multiplications of a product between looks at Ctrl-C


class ProximalDual:
    """phi of a problem with dense rows, and what is known from the margins of all its examples.

    Examples without a weight or with a row of zeros are left out. Arrays of margins and blocks have
    a row per example and a column per class.

    Attributes
    ----------
    n, d, n_classes : int
        Examples that count, rows of W, classes.
    centre : ndarray of shape (n, K)
        The blocks q.
    mu : float
    """

    def __init__(self, problem: Problem, mu: float) -> None:
        self.problem = problem
        self.loss = problem.loss
        self.mu = mu
        chosen = self._chosen = problem.visited
        everyone = len(chosen) == problem.n_examples
        self._X = problem.rows.matrix if everyone else problem.rows.take(chosen)
        self.y, self.c = problem.y[chosen], problem.c[chosen]
        self.n, self.n_classes = len(chosen), problem.n_classes
        self.d = problem.n_features + problem.has_intercept
        self._each = np.arange(self.n)
        self._solver = problem.loss.compiled, problem.loss.restricted_methods[0], -1.0
        self._signs: Doubles | None = None
        if not self.loss.coupled:
            self._signs = np.full((self.n, self.n_classes), -1.0)
            self._signs[self._each, self.y] = 1.0
        self.move_to(np.zeros((self.n, self.n_classes)))

    def blocks(self, dual: sparse.csr_array) -> Doubles:
        """The blocks of a dual of all examples."""
        rows: Doubles = dual[self._chosen].toarray().astype(np.float64, copy=False)
        return rows

    def dual(self, blocks: Doubles) -> sparse.csr_array:
        """The inverse of `blocks`."""
        entries = sparse.coo_array(blocks)
        places = self._chosen[entries.row], entries.col
        shape = self.problem.n_examples, self.n_classes
        return sparse.csr_array((entries.data, places), shape=shape)

    def move_to(self, centre: Doubles) -> None:
        """Another centre."""
        self.centre = centre
        self._offset = centre if self._signs is not None else centre + centre.sum(axis=1)[:, None]

    # --- products with X -------------------------------------------------------------------------

    def take(self, rows: NDArray[np.int64]) -> Doubles:
        """Some rows of X with the constant feature, in double."""
        X = np.empty((len(rows), self.d))
        d = self.problem.n_features
        X[:, :d] = self._X[rows]
        X[:, d:] = self.problem.intercept_scaling
        return X

    def scores(self, W: Doubles) -> Doubles:
        """``X W``."""
        d = self.problem.n_features
        S = np.empty((self.n, self.n_classes))
        step = max(1, int(CHUNK / (self.d * self.n_classes)))
        for first in range(0, self.n, step):
            part = slice(first, first + step)
            np.matmul(self._X[part].astype(np.float64, copy=False), W[:d], out=S[part])
        if self.d > d:
            S += self.problem.intercept_scaling * W[d]
        return S

    def weights(self, p: Doubles) -> tuple[Doubles, int]:
        """``V(p) = sum_i x_i a_i^T``, and how many rows it took."""
        a = self._as_rows(p)
        rows = np.flatnonzero(a.any(axis=1))
        V = np.zeros((self.d, self.n_classes))
        step = max(1, int(CHUNK / (self.d * self.n_classes)))
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            V += self.take(part).T @ a[part]
        return V, len(rows)

    def _as_rows(self, p: Doubles) -> Doubles:
        if self._signs is not None:
            return self._signs * p
        a = -p
        a[self._each, self.y] = p.sum(axis=1)
        return a

    # --- margins and blocks ----------------------------------------------------------------------

    def margins(self, S: Doubles) -> Doubles:
        """``h`` of scores; at the true class a number that keeps it out of every block."""
        if self._signs is not None:
            return 1.0 - self._signs * S
        H: Doubles = self.slopes(S)
        H += 1.0 if self.loss.margins is None else self.loss.margins.delta[self.y]
        H[self._each, self.y] = FAR
        return H

    def slopes(self, S: Doubles) -> Doubles:
        """The derivative of the margins in a direction that changes the scores by `S`."""
        if self._signs is not None:
            return -self._signs * S
        return S - S[self._each, self.y][:, None]

    def maximiser(self, H: Doubles) -> Doubles:
        """``N``: the restricted problem of all examples, with curvature mu."""
        b = H / self.mu
        b += self._offset
        p = np.zeros_like(b)
        core.solve_restricted(*self._solver, b, self.c, np.zeros(self.n), p)
        return p

    def value(self, W: Doubles, H: Doubles, p: Doubles) -> float:
        """``phi(W)``, of the margins and the maximiser at W."""
        step = p - self.centre
        squared = float(np.vdot(step, step))
        if self._signs is None:
            squared += float((step.sum(axis=1) ** 2).sum())
        return float(0.5 * np.vdot(W, W) + np.vdot(p, H) - 0.5 * self.mu * squared)

    def losses(self, H: Doubles) -> float:
        """``sum_i c_i loss_i``, of all examples of the problem."""
        return float(self.c @ self.loss.of_margins(H)) + self.problem.constant_loss

    def faces(self, p: Doubles) -> Faces:
        """The faces on which blocks lie."""
        return faces_of(self.loss, p, self.y, self.c)
