"""lightning's LinearSVC (sklearn-contrib-lightning): one-vs-rest hinge, dual coordinate descent."""

from typing import Any

from benchmarks.solvers_bench.base import EstimatorSolver


class Solver(EstimatorSolver):
    """Settings are its `tol`."""

    name = "lightning LinearSVC"
    package, module = "sklearn-contrib-lightning", "lightning.classification"
    objectives = ("one_vs_rest",)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from lightning.classification import LinearSVC

        return LinearSVC(loss="hinge", C=self.C, tol=setting, max_iter=10_000, random_state=0)
