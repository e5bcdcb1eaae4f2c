"""What the three LIBLINEAR solvers share: data in its own format, its ``train`` alone timed."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.datasets import Dataset
from benchmarks.solvers_bench.base import BaseSolver
from benchmarks.solvers_bench.objective import Objective


class LiblinearSolver(BaseSolver):
    """LIBLINEAR through ``liblinear-official``; `formulation` is its ``-s``."""

    package, module = "liblinear-official", "liblinear.liblinear"
    setting = "eps"
    grid = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
    formulation: ClassVar[int]

    def set_objective(self, data: Dataset, C: float, objective: Objective) -> None:
        """Convert to LIBLINEAR's nodes."""
        from benchmarks.peers import liblinear_problem

        super().set_objective(data, C, objective)
        self.problem = liblinear_problem(data.X_train, data.y_train)

    def run(self, setting: float) -> None:
        """Train."""
        from benchmarks.peers import fit_liblinear

        self.fitted = fit_liblinear(self.problem, self.C, setting, self.formulation)

    def get_result(self) -> dict[str, Any]:
        """Give the weights."""
        return {"coef": self.fitted.coef}
