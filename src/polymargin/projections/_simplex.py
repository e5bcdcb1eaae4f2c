"""Projections onto the simplex, the ball of the 1-norm and the capped simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from polymargin.arrays import Doubles, Floats
from polymargin.core import core
from polymargin.projections import _checks

METHODS = ("newton", "condat", "sort", "pivot", "bisection")


def project_simplex(
    v: ArrayLike,
    z: ArrayLike = 1.0,
    *,
    method: str = "newton",
    tol: float = 1e-15,
    random_state: int | np.random.RandomState | None = None,
) -> Floats:
    r"""Project onto the simplex, :math:`\{p \ge 0, \sum_j p_j = z\}`.

    The projection is :math:`p = \max(v - \tau, 0)`; the methods differ in how they find the
    threshold :math:`\tau`. All agree to rounding, and the sum is `z` to rounding even where the
    entries of `v` are larger than `z` by many orders of magnitude.

    Parameters
    ----------
    v : array-like of shape (n,) or (rows, n)
        What to project; rows independently.
    z : float or array-like of shape (rows,), default=1.0
        The sum of the entries, positive.
    method : {"newton", "condat", "sort", "pivot", "bisection"}, default="newton"
        "newton" solves for the threshold by Newton's method [1]_, "condat" filters the entries
        in one pass [2]_, "sort" sorts them [3]_, "pivot" partitions them around random entries
        [4]_, "bisection" halves a bracket [3]_.
    tol : float, default=1e-15
        Only for "bisection", which stops when the sum before the final scaling differs from `z` by
        at most ``tol * z``, or when the bracket cannot be halved any more. The default gives all
        digits. The sum of the result is `z` with any `tol`.
    random_state : int, RandomState instance or None, default=None
        Only for "pivot": seeds the choice of pivots, which affects the time and the rounding.

    Returns
    -------
    ndarray
        The projection, with the shape and the dtype of `v` (float64 for integers).

    References
    ----------
    .. [1] C. Michelot. A finite algorithm for finding the projection of a point onto the canonical
       simplex of R^n. Journal of Optimization Theory and Applications, 1986.
    .. [2] L. Condat. Fast projection onto the simplex and the l1 ball. Mathematical Programming,
       2016.
    .. [3] M. Blondel, A. Fujino, N. Ueda. Large-scale multiclass support vector machine training
       via Euclidean projection onto the simplex. ICPR 2014, algorithms 2 and 3.
    .. [4] J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra. Efficient projections onto the
       l1-ball for learning in high dimensions. ICML 2008, figure 2.

    Examples
    --------
    >>> from polymargin.projections import project_simplex
    >>> project_simplex([0.75, 0.5, -1.0])
    array([0.625, 0.375, 0.   ])
    >>> project_simplex([[3.0, 1.0], [0.0, 0.0]], z=[1.0, 4.0], method="sort")
    array([[1., 0.],
           [2., 2.]])
    """
    V = _checks.as_rows(v)
    sums = _checks.positive_per_row("z", z, len(V))
    _checks.check_method(method, METHODS)
    tol = _checks.in_range("tol", tol, 1.0, "lie in [0, 1)")
    seed = 1
    if method == "pivot":
        seed = int(check_random_state(random_state).randint(1, 2**31 - 1))
    P = np.empty_like(V)
    guesses = np.full(len(V), np.nan)
    return _checks.result(core.project_simplex(method, V, sums, tol, seed, guesses, P), P, v)


def project_l1_ball(v: ArrayLike, z: ArrayLike = 1.0) -> Floats:
    r"""Project onto the ball of the 1-norm, :math:`\{p : \sum_j |p_j| \le z\}`.

    A `v` inside the ball is returned as it is; otherwise the answer is that of the simplex for
    :math:`|v|`, with the signs of `v`.

    Parameters
    ----------
    v : array-like of shape (n,) or (rows, n)
        What to project; rows independently.
    z : float or array-like of shape (rows,), default=1.0
        The radius, positive.

    Returns
    -------
    ndarray
        The projection, with the shape and the dtype of `v` (float64 for integers).

    References
    ----------
    J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra. Efficient projections onto the l1-ball for
    learning in high dimensions. ICML 2008, section 4.

    Examples
    --------
    >>> from polymargin.projections import project_l1_ball
    >>> project_l1_ball([0.75, -0.5, 0.0])
    array([ 0.625, -0.375,  0.   ])
    >>> project_l1_ball([0.25, -0.5])
    array([ 0.25, -0.5 ])
    """
    V = _checks.as_rows(v)
    radii = _checks.positive_per_row("z", z, len(V))
    P = np.empty_like(V)
    return _checks.result(core.project_l1_ball(V, radii, P), P, v)


def project_capped_simplex(
    v: ArrayLike, upper: ArrayLike, z: ArrayLike = 1.0, equality: bool = True
) -> Floats:
    r"""Project onto the capped simplex, :math:`\{0 \le p \le u, \sum_j p_j = z\}`.

    This is the continuous quadratic knapsack problem, solved by variable fixing [1]_:
    :math:`p = \mathrm{clip}(v - t, 0, u)` with the `t` that gives the sum `z`.

    Parameters
    ----------
    v : array-like of shape (n,) or (rows, n)
        What to project; rows independently.
    upper : float or array-like that broadcasts to the shape of `v`
        The upper bounds, at least zero; infinity means none.
    z : float or array-like of shape (rows,), default=1.0
        The sum of the entries, positive.
    equality : bool, default=True
        Whether the sum is `z`, or at most `z`.

    Returns
    -------
    ndarray
        The projection, with the shape and the dtype of `v` (float64 for integers).

    Raises
    ------
    ValueError
        If no point is feasible: with equality, where the bounds of a row add up to less than `z`.

    References
    ----------
    .. [1] K. C. Kiwiel. Variable fixing algorithms for the continuous quadratic knapsack problem.
       Journal of Optimization Theory and Applications, 2008, algorithm 3.1.

    Examples
    --------
    >>> from polymargin.projections import project_capped_simplex
    >>> project_capped_simplex([3.0, 1.0, 0.5], upper=0.5)
    array([0.5, 0.5, 0. ])
    >>> project_capped_simplex([0.25, 1.0, -1.0], upper=0.5, equality=False)
    array([0.25, 0.5 , 0.  ])
    """
    V = _checks.as_rows(v)
    sums = _checks.positive_per_row("z", z, len(V))
    caps = _upper_bounds(upper, np.shape(v), V)
    if equality:
        _check_feasible(caps, sums, V)
    P = np.empty_like(V)
    return _checks.result(core.project_capped_simplex(V, caps, sums, bool(equality), P), P, v)


def _upper_bounds(upper: ArrayLike, shape: tuple[int, ...], V: Floats) -> Floats:
    """Return the bounds in V's dtype as (1, 1), (1, n) or (rows, n)."""
    caps = np.asarray(upper)
    if caps.dtype.kind not in "iuf":
        raise TypeError(f"upper must be a number or an array of numbers, got {upper!r}.")
    caps = caps.astype(V.dtype)
    if not np.all(caps >= 0):
        raise ValueError("upper must be at least 0 everywhere (and not NaN).")
    try:
        np.broadcast_to(caps, shape)
    except ValueError as error:
        raise ValueError(
            f"upper has the shape {caps.shape}, which does not broadcast to that of v, {shape}."
        ) from error
    if caps.size == 1:
        return caps.reshape(1, 1)
    caps = np.atleast_2d(caps)
    return np.ascontiguousarray(np.broadcast_to(caps, (len(caps), V.shape[1])))


def _check_feasible(caps: Floats, sums: Doubles, V: Floats) -> None:
    """Raise if the bounds of a row add up to less than its sum, by more than rounding."""
    n = V.shape[1]
    most = caps.sum(axis=1, dtype=np.float64) * (n if caps.shape[1] == 1 else 1)
    short = np.flatnonzero(most < sums * (1 - 4 * n * np.finfo(V.dtype).eps))
    if short.size:
        row = int(short[0])
        bound = float(most[row if len(most) > 1 else 0])
        raise ValueError(
            f"Row {row} has no feasible point: its upper bounds add up to {bound:g}, less than "
            f"z={sums[row]:g}. Raise upper, lower z, or pass equality=False."
        )
