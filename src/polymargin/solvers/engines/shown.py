"""The primal point that a certificate is about, as the model of it will be."""

from __future__ import annotations

import math

import numpy as np

from polymargin.arrays import Floats
from polymargin.solvers.certificate import squared_norm
from polymargin.solvers.state import State, as_shown, converted

# by how much the primal point may be too short, in parts of the estimated gap
SHORT_BY = np.array([0.1, 0.2, 0.35])
FEW_EXAMPLES = 200  # so few that certificates look at multiples as they are rounded
NO_MULTIPLES = np.empty(0)


class Shown:
    """A primal point in the precision of the data, and the multiple of it that was certified.

    While the dual grows, W is too short, and the losses of all examples that end up at their
    margins suffer from it. Losses at several multiples cost little more than those at one.
    """

    def __init__(self, point: Floats, state: State) -> None:
        shown = as_shown(point, state.problem.n_classes)
        self.weights = shown if shown.dtype == state.dtype else converted(shown, state)
        self._is_own = self.weights is not point  # and of nobody else
        self._state = state
        self.factor = 1.0

    def primal(self, n_jobs: int, estimate: float = math.nan) -> float:
        """The primal value of the best multiple; of the point, without an estimate of the gap.

        The weights of a model in float32 are the multiple rounded, which moves P by 1e-8 to 1e-7 of
        it; of few examples, where one margin may be what is left of large numbers, more.
        """
        state, point, factors = self._state, self.weights, NO_MULTIPLES
        if math.isfinite(estimate):
            factors = (1.0 + estimate * SHORT_BY).astype(point.dtype).astype(np.float64)
        sums = np.zeros(len(factors))
        losses = state.evaluate(point, n_jobs, factors=factors, sums=sums)
        w = squared_norm(point)
        primal, values = 0.5 * w + float(losses.sum()), 0.5 * w * factors**2 + sums
        if not (values < primal).any():
            return primal
        best = int(np.argmin(values))
        value, factor = float(values[best]), float(factors[best])
        if point.dtype == np.float32 and len(losses) <= FEW_EXAMPLES:
            multiple, shares = state.like_weights(point), state.gap.copy()
            multiple *= multiple.dtype.type(factor)
            losses = state.evaluate(multiple, n_jobs)
            value = 0.5 * squared_norm(multiple) + float(losses.sum())
            state.gap[:] = shares  # whom to wake is the point's to say
        if value < primal:
            primal, self.factor = value, factor
        return primal

    def taken(self, *, copy: bool) -> Floats:
        """The multiple as an array, of whoever asks; without `copy` it may be the point's own."""
        if self.factor != 1.0:
            factor = self.weights.dtype.type(self.factor)
            if not self._is_own:
                return self.weights * factor
            self.weights *= factor
            self.factor = 1.0
        return self.weights.copy() if copy and not self._is_own else self.weights
