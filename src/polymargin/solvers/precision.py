"""Sweeps in single precision on data in double, while the gap is far from what that can tell.

Sweeps wait for memory, and weights in single precision are half as many bytes. The certificate does
not depend on it: the dual is feasible as it is, V is rebuilt from it in double precision on the
data as they are, and the primal point is evaluated there too. When the gap comes near to what
single precision can resolve, is not what sweeps took it for, or stands still, they go on in double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polymargin.problem import Problem
from polymargin.solvers.acceleration import curvature
from polymargin.solvers.state import State, converted

if TYPE_CHECKING:
    from polymargin.solvers.dual import DualSolver

WORTHWHILE = 400_000  # bytes of weights in double precision: less stays in the caches anyway
FEW_PASSES = 0.05  # mean of c_i ||x_i||^2, below which a fit has hardly begun when it ends
UNTIL = 5e-5  # the relative gap, as estimated, from which on sweeps are in double precision
MISLED = 5.0  # times as large as estimated is the gap that is not what it was taken for
LOWER = 0.9  # times the last: what a gap must come to that does not stand still,
PATIENCE = 20  # in so many passes
SAFE = (1e-20, 1e20)  # squared norms, so that values and products are within range


def may_sweep_in_single(problem: Problem, settings: DualSolver) -> bool:
    """Whether sweeps in single precision are possible for this problem and these settings."""
    rows = problem.rows
    if not rows.is_whole or rows.dtype != np.float64 or not problem.loss.has_room:
        return False
    plain = settings.schedule == "sdm" or settings.stopping is not None or not settings.certify
    norms = problem.squared_norms[problem.visited]
    in_range = len(norms) == 0 or (norms.min() > SAFE[0] and norms.max() < SAFE[1])
    return in_range and not plain


def starts_in_single(problem: Problem, settings: DualSolver) -> bool:
    """Whether the first sweeps are in single precision: chosen, or where it pays."""
    if settings.precision == "double" or not may_sweep_in_single(problem, settings):
        return False
    weights = 8 * (problem.n_features + problem.has_intercept) * problem.n_classes
    many_passes = curvature(problem) >= FEW_PASSES
    return settings.precision == "single" or (weights >= WORTHWHILE and many_passes)


@dataclass
class Trust:
    """Whether sweeps in single precision still get somewhere."""

    lost: bool = False
    passes: int = 0  # since a certificate was lower than those before
    lowest: float = math.inf

    def is_over(self, estimate: float) -> bool:
        """Whether the next pass had better be in double precision; counts it otherwise."""
        self.passes += 1
        return self.lost or estimate < UNTIL

    def after_certificate(self, gap: float, estimate: float) -> None:
        """Look at the gap of a certificate, and at what the last pass took it for."""
        if gap < LOWER * self.lowest:
            self.lowest, self.passes = gap, 0
        self.lost = gap > MISLED * estimate or self.passes >= PATIENCE


def take_over(single: State, double: State) -> None:
    """Let `double` go on where `single` is; V is rebuilt from the dual."""
    double.copy_dual(single)
    double.kappa = single.kappa
    double.Y = None if single.Y is None else converted(single.Y, double)
    double.set_from_dual(double.rebuild())
    double.gap[:], double.threshold[:] = single.gap, single.threshold
