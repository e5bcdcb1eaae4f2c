"""scikit-learn's LinearSVC, one-vs-rest with the squared hinge."""

from typing import Any

from benchmarks.solvers_bench.base import EstimatorSolver


class Solver(EstimatorSolver):
    """Its `tol` is LIBLINEAR's; the dual method, for which it can be set."""

    name = "LinearSVC squared_hinge"
    package, module = "scikit-learn", "sklearn.svm"
    objectives = ("squared_hinge",)
    grid = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from sklearn.svm import LinearSVC

        return LinearSVC(
            loss="squared_hinge",
            dual=True,
            C=self.C,
            tol=setting,
            max_iter=100_000,
            fit_intercept=False,
            random_state=0,
        )
