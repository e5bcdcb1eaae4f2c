"""Plain stochastic subgradient steps on the multi-margin loss in NumPy: what one writes by hand.

Pegasos on batches: ``lambda = 1 / (n C)``, steps ``1 / (lambda (t + t0))``, weights averaged over
the last half. ``t0`` makes the first step one over the mean squared norm of a row.
"""

from typing import Any

import numpy as np

from benchmarks.solvers_bench.base import EPOCHS, BaseSolver

BATCH = 32


class Solver(BaseSolver):
    """Settings are epochs."""

    name = "NumPy SGD"
    package, module = "numpy", "numpy"
    objectives = ("crammer_singer",)
    setting, grid = "epochs", EPOCHS

    def run(self, setting: float) -> None:
        """Train."""
        X, y, n = self.X, self.y, self.X.shape[0]
        rng = np.random.default_rng(0)
        decay = 1.0 / (n * self.C)
        t0 = float((X.multiply(X) if hasattr(X, "multiply") else X * X).sum() / n) / decay
        W = np.zeros((X.shape[1], self.n_classes))
        mean, averaged, t = np.zeros_like(W), 0, 0
        steps = int(setting) * -(-n // BATCH)
        for _ in range(int(setting)):
            order = rng.permutation(n)
            for start in range(0, n, BATCH):
                rows = order[start : start + BATCH]
                x, codes, at = X[rows], y[rows], np.arange(rows.size)
                margins = 1.0 + np.asarray(x @ W)
                margins -= (margins[at, codes] - 1.0)[:, None]
                margins[at, codes] = 0.0
                worst = margins.argmax(axis=1)
                gradient = np.zeros((rows.size, self.n_classes))
                gradient[at, worst] += 1.0
                gradient[at, codes] -= 1.0
                t += 1
                step = 1.0 / (decay * (t + t0))
                W *= 1.0 - step * decay
                W -= x.T @ (gradient * (step / rows.size))
                if 2 * t > steps:
                    averaged += 1
                    mean += (W - mean) / averaged
        self.coef = mean.T

    def get_result(self) -> dict[str, Any]:
        """Give the averaged weights."""
        return {"coef": self.coef}
