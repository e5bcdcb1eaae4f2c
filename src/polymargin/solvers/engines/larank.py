"""The engine of LaRank: epochs of its machine, and what the model is worth.

The duality gap is

    P - D,   P = 1/2 ||w||^2 + C sum_i max(0, 1 + max_{y != y_i} S(x_i, y) - S(x_i, y_i)),

where D and ||w||^2 come from freshly computed scores, not from the gradients that training keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from polymargin.arrays import Indices
from polymargin.problem import KernelProblem
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.engines.base import Engine, Seen
from polymargin.solvers.engines.machine import LaRank, Model
from polymargin.solvers.kernel_scores import kernel_scores

CERTIFY_ROWS = 4096


class LaRankEngine(Engine[LaRank]):
    """Epochs over the examples of a kernel problem, which the machine has been lent.

    The problem is Crammer-Singer's, with the same cost for all examples. `orders` gives the order
    of every epoch; `keep_rows`: kernel values of examples that are no support patterns may be kept,
    of use when there is a next epoch; `threads` are those of the scores for certificates.
    """

    last_is_best = True
    known: Certificate | None = None  # that of the machine as it is

    def __init__(
        self,
        machine: LaRank,
        problem: KernelProblem,
        orders: Iterator[Indices],
        *,
        keep_rows: bool,
        threads: int,
    ) -> None:
        self.machine = machine
        self.problem = problem
        self.n_gap_evaluations = 0  # kernel values computed for certificates
        self._orders = orders
        self._keep_rows = keep_rows
        self._threads = threads

    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """One epoch; examples whose steps stay below tau add at most ``n C tau`` to the gap."""
        n = self.problem.n_examples
        bound = math.inf if goal == math.inf else 0.5 * goal / (n * self.machine.settings.C)
        order = next(self._orders)
        self.known = None
        self.machine.epoch(order, self.problem.y[order], bound, self._keep_rows)
        found = f"{self.machine.n_patterns} support patterns, dual {self.machine.dual:.6g}"
        return Seen(n, dual=self.machine.dual, note=found)

    def certify(self) -> Certificate:
        """Both objectives, over the batch that holds all support patterns."""
        pb, model = self.problem, self.machine.model()
        of_example = np.full(pb.n_examples, -1)
        of_example[model.examples] = np.arange(len(model.examples))
        self.n_gap_evaluations += pb.n_examples * len(model.examples)
        X, function = pb.kernel.X, pb.kernel.function
        support = None if function is None else self.machine.vectors()
        loss = squared_norm = 0.0
        for start in range(0, pb.n_examples, CERTIFY_ROWS):
            rows = slice(start, min(start + CERTIFY_ROWS, pb.n_examples))
            part = X[rows] if function is not None else X[rows][:, model.examples]
            S = kernel_scores(function, part, support, model.beta, self._threads)
            S = np.asarray(S, dtype=np.float64)
            slots = of_example[rows]
            own = slots >= 0
            squared_norm += float(np.sum(model.beta.T[slots[own]] * S[own]))
            loss += float(pb.loss.value(S, pb.y[rows]).sum())
        dual = self._gained(model) - 0.5 * squared_norm
        self.known = Certificate(0.5 * squared_norm + self.machine.settings.C * loss, dual)
        return self.known

    def _gained(self, model: Model) -> float:
        """``sum_i sum_y Delta(y_i, y) p_i^y``, where ``p = -beta`` of the wrong classes."""
        margins = self.problem.loss.margins
        if margins is None:
            return float(np.maximum(model.beta, 0.0).sum())
        return -float(np.sum(margins.delta[model.y].T * model.beta))

    def model(self, *, copy: bool) -> LaRank:
        """The machine itself: it goes on learning."""
        return self.machine
