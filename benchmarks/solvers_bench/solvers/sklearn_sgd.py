"""scikit-learn's SGDClassifier: one-vs-rest hinge; ``alpha = 1 / (n C)`` is the same problem."""

from typing import Any

from benchmarks.solvers_bench.base import EPOCHS, EstimatorSolver


class Solver(EstimatorSolver):
    """Settings are epochs; averaged weights, as the method needs for an accurate objective."""

    name = "SGDClassifier"
    package, module = "scikit-learn", "sklearn.linear_model"
    objectives = ("one_vs_rest",)
    setting, grid = "epochs", EPOCHS

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from sklearn.linear_model import SGDClassifier

        return SGDClassifier(
            loss="hinge",
            alpha=1.0 / (self.X.shape[0] * self.C),
            fit_intercept=False,
            max_iter=int(setting),
            tol=None,
            average=True,
            random_state=0,
        )
