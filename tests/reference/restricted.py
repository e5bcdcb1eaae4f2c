"""The restricted problem in exact rational arithmetic.

    minimise  1/2 (||p||^2 + (sum p)^2) - b.p   over the block set of one example.

Floats are rationals, so the inputs convert without error and the answers are exact. The problem is
strictly convex, hence p is unique and any correct method must return it.

* Crammer-Singer, Weston-Watkins, top-k beta: p = clip(b - t, 0, u), where t solves
  sum_j clip(b_j - t, 0, u) = min(t, s).
* Top-k alpha: the cap is u = s / k with s = sum p (Lapin et al. 2015, lemmas 3 to 5; (sum p)^2 has
  the weight rho there, 1 here). For a given s the threshold t solves
  sum_j clip(b_j - t, 0, s/k) = s, and the derivative of the optimal value in s is
  rho s - t - (1/k) sum_j max(0, b_j - t - s/k), increasing and piecewise linear.
* One-vs-rest: the problem is 1/2 ||p||^2 - b.p over [0, c]^m, a clip.

A quadratic conjugate g/(2 c) ||p||^2 turns ||p||^2 into w ||p||^2 with w = 1 + g/c. Smoothed hinge
losses have g = smoothing, the squared hinge has 1/2 and no bound on p. Divided by w, that is b / w
for b and 1 / w for the weight of (sum p)^2.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from heapq import merge
from itertools import accumulate

import numpy as np

from tests.reference.entropic import solve_softmax, solve_top_k_entropy

ZERO = Fraction(0)
MARGIN_LOSSES = ("crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta")


class SortedScores:
    """The entries of b in ascending order, with prefix sums, for sums of clipped entries."""

    def __init__(self, b: Sequence[Fraction]) -> None:
        self.values = sorted(b)
        self.prefix = [ZERO, *accumulate(self.values)]

    def partition(self, t: Fraction, u: Fraction) -> tuple[int, int]:
        """Return (first, last): entries before first are <= t, from last on >= t + u."""
        first = bisect_right(self.values, t)
        return first, max(first, bisect_left(self.values, t + u))

    def between(self, first: int, last: int) -> Fraction:
        """Return the sum of the entries first, ..., last - 1."""
        return self.prefix[last] - self.prefix[first]

    def clipped_sum(self, t: Fraction, u: Fraction) -> Fraction:
        """Return sum_j clip(b_j - t, 0, u)."""
        first, last = self.partition(t, u)
        capped = len(self.values) - last
        return self.between(first, last) - (last - first) * t + capped * u

    def breakpoints(self, u: Fraction) -> list[Fraction]:
        """Return, ascending, the t between which the clipped sum is linear."""
        return list(merge(self.values, [value - u for value in self.values]))


def decreasing_root(f: Callable[[Fraction], Fraction], points: Sequence[Fraction]) -> Fraction:
    """Return a root of f: non-increasing, linear between points, f(first) >= 0 >= f(last)."""
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if f(points[middle]) >= 0:
            low = middle
        else:
            high = middle
    f_low, f_high = f(points[low]), f(points[high])
    assert f_low >= 0 >= f_high, "the root is not bracketed"
    if f_low == f_high:
        return points[low]
    return points[low] + (points[high] - points[low]) * f_low / (f_low - f_high)


def clip_all(b: Sequence[Fraction], t: Fraction, u: Fraction) -> list[Fraction]:
    """Return clip(b_j - t, 0, u) for every j."""
    return [min(max(value - t, ZERO), u) for value in b]


def solve_threshold(
    b: Sequence[Fraction], u: Fraction, s: Fraction, rho: Fraction = Fraction(1)
) -> list[Fraction]:
    """Solve sum_j clip(b_j - t, 0, u) = min(t / rho, s) and return p = clip(b - t, 0, u)."""
    top = max(b)
    if top <= 0:
        return [ZERO] * len(b)
    scores = SortedScores(b)
    if rho == 0 and scores.clipped_sum(ZERO, u) <= s:
        return clip_all(b, ZERO, u)
    inside = [t for t in merge(scores.breakpoints(u), [rho * s]) if 0 < t < top]

    def excess(t: Fraction) -> Fraction:
        return scores.clipped_sum(t, u) - (min(t / rho, s) if rho else s)

    return clip_all(b, decreasing_root(excess, [ZERO, *inside, top]), u)


class TopKAlpha:
    """The top-k alpha problem seen as a function of the sum s = sum p."""

    def __init__(self, b: Sequence[Fraction], k: int, rho: Fraction = Fraction(1)) -> None:
        self.b, self.k, self.rho = b, k, rho
        self.scores = SortedScores(b)
        self.mean_top = self.scores.between(len(b) - k, len(b)) / k

    def threshold(self, s: Fraction) -> Fraction:
        """Return a t with sum_j clip(b_j - t, 0, s/k) = s."""
        u = s / self.k
        return decreasing_root(
            lambda t: self.scores.clipped_sum(t, u) - s, self.scores.breakpoints(u)
        )

    def derivative(self, s: Fraction, t: Fraction) -> Fraction:
        """Return the derivative in s of the optimal value among p with sum p = s."""
        cap = t + s / self.k
        m = len(self.b)
        first = bisect_left(self.scores.values, cap)
        excess = self.scores.between(first, m) - (m - first) * cap
        return self.rho * s - t - excess / self.k

    def root_of_piece(self, s: Fraction, t: Fraction) -> Fraction:
        """Return where the derivative's linear piece at s vanishes; only the partition matters."""
        first, last = self.scores.partition(t, s / self.k)
        m, free = len(self.b), last - first
        free_share = 1 - Fraction(m - last, self.k)
        numerator = self.scores.between(last, m) / self.k
        slope = self.rho + Fraction(m - last, self.k**2)
        if free:
            numerator += free_share * self.scores.between(first, last) / free
            slope += free_share**2 / free
        return numerator / slope

    def best_sum(self, c: Fraction) -> Fraction:
        """Return the optimal s in [0, c] by a safeguarded Newton iteration, finite when exact."""
        if self.mean_top <= 0:
            return ZERO
        # rho = 1: p.(b - p) = s^2 at the optimum. In general p is no longer than b, as 0 is in
        # the set.
        largest = self.mean_top if self.rho == 1 else len(self.b) * max(map(abs, self.b))
        low, high = ZERO, min(c, largest)
        s = high
        while True:
            t = self.threshold(s)
            slope = self.derivative(s, t)
            if slope == 0 or (slope < 0 and s == c):
                return s
            low, high = (s, high) if slope < 0 else (low, s)
            s = self.root_of_piece(s, t)
            if not low < s < high:
                s = (low + high) / 2


def solve_top_k_alpha(
    b: Sequence[Fraction], k: int, c: Fraction, rho: Fraction = Fraction(1)
) -> list[Fraction]:
    """Solve the restricted problem over {0 <= p_j <= sum(p)/k, sum p <= c}."""
    problem = TopKAlpha(b, k, rho)
    s = problem.best_sum(c)
    if s == 0:
        return [ZERO] * len(b)
    return clip_all(b, problem.threshold(s), s / k)


def bounds(loss: str, m: int, c: Fraction, top_k: int | None) -> tuple[Fraction, Fraction]:
    """Return (u, s), the bounds per class and on the sum.

    Where the block set has only one of them, the other is what the first implies.
    """
    if loss == "crammer_singer":
        return c, c
    if loss == "weston_watkins":
        return c, m * c
    assert loss == "top_k_beta" and top_k is not None
    return c / top_k, c


def curvature(loss: str, smoothing: float) -> Fraction:
    """Return g of the conjugate g/(2 c) ||p||^2."""
    return Fraction(1, 2) if loss == "one_vs_rest_squared" else Fraction(float(smoothing))


def solve_exactly(
    loss: str, b, c, top_k: int | None = None, smoothing: float = 0.0, A: float = 1.0
) -> list[Fraction]:
    """Return the exact minimiser of one restricted problem.

    Parameters
    ----------
    loss : str
        One of the five names.
    b : sequence of float
        Entries of the wrong classes (one-vs-rest: of all classes).
    c : float
        The example's weight, positive.
    top_k : int, optional
        Needed by the top-k losses.
    smoothing : float
        Of the hinge losses.
    A : float
        The curvature, which matters where there is a conjugate: g/(2 c A) ||p||^2.
    """
    b = [Fraction(float(value)) for value in b]
    c = Fraction(float(c))
    weight = 1 + curvature(loss, smoothing) / (c * Fraction(float(A)))
    return minimise(loss, [value / weight for value in b], c, top_k, 1 / weight)


def minimise(
    loss: str, b: Sequence[Fraction], c: Fraction, top_k: int | None, rho: Fraction
) -> list[Fraction]:
    """Return the minimiser of 1/2 (||p||^2 + rho (sum p)^2) - b.p over the block set."""
    if loss == "one_vs_rest":
        return clip_all(b, ZERO, c)
    if loss == "one_vs_rest_squared":
        return [max(value, ZERO) for value in b]
    if loss == "top_k_alpha":
        assert top_k is not None
        return solve_top_k_alpha(b, top_k, c, rho)
    return solve_threshold(b, *bounds(loss, len(b), c, top_k), rho)


def solve_to_floats(
    loss: str, b, c, top_k: int | None = None, smoothing: float = 0.0, A: float = 1.0
) -> np.ndarray:
    """Return the exact minimiser, rounded once to float64."""
    if loss == "softmax":
        return solve_softmax(b, c, A)
    if loss == "top_k_entropy":
        assert top_k is not None
        return solve_top_k_entropy(b, c, top_k, A)
    return np.array([float(value) for value in solve_exactly(loss, b, c, top_k, smoothing, A)])


def smooth_value(loss: str, h, top_k: int | None, smoothing: float) -> Fraction:
    """Return max h.q - g/2 ||q||^2 over the block set of c = 1: the loss at h, exactly."""
    g = curvature(loss, smoothing)
    h = [Fraction(float(value)) for value in h]
    q = minimise(loss, [value / g for value in h], Fraction(1), top_k, ZERO)
    return sum((own * (value - g / 2 * own) for own, value in zip(q, h, strict=True)), ZERO)


def support_function(loss: str, h: Sequence[Fraction], c: Fraction, top_k: int | None) -> Fraction:
    """Return max h.p over the block set: c times the loss at h, exactly."""
    positive = sorted((max(value, ZERO) for value in h), reverse=True)
    if loss == "crammer_singer":
        return c * positive[0]
    if loss in ("weston_watkins", "one_vs_rest"):
        return c * sum(positive)
    if loss == "top_k_beta":
        return c * sum(positive[:top_k]) / top_k
    assert loss == "top_k_alpha"
    return c * max(ZERO, sum(sorted(h, reverse=True)[:top_k])) / top_k


def optimality_gap(
    loss: str, b, c, p: Sequence[Fraction], top_k: int | None = None, smoothing: float = 0.0
) -> Fraction:
    """Return max over feasible q of -gradient.(q - p): zero only at the minimiser.

    This does not depend on how p was found: it needs the gradient at p and the maximum of a linear
    function over the block set.
    """
    coupling = ZERO if loss.startswith("one_vs_rest") else sum(p, ZERO)
    weight = 1 + curvature(loss, smoothing) / Fraction(float(c))
    residual = [
        Fraction(float(value)) - weight * own - coupling for value, own in zip(b, p, strict=True)
    ]
    gained = sum((r * own for r, own in zip(residual, p, strict=True)), ZERO)
    if loss == "one_vs_rest_squared":  # p >= 0 is all: no step up may gain, none down where p > 0
        return max(*residual, abs(gained), ZERO)
    return support_function(loss, residual, Fraction(float(c)), top_k) - gained


def infeasibility(loss: str, p, c, top_k: int | None = None) -> Fraction:
    """Return by how much p leaves the block set, exactly, relative to c."""
    p = [value if isinstance(value, Fraction) else Fraction(float(value)) for value in p]
    c = Fraction(float(c))
    total, largest = sum(p, ZERO), max(p)
    excess = [ZERO, -min(p)]
    if loss == "one_vs_rest_squared":
        return max(excess) / c
    if loss in ("weston_watkins", "one_vs_rest"):
        excess.append(largest - c)
    else:
        excess.append(total - c)
    if loss == "top_k_beta":
        excess.append(largest - c / top_k)
    if loss == "top_k_alpha":
        excess.append(largest - total / top_k)
    return max(excess) / c
