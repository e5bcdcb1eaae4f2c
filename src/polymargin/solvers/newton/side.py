r"""A partition's side of Newton rounds: sums of phi, its gradient, its Hessian over its examples.

The centre of phi (:mod:`~polymargin.solvers.newton.proximal`) is the dual that the partition holds.
Everything is asked for with the point W, and found again where the partition does not know it: one
that was lost meanwhile and has begun anew answers for the centre it has now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from polymargin.solvers.newton.faces import Doubles, Faces
from polymargin.solvers.newton.proximal import ProximalDual
from polymargin.solvers.newton.system import Hessian, class_blocks
from polymargin.solvers.state import State


class Point(NamedTuple):
    """Where to look: the number of the point, the strength of phi, and W."""

    number: int
    mu: float
    W: Doubles

    @property
    def nbytes(self) -> int:
        """Of what is to be sent."""
        return self.W.nbytes


class Looked(NamedTuple):
    """Sums over the examples of a partition, of the maximiser N at a point."""

    losses: float  # c_i loss_i, without all-zero rows
    inner: float  # N_i . h_i
    value: float  # of phi, without 1/2 ||W||^2
    n_free: int  # rows inside a face
    n: int


class NewtonSide:
    """What a partition knows of one point at a time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._phi = ProximalDual(state.problem, 1.0)
        self._known: tuple[int, float] | None = None

    def forget(self) -> None:
        """The dual is another one."""
        self._known = None

    def _find(self, at: Point) -> None:
        """The maximiser at a point, and its faces."""
        if self._known == (at.number, at.mu):
            return
        phi = self._phi
        phi.mu = at.mu
        phi.move_to(phi.blocks(self._state.dual_block()))
        self._H = phi.margins(phi.scores(at.W))
        self._p = phi.maximiser(self._H)
        self._faces: Faces = phi.faces(self._p)
        self._hessian: Hessian | None = None
        self._known = at.number, at.mu

    def _hessian_at(self, at: Point) -> Hessian:
        self._find(at)
        if self._hessian is None:
            self._hessian = Hessian(self._phi, self._faces)
        return self._hessian

    def look(self, at: Point) -> tuple[Doubles, Looked]:
        """``V(N)``, and what the objectives are made of."""
        self._find(at)
        phi, p, H = self._phi, self._p, self._H
        losses = phi.losses(H) - phi.problem.constant_loss
        value = phi.value(np.zeros(1), H, p)
        looked = Looked(losses, float(np.vdot(p, H)), value, len(self._faces.rows), phi.n)
        return phi.weights(p)[0], looked

    def times(self, at: Point, D: Doubles) -> Doubles:
        """``(H - I) D``."""
        return self._hessian_at(at).times(D) - D

    def blocks(self, at: Point) -> Doubles:
        """The blocks of ``H - I`` of each class, a column each."""
        X = self._hessian_at(at).X
        made = class_blocks(X, self._faces.diagonal(), self._phi.mu)
        return np.stack([block.ravel() for block in made], axis=1)

    def maximiser(self, at: Point) -> sparse.csr_array:
        """``N`` of all examples of the partition."""
        self._find(at)
        return self._phi.dual(self._p)
