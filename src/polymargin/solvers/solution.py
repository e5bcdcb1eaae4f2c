"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from polymargin.arrays import Codes, Doubles, Floats
from polymargin.losses import Loss
from polymargin.problem import Examples
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.stopping import Status


@dataclass(kw_only=True)
class Outcome:
    """How a solver ended, and what it proved.

    Attributes
    ----------
    certificate : Certificate
        Objective values; NaN when not certified.
    n_iter : int
        Passes made (kernel machines: working sets solved; LaRank: epochs).
    history : dict of str to ndarray
        One entry per certificate: pass, time, primal, dual, gap, n_awake.
    status : Status
        ``"converged"``, ``"max_iter"``, ``"time_limit"``, ``"interrupted"``, ``"uncertified"``,
        or ``"stalled"`` where rounding allows no smaller gap (kernel machines).
    """

    certificate: Certificate
    n_iter: int
    history: dict[str, Floats]
    status: Status

    @property
    def primal(self) -> float:
        """The primal objective; NaN when not certified."""
        return self.certificate.primal

    @property
    def dual(self) -> float:
        """The dual objective; NaN when not certified."""
        return self.certificate.dual

    @property
    def gap(self) -> float:
        """Relative duality gap ``(primal - dual) / primal``; NaN when not certified."""
        return self.certificate.gap


@dataclass(kw_only=True)
class DualSolution(Outcome):
    """A dual and its certificate.

    Attributes
    ----------
    block : csr_array of shape (n, n_classes)
        The dual ``p >= 0`` (over the wrong classes; one-vs-rest: over all).
    c, y, loss : the parts of the problem that a warm start needs.
    """

    block: sparse.csr_array = field(repr=False)
    c: Doubles = field(repr=False)
    y: Codes = field(repr=False)
    loss: Loss

    def dual_coef(self) -> sparse.csr_array:
        """Rows ``a_i`` of the dual, (n, n_classes)."""
        return signed_dual(self.block, self.y, coupled=self.loss.coupled)


@dataclass(frozen=True)
class KeptState:
    """All that the passes have left, and what they were made for, hashed."""

    made_for: dict[str, str]
    engine: dict[str, Any]  # as an engine's `state_dict` gives it


@dataclass(kw_only=True)
class Solution(DualSolution):
    """A linear model, its certificate, and the dual it was certified with.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
    intercept : ndarray of shape (n_classes,)
        ``scores = X @ coef.T + intercept``; the penalised weight of the constant feature is
        ``intercept / intercept_scaling``.
    kept : KeptState or None
        What a warm start of the same problem goes on from, where that was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from polymargin import DualSolver, Problem, get_loss
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0, 1, 2])
    >>> problem = Problem(X, y, np.ones(3), get_loss("crammer_singer"), 3)
    >>> solution = DualSolver().solve(problem, tol=1e-6, max_iter=100)
    >>> solution.status, solution.dual <= solution.primal, solution.gap <= 1e-6
    (<Status.CONVERGED: 'converged'>, True, True)
    """

    coef: Floats
    intercept: Floats
    kept: KeptState | None = field(default=None, repr=False)


def signed_dual(p: sparse.csr_array, y: Codes, *, coupled: bool) -> sparse.csr_array:
    """Rows ``a_i``: ``a_ij = -p_ij`` and ``a_iy = sum_j p_ij`` (one-vs-rest: ``p_iy``)."""
    if not coupled:
        signs = np.where(p.indices == np.repeat(y, np.diff(p.indptr)), 1, -1)
        values = p.data * signs.astype(p.dtype)
        return sparse.csr_array((values, p.indices, p.indptr), shape=p.shape)
    # a running sum would lose digits: add up row by row
    own = np.zeros(p.shape[0], np.float64)
    filled = np.flatnonzero(np.diff(p.indptr))
    if len(filled):
        own[filled] = np.add.reduceat(p.data.astype(np.float64), p.indptr[filled])
    diagonal = sparse.csr_array((own[filled], (filled, y[filled])), shape=p.shape)
    return (diagonal - p).astype(p.dtype).tocsr()


def feasible_block(c: Doubles, block: sparse.csr_array, c_then: Doubles) -> sparse.csr_array:
    """A dual for ``c_then``, scaled to be feasible for ``c``: block sets scale with their costs."""
    used = np.diff(block.indptr) > 0
    if not used.any() or (c[used] == 0).any():
        return sparse.csr_array(block.shape, dtype=block.dtype)
    return (block * float(np.min(c[used] / c_then[used]))).tocsr()


def best_factor(largest: float, dual_sum: float, squared_norm: float) -> float:
    """The factor up to `largest` that is best for a dual.

    With ``D = dual_sum - 1/2 ||V||^2``, scaled by ``r``: ``r dual_sum - r^2/2 ||V||^2`` is largest
    at ``dual_sum / ||V||^2``. Curved conjugates are no larger than that has them.
    """
    return largest if squared_norm <= 0 else min(largest, dual_sum / squared_norm)


def fits(problem: Examples, start: DualSolution) -> bool:
    """Whether the dual of `start` means something for a problem."""
    shape = (problem.n_examples, problem.n_classes)
    same = start.loss == problem.loss and start.block.shape == shape
    return same and np.array_equal(start.y, problem.y)


def check_start(problem: Examples, start: DualSolution) -> None:
    """Raise ``ValueError`` where the dual of `start` means nothing for a problem."""
    if fits(problem, start):
        return
    n = problem.n_examples
    n_then, classes_then = start.block.shape
    if start.loss == problem.loss and (n_then, classes_then) == (n, problem.n_classes):
        raise ValueError("start is a solution for other labels; its dual means nothing here.")
    raise ValueError(
        f"start is a solution for {start.loss} with {n_then} examples and {classes_then} classes; "
        f"this problem is {problem.loss} with {n} and {problem.n_classes}."
    )
