r"""Faces of the block sets: the derivative of the restricted problem's solution.

With a curvature ``mu`` the restricted problem is a projection. As a row ``a`` over all classes
(``a_j = -p_j``, ``a_y = sum p``; one-vs-rest: ``a_m = z_m p_m``) a block of scores ``s`` that stays
near the block ``B`` is

    a(s)  =  projection of  a_B + (e - s) / mu   onto the block set,

with a constant row e. A block set is a polytope, so near almost every s the solution moves inside
one face of it, and ``da/ds = -Pi / mu`` with Pi the orthogonal projector onto the directions of
that face. With M the classes strictly between their bounds (0 and u), ``I_G`` the identity on G,
and ``1_G`` its ones:

================== ================================================ ================================
loss               directions of the face                           Pi
================== ================================================ ================================
``one_vs_rest``    each class of M                                  ``I_M``
``crammer_singer`` sum zero on G: M, and y where ``sum p < c``      ``I_G - 1_G 1_G^T / |G|``
``weston_watkins`` sum zero on G: M and y                           ``I_G - 1_G 1_G^T / |G|``
``top_k_beta``     sum zero on G: M, and y where ``sum p < c``      ``I_G - 1_G 1_G^T / |G|``
``top_k_alpha``    ``sum p = c``: sum zero on M;                    ``I_M - 1_M 1_M^T / |M|``,
                   ``0 < sum p < c``: besides, U moves with the sum plus ``r r^T / ||r||^2``
================== ================================================ ================================

Of top-k alpha, U are the classes at ``u = sum p / k``, and r says what one unit of u does: k for y,
-1 on U, ``-(k - |U|) / |M|`` on M (where M is empty U has k classes). ``||r||^2 = k^2 + |U| +
(k - |U|)^2 / |M|`` is the ``Delta / |M|`` of the restricted problem (Lapin et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polymargin.arrays import Mask
from polymargin.losses import Loss

ROUNDING = 1e-10  # of c: what is as near to a bound lies on it

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Faces:
    """The faces of some rows that have a direction at all.

    Attributes
    ----------
    rows : int64 ndarray of shape (m,)
        Which rows.
    free : ndarray of shape (m, K)
        1 on G, 0 elsewhere.
    part : ndarray of shape (m, 1)
        ``1 / |G|``; 0 where nothing couples the classes.
    ray : ndarray of shape (m, K) or None
        ``r / ||r||``, zero where there is none.
    """

    rows: NDArray[np.int64]
    free: Doubles
    part: Doubles
    ray: Doubles | None

    def project(self, Z: Doubles) -> Doubles:
        """``Pi_i z_i`` of every row."""
        inside: Doubles = self.free * Z
        inside -= self.free * (self.part * inside.sum(axis=1, keepdims=True))
        if self.ray is not None:
            inside += self.ray * np.einsum("ij,ij->i", self.ray, Z)[:, None]
        return inside

    def diagonal(self) -> Doubles:
        """The diagonal of every ``Pi_i``."""
        diagonal: Doubles = self.free * (1.0 - self.part)
        return diagonal if self.ray is None else diagonal + self.ray**2


# Of every loss: G, r (or None) and whether one class of G alone is a direction.
Found = tuple[Mask, Doubles | None, bool]


def _one_vs_rest(p: Doubles, y: NDArray[np.int32], c: Doubles, k: int) -> Found:
    return _between(p, c, c), None, False


def _crammer_singer(p: Doubles, y: NDArray[np.int32], c: Doubles, k: int) -> Found:
    return _with_true_class(_between(p, np.inf, c), y, _slack(p, c)), None, True


def _weston_watkins(p: Doubles, y: NDArray[np.int32], c: Doubles, k: int) -> Found:
    return _with_true_class(_between(p, c, c), y, np.ones(len(p), bool)), None, True


def _top_k_beta(p: Doubles, y: NDArray[np.int32], c: Doubles, k: int) -> Found:
    return _with_true_class(_between(p, c / k, c), y, _slack(p, c)), None, True


def _top_k_alpha(p: Doubles, y: NDArray[np.int32], c: Doubles, k: int) -> Found:
    bound = p.sum(axis=1) / k
    inside = _between(p, bound, c)
    at_bound = (p > ROUNDING * c[:, None]) & ~inside
    left = (k - at_bound.sum(axis=1)) / np.maximum(1, inside.sum(axis=1))
    ray: Doubles = np.where(inside, -left[:, None], np.where(at_bound, -1.0, 0.0))
    moves = _slack(p, c) & ray.any(axis=1)
    ray[np.arange(len(p)), y] = k
    ray *= (moves / np.linalg.norm(ray, axis=1))[:, None]
    return inside, ray, True


FACES: dict[str, Callable[[Doubles, NDArray[np.int32], Doubles, int], Found]] = {
    "crammer_singer": _crammer_singer,
    "weston_watkins": _weston_watkins,
    "top_k_beta": _top_k_beta,
    "top_k_alpha": _top_k_alpha,
    "one_vs_rest": _one_vs_rest,
}


def has_faces(loss: Loss) -> bool:
    """Whether the faces of a loss are known: it is flat on its block sets."""
    return loss.flat and loss.name in FACES


def faces_of(loss: Loss, p: Doubles, y: NDArray[np.int32], c: Doubles) -> Faces:
    """The faces on which blocks lie.

    Parameters
    ----------
    loss : Loss
    p : ndarray of shape (n, K)
        Blocks, zero at the true class (one-vs-rest: any).
    y, c : ndarray of shape (n,)
        True classes and costs, which are positive.
    """
    free, ray, coupled = FACES[loss.name](p, y, c, loss.top_k or 1)
    count = free.sum(axis=1)
    chosen = count >= (2 if coupled else 1)
    if ray is not None:
        chosen |= ray.any(axis=1)
    rows = np.flatnonzero(chosen)
    part = 1.0 / np.maximum(1, count[rows]) if coupled else np.zeros(len(rows))
    return Faces(
        rows, free[rows].astype(np.float64), part[:, None], None if ray is None else ray[rows]
    )


def _between(p: Doubles, bound: Doubles | float, c: Doubles) -> Mask:
    """Which entries lie strictly between 0 and the bound of their row."""
    near = ROUNDING * c[:, None]
    upper = np.broadcast_to(bound, c.shape)[:, None]
    return (p > near) & (p < upper - near)


def _slack(p: Doubles, c: Doubles) -> Mask:
    """Which rows have ``sum p < c``."""
    slack: Mask = p.sum(axis=1) < (1.0 - ROUNDING) * c
    return slack


def _with_true_class(free: Mask, y: NDArray[np.int32], also: Mask) -> Mask:
    free[np.arange(len(free)), y] = also
    return free
