"""Probabilities from scores: ``softmax(scores / T)``, with one temperature T for a model.

Softmax has T = 1. For the hinge losses, T minimises the log loss of scores of examples that their
model was not trained on. Such scores come from a few folds: models that start from the solution of
all examples without the dual variables of those held out. A temperature is one number, so that
some thousand examples settle it, and what is left of a fold's duality gap hardly moves it: a loose
tolerance is enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from polymargin.arrays import Codes, Doubles, Floats
from polymargin.losses import LOSSES, loss_class

FOLD_TOL = 2e-2  # of the models of folds, unless the estimator's tol is larger
FEWEST, MOST = 2000, 5000  # examples held out in all, where there are as many
USUAL_PART = 0.2  # of the examples, between these bounds
LARGEST_FOLD = 0.2  # of the examples
MOST_SCORES = 2**25  # of the examples held out, for all classes
FLATTEST = 1e-3  # what useless scores are multiplied by, relative to their range
STEPS = 200
PRECISION = 1e-4  # relative, of the last step of Newton's method: it squares the error
ROUGHLY, ROUGH = 500, 1e-2  # examples of a first guess, and its precision


def temperature_of(model: object) -> float | None:
    """What the scores of a fitted model are divided by; None for one without probabilities."""
    loss = getattr(model, "loss", None)
    if loss in LOSSES and loss_class(loss).gives_probabilities:
        return 1.0
    return getattr(model, "temperature_", None) if getattr(model, "probability", False) else None


def log_probabilities(scores: Floats, temperature: float) -> Floats:
    """Logarithms of the classes' probabilities; of two classes, scores are those of the second."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    scaled = (scores - scores.max(axis=1, keepdims=True)) / temperature
    logarithms: Floats = log_softmax(scaled.astype(scores.dtype, copy=False), axis=1)
    return logarithms


def held_out_parts(y: Codes, c: Doubles, n_classes: int, seed: int) -> list[NDArray[np.intp]]:
    """Examples that folds hold out, each at most once; every fold keeps some of every class."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(c > 0))
    n, first = len(order), np.full(n_classes, -1)
    first[y[order[::-1]]] = np.arange(n)[::-1]  # of every class; the last one written stays
    order = np.delete(order, first[first >= 0])
    if len(order) == 0:
        raise ValueError(
            "probability=True fits a temperature on examples that are held out, but every class "
            "has a single example: give more of them, or leave probability out."
        )
    wanted = min(max(FEWEST, int(USUAL_PART * n)), MOST, max(1, MOST_SCORES // n_classes))
    held = order[:wanted]
    n_folds = int(np.ceil(len(held) / (LARGEST_FOLD * n)))
    return [np.sort(part) for part in np.array_split(held, n_folds)]


def fit_temperature(scores: Floats, y: Codes, weight: Doubles) -> float:
    """The temperature of the lowest log loss, by a safeguarded Newton iteration on b = 1 / T.

    The loss is convex in b: its slope is the mean of ``E_p[s] - target``, its curvature that of
    ``Var_p[s]``, where p is the softmax of ``b s``. The target is the true class's score, with a
    share of about 1 / n of the mean of all scores (as in Platt's method), so that b stays finite
    where every example is right. It does not fall below what makes all classes about equally
    likely.
    """
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    S = scores.astype(np.float64)
    S -= S.max(axis=1, keepdims=True)
    scale = float(-S.min())
    if not (scale > 0 and np.isfinite(scale)):
        return 1.0
    S /= scale
    part = slice(None, None, max(1, len(y) // ROUGHLY))  # a guess from some saves steps on all
    guess = _increasing_root(_slope(S[part], y[part], weight[part]), 1.0, ROUGH)
    return scale / _increasing_root(_slope(S, y, weight), guess, PRECISION)


def _slope(S: Doubles, y: Codes, weight: Doubles) -> Callable[[float], tuple[float, float]]:
    """Slope and curvature of the log loss as a function of b; the largest of each row of S is 0."""
    w = weight / weight.sum()
    share = 1.0 / (1.0 / float(w @ w) + 2.0)
    target = float(w @ ((1 - share) * S[np.arange(len(y)), y] + share * S.mean(axis=1)))

    def slope_and_curvature(b: float) -> tuple[float, float]:
        P = np.exp(b * S)
        total = P.sum(axis=1)
        P *= S
        mean, square = P.sum(axis=1) / total, np.einsum("ij,ij->i", P, S) / total
        return float(w @ mean) - target, float(w @ np.maximum(square - mean**2, 0.0))

    return slope_and_curvature


def _increasing_root(
    slope_and_curvature: Callable[[float], tuple[float, float]], b: float, precision: float
) -> float:
    """Where an increasing function of b is zero, from `FLATTEST` on, after a guess."""
    low, high = FLATTEST, np.inf
    for _ in range(STEPS):
        slope, curvature = slope_and_curvature(b)
        low, high = (b, high) if slope < 0 else (low, b)
        step = b - slope / curvature if curvature > 0 else np.inf
        if abs(step - b) <= precision * b:
            return max(step, FLATTEST)
        if not low < step < high:
            if low == FLATTEST and slope_and_curvature(low)[0] >= 0:
                return low
            step = 4 * b if np.isinf(high) else float(np.sqrt(low * high))
        elif np.isinf(high):
            step = min(step, 16 * b)
        b = step
    return b
