"""Dual decomposition for Crammer-Singer as printed in Blondel, Fujino and Ueda 2014.

Algorithm 1, in the paper's own variables: alpha_i^m <= C [m = y_i], sum_m alpha_i^m = 0,
W = sum_i x_i alpha_i^T, g_i^m = w_m.x_i + [m != y_i], and the violation

    v_i = max g_i^m - min over alpha_i^m < C_i^m of g_i^m                       (equation 5).

Rows are shuffled once and visited in that order; the run ends with a pass whose largest violation
is at most epsilon. The restricted problem is solved by

    sort         algorithm 2, exact,
    bisection    algorithm 3 from the bracket [0, U], whose answer is not scaled to the sum z,
    smo          supplement A: the pair (argmax g, q) for q in turn, in `cycles` cycles or until
                 the violation is at most `tol`,
    frank_wolfe  supplement B, one step.

Everything is exactly what the paper prints, so that it can stand beside the methods of the package,
which keep sum alpha = 0 whatever the tolerance; with bisection alpha is off by up to tau C here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.compiled import Rows, add_row, compiled, scores_of

METHODS = ("sort", "bisection", "smo", "frank_wolfe")


@compiled
def violation(g, alpha, upper):
    """Equation 5."""
    least = np.inf
    for m in range(len(g)):
        if alpha[m] < upper[m] and g[m] < least:
            least = g[m]
    return g.max() - least


@compiled
def sort_threshold(beta, z):
    """Algorithm 2."""
    mu = np.sort(beta)[::-1]
    total, theta = 0.0, mu[0] - z
    for m in range(len(mu)):
        total += mu[m]
        pi = (total - z) / (m + 1)
        if mu[m] - pi > 0.0:
            theta = pi
    return theta


@compiled
def bisection_threshold(beta, z, tau):
    """Algorithm 3; ends too when the bracket is one rounding wide, which the paper leaves out."""
    low, high, theta, s = 0.0, beta.max(), 0.0, np.inf
    while abs(s) / z > tau:
        theta = (low + high) / 2.0
        if theta <= low or theta >= high:
            break
        s = np.maximum(beta - theta, 0.0).sum() - z
        if s < 0.0:
            high = theta
        else:
            low = theta
    return theta


@compiled
def smo_step(g, alpha, upper, square, cycles, tol):
    """Supplement A: the change of alpha; g and alpha are used up."""
    start = alpha.copy()
    for _ in range(cycles):
        if violation(g, alpha, upper) <= tol:
            break
        for q in range(len(g)):
            p = g.argmax()
            if p == q or alpha[q] >= upper[q]:
                continue
            step = min(
                max((g[q] - g[p]) / (2.0 * square), alpha[q] - upper[q]), upper[p] - alpha[p]
            )
            alpha[p] += step
            alpha[q] -= step
            g[p] += square * step
            g[q] -= square * step
    return alpha - start


@compiled
def frank_wolfe_step(g, alpha, upper, square):
    """Supplement B: the change of alpha."""
    toward = upper.copy()
    toward[g.argmax()] -= upper.max()
    direction = toward - alpha
    length = (direction * direction).sum()
    if length == 0.0:
        return direction
    return min(max(-(g @ direction) / (square * length), 0.0), 1.0) * direction


@compiled
def _pass(order, data, indices, indptr, squares, y, C, method, tol, cycles, W, A):
    """One pass of algorithm 1; returns the largest violation it met."""
    largest = -np.inf
    n_classes = W.shape[1]
    g = np.empty(n_classes)
    for i in order:
        scores_of(i, data, indices, indptr, W, g)
        g += 1.0
        g[y[i]] -= 1.0
        upper = np.zeros(n_classes)
        upper[y[i]] = C
        v = violation(g, A[i], upper)
        largest = max(largest, v)
        if v <= 0.0:
            continue
        if method == 2:
            change = smo_step(g, A[i].copy(), upper, squares[i], cycles, tol)
        elif method == 3:
            change = frank_wolfe_step(g, A[i], upper, squares[i])
        else:
            length = np.sqrt(squares[i])
            beta = length * (upper - A[i]) + g / length
            z = C * length
            theta = sort_threshold(beta, z) if method == 0 else bisection_threshold(beta, z, tol)
            change = upper - A[i] - np.maximum(beta - theta, 0.0) / length
        A[i] += change
        add_row(i, data, indices, indptr, change, W)
    return largest


class DualDecomposition:
    """Algorithm 1 as an object: ``epoch()`` is one pass.

    Parameters
    ----------
    X : csr_array or ndarray
    y : ndarray of int
    C : float
    method : {"sort", "bisection", "smo", "frank_wolfe"}
    tol : float
        Bisection's tau; SMO's violation.
    cycles : int
        Of SMO, at most.

    Attributes
    ----------
    largest_violation : float
        v_max of the last pass: algorithm 1 ends when it is at most epsilon.
    alpha : ndarray of shape (n, n_classes)
    done : int
        Passes made.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        C: float = 1.0,
        method: str = "sort",
        *,
        tol: float = 0.0,
        cycles: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        self.rows, self.C, self.method = Rows(X, y, seed), C, METHODS.index(method)
        self.tol, self.cycles = tol, cycles
        order = self.rows.order()
        self.order = order if shuffle else np.sort(order)
        self.W = self.rows.zeros()
        self.alpha = np.zeros((len(self.rows.y), self.rows.n_classes))
        self.largest_violation = np.inf
        self.done = 0

    def epoch(self) -> None:
        """One pass."""
        rows = self.rows
        self.done += 1
        self.largest_violation = _pass(
            self.order, *rows.parts, rows.squares, rows.y, self.C, self.method, self.tol,
            self.cycles, self.W, self.alpha,
        )  # fmt: skip

    def dual(self) -> float:
        """``-f(alpha)``; an empty row counts with its constant loss."""
        own = self.alpha[np.arange(len(self.rows.y)), self.rows.y]
        others = self.alpha.sum() - own.sum()
        constant = self.C * float((self.rows.squares == 0).sum())
        return float(-others - 0.5 * np.vdot(self.W, self.W)) + constant

    @property
    def coef(self) -> np.ndarray:
        """Weights, one row per class."""
        return self.W.T
