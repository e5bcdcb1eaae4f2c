"""Plain stochastic subgradient steps on multi-margin losses in NumPy: what one writes by hand.

Pegasos on batches: ``lambda = 1 / (n C)``, steps ``1 / (lambda (t + t0))``, weights averaged over
the last half. ``t0`` makes the first step one over the mean squared norm of a row.
"""

from typing import Any

import numpy as np

from benchmarks.solvers_bench.base import EPOCHS, BaseSolver

BATCH = 32


def subgradient(margins: np.ndarray, codes: np.ndarray, loss: str, top_k: int) -> np.ndarray:
    """With respect to the scores; `margins` are ``1 + s_j - s_y``, the true class's is ignored."""
    at = np.arange(codes.size)
    margins[at, codes] = -np.inf
    if loss == "weston_watkins":
        gradient = (margins > 0).astype(margins.dtype)
    else:
        k = top_k if loss.startswith("top_k") else 1
        largest = np.argpartition(margins, -k, axis=1)[:, -k:]
        values = np.take_along_axis(margins, largest, axis=1)
        counts = values if loss == "top_k_beta" else values.mean(axis=1, keepdims=True)
        gradient = np.zeros_like(margins)
        np.put_along_axis(gradient, largest, (counts > 0) / k, axis=1)
    gradient[at, codes] = -gradient.sum(axis=1)
    return gradient


class Solver(BaseSolver):
    """Settings are epochs."""

    name = "NumPy SGD"
    package, module = "numpy", "numpy"
    objectives = ("crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta")
    setting, grid = "epochs", EPOCHS

    def run(self, setting: float) -> None:
        """Train."""
        X, y, n = self.X, self.y, self.X.shape[0]
        rng, top_k = np.random.default_rng(0), self.objective.k(self.n_classes) or 1
        decay = 1.0 / (n * self.C)
        t0 = float((X.multiply(X) if hasattr(X, "multiply") else X * X).sum() / n) / decay
        W = np.zeros((X.shape[1], self.n_classes))
        mean, averaged, t = np.zeros_like(W), 0, 0
        steps = int(setting) * -(-n // BATCH)
        for _ in range(int(setting)):
            order = rng.permutation(n)
            for start in range(0, n, BATCH):
                rows = order[start : start + BATCH]
                x, codes = X[rows], y[rows]
                scores = np.asarray(x @ W)
                margins = 1.0 + scores - scores[np.arange(rows.size), codes][:, None]
                gradient = subgradient(margins, codes, self.objective.loss, top_k)
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
