"""scikit-learn's SVC (LIBSVM, one-vs-one) with an RBF kernel."""

from typing import Any

from benchmarks.solvers_bench.base import EstimatorSolver


class Solver(EstimatorSolver):
    """Settings are its `tol`."""

    name = "SVC"
    package, module = "scikit-learn", "sklearn.svm"
    objectives = ("rbf_kernel",)
    grid = (1e-1, 1e-2, 1e-3)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from sklearn.svm import SVC

        return SVC(C=self.C, gamma="scale", tol=setting, cache_size=200)

    def get_result(self) -> dict[str, Any]:
        """Give the number of support vectors; there is no weight per class."""
        return {"support": len(self.estimator.support_)}

    def predict(self, X: Any) -> Any:
        """Predict class codes."""
        return self.estimator.predict(X)
