"""Projections onto the top-k cone and the top-k simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from polymargin.arrays import Doubles, Floats
from polymargin.core import core
from polymargin.projections import _checks


def project_top_k_cone(v: ArrayLike, k: int, bias: float = 0.0) -> Floats:
    r"""Project onto the top-k cone, :math:`\{0 \le p_j \le \frac1k \sum_i p_i\}`.

    With a bias :math:`\rho`, the biased projection: the minimiser of
    :math:`\|p - v\|^2 + \rho (\sum_j p_j)^2` over the cone.

    Parameters
    ----------
    v : array-like of shape (n,) or (rows, n)
        What to project; rows independently.
    k : int
        Between 1 and n; no entry may exceed a k-th of the sum. With ``k=1`` the cone is the
        non-negative orthant, with ``k=n`` its diagonal.
    bias : float, default=0.0
        Weight of the squared sum, at least zero.

    Returns
    -------
    ndarray
        The projection, with the shape and the dtype of `v` (float64 for integers).

    References
    ----------
    M. Lapin, M. Hein, B. Schiele. Top-k multiclass SVM. NIPS 2015, lemmas 3 and 4.

    Examples
    --------
    >>> from polymargin.projections import project_top_k_cone
    >>> project_top_k_cone([3.0, 2.0, -1.0], k=2)
    array([2.5, 2.5, 0. ])
    >>> project_top_k_cone([3.0, 2.0, -1.0], k=2, bias=0.5)
    array([1.25, 1.25, 0.  ])
    """
    V = _checks.as_rows(v)
    return _project(V, k, np.full(len(V), np.inf), bias, v)


def project_top_k_simplex(v: ArrayLike, k: int, r: ArrayLike = 1.0, bias: float = 0.0) -> Floats:
    r"""Project onto the top-k simplex: the top-k cone with :math:`\sum_j p_j \le r`.

    With a bias it is biased in the same way as :func:`project_top_k_cone`.

    Parameters
    ----------
    v : array-like of shape (n,) or (rows, n)
        What to project; rows independently.
    k : int
        Between 1 and n; no entry may exceed a k-th of the sum.
    r : float or array-like of shape (rows,), default=1.0
        Bound on the sum, positive.
    bias : float, default=0.0
        Weight of the squared sum, at least zero; 1 gives the restricted problem of the top-k hinge
        loss.

    Returns
    -------
    ndarray
        The projection, with the shape and the dtype of `v` (float64 for integers).

    References
    ----------
    M. Lapin, M. Hein, B. Schiele. Top-k multiclass SVM. NIPS 2015, lemmas 3 to 5, section 4.3.

    Examples
    --------
    >>> from polymargin.projections import project_top_k_simplex
    >>> project_top_k_simplex([3.0, 1.0, 0.0], k=2)
    array([0.5, 0.5, 0. ])
    >>> project_top_k_simplex([0.25, 0.25, -3.0], k=2, r=2.0)
    array([0.25, 0.25, 0.  ])
    """
    V = _checks.as_rows(v)
    return _project(V, k, _checks.positive_per_row("r", r, len(V)), bias, v)


def _project(V: Floats, k: int, bounds: Doubles, bias: float, v: ArrayLike) -> Floats:
    k = _checks.check_k(k, V.shape[1])
    bias = _checks.in_range("bias", bias, 1e100, "be at least 0 and less than 1e100")
    P = np.empty_like(V)
    return _checks.result(core.project_top_k(V, k, bounds, bias, P), P, v)
