"""scikit-learn's LogisticRegression (L-BFGS, softmax): another objective, for the accuracy."""

from typing import Any

from benchmarks.solvers_bench.base import EstimatorSolver


class Solver(EstimatorSolver):
    """Settings are its `tol`."""

    name = "LogisticRegression"
    package, module = "scikit-learn", "sklearn.linear_model"
    objectives = ("logistic",)
    grid = (1e-1, 1e-2, 1e-3)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=self.C, tol=setting, max_iter=10_000, fit_intercept=False)
