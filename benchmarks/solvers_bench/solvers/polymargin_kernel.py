"""polymargin's KernelMulticlassSVC (Crammer-Singer) with an RBF kernel."""

from typing import Any

from benchmarks.solvers_bench.base import EstimatorSolver


class Solver(EstimatorSolver):
    """Settings are relative duality gaps."""

    name = "polymargin kernel"
    package = module = "polymargin"
    is_ours = True
    objectives = ("rbf_kernel",)
    grid = (1e-1, 1e-2, 1e-3)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from polymargin import KernelMulticlassSVC

        return KernelMulticlassSVC(C=self.C, gamma="scale", tol=setting, random_state=0)

    def get_result(self) -> dict[str, Any]:
        """Give the certificate; there is no weight per class."""
        return {"gap": float(self.estimator.dual_gap_), "support": len(self.estimator.support_)}

    def predict(self, X: Any) -> Any:
        """Predict class codes."""
        return self.estimator.predict(X)
