"""The subproblem of Weston and Watkins' support vector machine."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from polymargin.arrays import Floats
from polymargin.core import core
from polymargin.projections import _checks

METHODS = ("newton", "walrus", "greedy")


def solve_weston_watkins(
    v: ArrayLike, C: ArrayLike, *, method: str = "newton", tol: float = 1e-12
) -> Floats:
    r"""Minimise :math:`\frac12 b^T (I + 11^T) b - v^T b` over :math:`0 \le b \le C`.

    This is what block coordinate ascent solves for each example of the Weston-Watkins support
    vector machine [1]_. The answer is :math:`b = \mathrm{clip}(v - t, 0, C)` with
    :math:`t = \sum_j b_j`.

    Parameters
    ----------
    v : array-like of shape (n,) or (rows, n)
        The linear term; rows are independent problems.
    C : float or array-like of shape (rows,)
        The upper bound of every entry, positive.
    method : {"newton", "walrus", "greedy"}, default="newton"
        "newton" solves for the threshold `t` by a safeguarded Newton iteration, "walrus" sorts
        [1]_; both are exact. "greedy" moves the entry that violates its optimality condition most,
        as Shark does [2]_, until `tol` is met.
    tol : float, default=1e-12
        Only for "greedy": the largest violation of an optimality condition, relative to the largest
        entry of `v`. The result is then within twice that of the exact one.

    Returns
    -------
    ndarray
        The minimiser, with the shape and the dtype of `v` (float64 for integers).

    Warns
    -----
    ConvergenceWarning
        If "greedy" does not meet `tol` within ``100 * n + 10_000`` steps.

    References
    ----------
    .. [1] Y. Wang, C. Scott. An exact solver for the Weston-Watkins SVM subproblem. ICML 2021,
       problem 4, algorithm 2.
    .. [2] C. Igel, V. Heidrich-Meisner, T. Glasmachers. Shark. Journal of Machine Learning
       Research, 2008.

    Examples
    --------
    >>> from polymargin.projections import solve_weston_watkins
    >>> solve_weston_watkins([2.0, 1.0, -1.0], C=10.0)
    array([1., 0., 0.])
    >>> solve_weston_watkins([3.0, 3.0, 3.0], C=0.5, method="walrus")
    array([0.5, 0.5, 0.5])
    """
    V = _checks.as_rows(v)
    bounds = _checks.positive_per_row("C", C, len(V))
    _checks.check_method(method, METHODS)
    tol = _checks.in_range("tol", tol, 1.0, "lie in [0, 1)")
    P = np.empty_like(V)
    violations = np.zeros(len(V))
    max_steps = 100 * V.shape[1] + 10_000
    bad_row = core.solve_weston_watkins(method, V, bounds, tol, max_steps, violations, P)
    found = _checks.result(bad_row, P, v)
    missed = np.flatnonzero(violations > tol)
    if missed.size:
        warnings.warn(
            f"greedy stopped after {max_steps} steps in row {missed[0]} with a violation of "
            f"{violations[missed[0]]:.1e}, more than tol={tol:g}; raise tol or choose another "
            "method.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found
