"""snapml's SupportVectorMachine: one-vs-rest with the hinge loss, on one thread."""

from typing import Any

from benchmarks.solvers_bench.base import TOLERANCES, EstimatorSolver


class Solver(EstimatorSolver):
    """Its `tol` bounds the change of the weights; it computes in float32."""

    name = "snapml SVM"
    package = module = "snapml"
    objectives = ("one_vs_rest",)
    grid = (*TOLERANCES, 1e-5, 1e-6)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from snapml import SupportVectorMachine

        return SupportVectorMachine(
            regularizer=1.0 / self.C, tol=setting, max_iter=10_000, n_jobs=1, random_state=0
        )
