"""Kernel machines that learn on the way: the multiclass perceptron and MIRA, with averages.

Both look at the examples in random order and add ``a`` to the coefficients of the one they see.
The perceptron (Freund and Schapire 1999, Collins 2002): 1 for its class and -1 for the predicted
one, if that is another. MIRA (Crammer and Singer 2003): the smallest change that does it,

    min 1/2 |W + phi(x) a^T|^2 over a_m <= [m = y], sum a = 0,   with a margin of one

as in `mira`. Kernel values are counted as if each were kept for good: what is counted are the
pairs of an example that is seen and a support pattern there was not when it was seen last.
"""

from __future__ import annotations

import numpy as np

from benchmarks.baselines.compiled import block_step
from polymargin.kernel_functions import KernelFunction
from polymargin.solvers.kernel_scores import kernel_scores


class _Online:
    """What both share; a subclass says how an example changes the coefficients.

    Attributes
    ----------
    support : list of int
        The support patterns, in the order in which they came.
    n_kernels, n_argmax : int
        Distinct pairs that were asked for, examples seen.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, kernel: KernelFunction, seed: int = 0) -> None:
        self.X, self.y, self.kernel = X, y, kernel
        self.rng = np.random.default_rng(seed)
        n, n_classes = len(y), int(y.max()) + 1
        self.squares = kernel.diagonal(X)
        self.slot = np.full(n, -1)
        self.support: list[int] = []
        self.rows = np.empty(X.shape, X.dtype)  # of the support patterns
        self.beta = np.zeros((n_classes, n), np.float32)  # by slot
        self.sums = np.zeros_like(self.beta)  # of t * change, for the average
        self.seen = np.zeros(n, np.int64)  # support patterns at the last visit
        self.n_argmax = 0

    def epoch(self) -> None:
        """One pass in random order."""
        for i in self.rng.permutation(len(self.y)):
            m = len(self.support)
            k = self.kernel.block(self.X[i : i + 1], self.rows[:m])[0]
            change = self._change(i, self.beta[:, :m] @ k)
            self.seen[i] = m
            self.n_argmax += 1
            if change.any():
                self._add(i, change)

    def _change(self, i: int, scores: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _add(self, i: int, change: np.ndarray) -> None:
        if self.slot[i] < 0:
            self.slot[i] = len(self.support)
            self.rows[self.slot[i]] = self.X[i]
            self.support.append(int(i))
        self.beta[:, self.slot[i]] += change
        self.sums[:, self.slot[i]] += self.n_argmax * change

    def error(self, X: np.ndarray, y: np.ndarray, *, average: bool = True) -> float:
        """Error in percent, of the average of all machines so far or of the last one."""
        m = len(self.support)
        beta = self.beta[:, :m]
        if average:
            beta = beta - self.sums[:, :m] / (self.n_argmax + 1)
        scores = kernel_scores(self.kernel, X, self.rows[:m], np.ascontiguousarray(beta))
        return 100 * float(np.mean(scores.argmax(axis=1) != y))

    @property
    def n_kernels(self) -> int:
        """Distinct pairs that were asked for."""
        return int(self.seen.sum())


class KernelPerceptron(_Online):
    """The averaged multiclass perceptron."""

    def _change(self, i: int, scores: np.ndarray) -> np.ndarray:
        change = np.zeros(len(scores))
        change[self.y[i]] += 1.0
        change[scores.argmax()] -= 1.0
        return change


class KernelMira(_Online):
    """MIRA, the margin infused relaxed algorithm."""

    def _change(self, i: int, scores: np.ndarray) -> np.ndarray:
        if self.squares[i] == 0:
            return np.zeros(len(scores))
        b = (1.0 + scores - scores[self.y[i]]) / self.squares[i]
        b[self.y[i]] = 0.0
        change = -block_step(b.astype(np.float64), 1.0)
        change[self.y[i]] = -change.sum()
        return change
