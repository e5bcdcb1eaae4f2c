r"""The linear system of a Newton step, and conjugate gradients for it.

    H D = -g,    H = I + 1/mu sum_i (x_i x_i^T) (x) Pi_i,

the sum over the rows whose block lies inside a face. H is never formed: a product with it is two
products with those rows of X. Conjugate gradients are preconditioned by the blocks of H of each
class, ``I + 1/mu sum_i (Pi_i)_jj x_i x_i^T``.

Where a loss compares classes, the ones are in the null space of every ``Pi_i``: H leaves directions
with equal columns as they are, and g, whose columns add up to zero, has no part in them. The
preconditioner does not know that and would lead into them, where it is wrong by a factor of up to
its condition number. So the mean of the columns is taken away after it (which halves the
iterations on usps, letter and satimage, and leaves an eighth on mnist).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from polymargin.solvers.newton.faces import Doubles, Faces
from polymargin.solvers.newton.proximal import ProximalDual

ENOUGH = 0.3  # see `conjugate_gradients`
MOST_ITERATIONS = 300


class Hessian:
    """Products with H; `cost` is that of one, in passes over all examples."""

    def __init__(self, phi: ProximalDual, faces: Faces) -> None:
        self._faces, self._mu = faces, phi.mu
        self.X = phi.take(faces.rows)
        self.cost = 2.0 * len(faces.rows) / phi.n

    def times(self, D: Doubles) -> Doubles:
        """``H D``."""
        product: Doubles = self.X.T @ self._faces.project(self.X @ D)
        product /= self._mu
        product += D
        return product


def class_blocks(X: Doubles, diagonal: Doubles, mu: float) -> Iterator[Doubles]:
    """``1/mu sum_i (Pi_i)_jj x_i x_i^T`` of one class after the other."""
    for part in diagonal.T:
        of_class = np.flatnonzero(part)
        scaled = X[of_class] * np.sqrt(part[of_class] / mu)[:, None]
        yield scaled.T @ scaled


class BlockInverse:
    """The inverse of a square block of each class plus the identity, as Cholesky factors."""

    def __init__(self, blocks: Iterable[Doubles], *, coupled: bool) -> None:
        self._coupled = coupled
        self._factors = []
        for block in blocks:
            block[np.diag_indices(len(block))] += 1.0
            factor, _ = linalg.cho_factor(block.T, lower=True, overwrite_a=True, check_finite=False)
            self._factors.append(factor)

    def apply(self, R: Doubles) -> Doubles:
        """The solution for every class."""
        Z = np.empty_like(R)
        for j, factor in enumerate(self._factors):
            Z[:, j] = linalg.cho_solve((factor, True), R[:, j], check_finite=False)
        if self._coupled:
            Z -= Z.mean(axis=1, keepdims=True)
        return Z


class Preconditioner(BlockInverse):
    """The inverse of the blocks of H of each class.

    Attributes
    ----------
    recipe : tuple
        What it was made from, besides X: `rows`, `diagonal` and `mu`.
    build_cost, cost : float
        Of making it, and of applying it, in passes over all examples.
    """

    def __init__(
        self,
        phi: ProximalDual,
        rows: NDArray[np.int64],
        diagonal: Doubles,
        mu: float,
        X: Doubles | None = None,
    ) -> None:
        self.recipe = rows, diagonal, mu
        X = phi.take(rows) if X is None else X
        super().__init__(class_blocks(X, diagonal, mu), coupled=phi.loss.coupled)
        products = np.count_nonzero(diagonal) * phi.d**2 / 2 + phi.n_classes * phi.d**3 / 6
        self.build_cost = products / (phi.n * phi.d * phi.n_classes)
        self.cost = phi.d / phi.n


def conjugate_gradients(
    times: Callable[[Doubles], Doubles],
    apply: Callable[[Doubles], Doubles],
    g: Doubles,
    out_of_time: Callable[[], bool] = lambda: False,
) -> tuple[Doubles, int]:
    """``D`` with ``H D`` about ``-g``, and the number of iterations.

    With q the decrease of the quadratic model so far and dq that of the last of k iterations, they
    stop at ``k dq <= 0.3 q`` (Nash and Sofer 1990): when another iteration would gain little of
    what the ones before gained on average. Stopped anywhere, D is a direction of descent.
    """
    D = np.zeros_like(g)
    R = -g
    Z = apply(R)
    P, rz, gained, k = Z, float(np.vdot(R, Z)), 0.0, 0
    while rz > 0.0 and k < MOST_ITERATIONS:
        k += 1
        HP = times(P)
        alpha = rz / float(np.vdot(P, HP))
        D += alpha * P
        R -= alpha * HP
        gain = 0.5 * alpha * rz
        gained += gain
        if (k > 1 and k * gain <= ENOUGH * gained) or out_of_time():
            break
        Z = apply(R)
        before, rz = rz, float(np.vdot(R, Z))
        P = Z + (rz / before) * P
    return D, k
