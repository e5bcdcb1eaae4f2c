"""What is minimised, and how a model is judged.

Solvers are compared by their primal only where they minimise the same function. The squared hinge
and the logistic loss are other functions, which polymargin does not minimise; a kernel machine's
value needs its kernel. Under these three, models are compared by test accuracy and time alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.objective import primal

TARGETS = (1e-2, 1e-3)  # distances to the optimum, relative, that times are given for


@dataclass(frozen=True)
class Objective:
    """An objective by name; `loss` is None where there is no common primal to compare.

    Attributes
    ----------
    name : str
        As in tables and on the command line.
    loss : str or None
        The loss of ``benchmarks.objective.primal``.
    top_k : int or None
        The k of the top-k losses.
    text : str
        What is minimised, in words.
    """

    name: str
    loss: str | None
    text: str
    top_k: int | None = None

    @property
    def has_primal(self) -> bool:
        """Whether solvers are compared by their primal."""
        return self.loss is not None

    def value(self, data: Dataset, coef: np.ndarray, C: float) -> float | None:
        """Evaluate the primal on the training part, None where there is none to compare."""
        if self.loss is None:
            return None
        top_k = self.k(data.n_classes)
        return primal(data.X_train, data.y_train, coef, C, self.loss, top_k)

    def k(self, n_classes: int) -> int | None:
        """The k of the top-k losses, no more than there are wrong classes; None for the others."""
        return None if self.top_k is None else min(self.top_k, n_classes - 1)


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective("crammer_singer", "crammer_singer", "Crammer-Singer: the worst wrong class"),
        Objective("one_vs_rest", "one_vs_rest", "one-vs-rest: a hinge loss per class"),
        Objective("weston_watkins", "weston_watkins", "Weston-Watkins: every wrong class"),
        Objective("top_k_alpha", "top_k_alpha", "top-k alpha, k = 5 (or all wrong classes)", 5),
        Objective("top_k_beta", "top_k_beta", "top-k beta, k = 5 (or all wrong classes)", 5),
        Objective("squared_hinge", None, "one-vs-rest with the squared hinge: accuracy only"),
        Objective("logistic", None, "the logistic loss: accuracy only"),
        Objective("rbf_kernel", None, "machines with an RBF kernel: accuracy only"),
    )
}
