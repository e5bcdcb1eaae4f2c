"""scikit-learn's LinearSVC with Crammer and Singer's loss."""

from typing import Any

from benchmarks.solvers_bench.base import EstimatorSolver


class Solver(EstimatorSolver):
    """Its `tol` is LIBLINEAR's, an older version of which is inside."""

    name = "LinearSVC crammer_singer"
    package, module = "scikit-learn", "sklearn.svm"
    objectives = ("crammer_singer",)
    grid = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from sklearn.svm import LinearSVC

        return LinearSVC(
            multi_class="crammer_singer",
            C=self.C,
            tol=setting,
            max_iter=100_000,
            fit_intercept=False,
            random_state=0,
        )
