"""What ``warm_start=True`` keeps of a fit, and when the next fit may start from it.

A dual point stays feasible when the weights ``c`` of all examples change by one factor, as they do
when `C` changes. It means nothing for other labels, another loss or other columns: then the next
fit starts from zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polymargin.losses import Loss
from polymargin.problem import Problem
from polymargin.solvers import Solution


@dataclass(frozen=True)
class WarmStart:
    """The end of a fit, with what identifies its problem."""

    solution: Solution
    shape: tuple[int, int]
    y: np.ndarray
    c: np.ndarray
    loss: Loss
    n_classes: int
    intercept_scaling: float

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> WarmStart:
        """Keep a solution of a problem, but not the problem's data."""
        return cls(
            solution,
            problem.X.shape,
            problem.y,
            problem.c,
            problem.loss,
            problem.n_classes,
            problem.intercept_scaling,
        )

    def start_for(self, problem: Problem) -> Solution | None:
        """Give the kept solution if a fit of `problem` can start from it."""
        same_problem = (
            problem.X.shape == self.shape
            and problem.X.dtype == self.solution.coef.dtype
            and problem.loss == self.loss
            and problem.n_classes == self.n_classes
            and problem.intercept_scaling == self.intercept_scaling
            and np.array_equal(problem.y, self.y)
            and _proportional(problem.c, self.c)
        )
        return self.solution if same_problem else None


def _proportional(new: np.ndarray, old: np.ndarray) -> bool:
    """Tell whether two vectors of weights, neither of them zero, differ by one factor."""
    return np.allclose(new * (old.max() / new.max()), old, rtol=1e-12, atol=0.0)
