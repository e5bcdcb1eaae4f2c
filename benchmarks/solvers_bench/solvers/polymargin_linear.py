"""polymargin's LinearMulticlassSVC: each loss, both precisions, one and two threads."""

from typing import Any, ClassVar

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.solvers_bench.base import EstimatorSolver
from benchmarks.solvers_bench.objective import Objective


class Solver(EstimatorSolver):
    """Settings are relative duality gaps, the certificate is part of the time."""

    name = "polymargin"
    package = module = "polymargin"
    is_ours = True
    objectives = ("crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest")
    variants: ClassVar = {"dtype": ("float64", "float32"), "threads": (1, 2)}

    def set_objective(self, data: Dataset, C: float, objective: Objective) -> None:
        """Cast the features."""
        super().set_objective(data, C, objective)
        self.X = data.X_train.astype(self.dtype)

    def make(self, setting: float) -> Any:
        """Build the classifier."""
        from polymargin import LinearMulticlassSVC

        return LinearMulticlassSVC(
            loss=self.objective.loss,
            top_k=self.objective.k(self.n_classes),
            C=self.C,
            tol=setting,
            max_iter=100_000,
            fit_intercept=False,
            random_state=0,
            n_jobs=self.threads,
        )

    def get_result(self) -> dict[str, Any]:
        """Give the certificate and how it was reached as well."""
        seen = self.estimator.history_
        certified = np.isfinite(seen["gap"])
        history = {key: seen[key][certified].tolist() for key in ("time", "gap")}
        return {
            "coef": self.estimator.coef_,
            "gap": float(self.estimator.dual_gap_),
            "passes": int(self.estimator.n_iter_),
            "history": history,
        }
