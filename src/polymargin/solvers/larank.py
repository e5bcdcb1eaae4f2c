"""LaRank (Bordes, Bottou, Gallinari and Weston 2007) on a batch: epochs until a rule is met.

What happens within an epoch, the operations and the schedule that picks them, is in
``src/core/larank/``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from polymargin.arrays import Indices
from polymargin.problem import KernelProblem
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.engines.larank import LaRankEngine
from polymargin.solvers.engines.machine import LaRank
from polymargin.solvers.progress import Progress
from polymargin.solvers.run import Clock, Run
from polymargin.solvers.solution import Outcome
from polymargin.solvers.stopping import CertifiedGap, StoppingRule


@dataclass(kw_only=True)
class LaRankSolution(Outcome):
    """A machine that has learned a batch."""

    machine: LaRank = field(repr=False)
    n_gap_evaluations: int  # kernel values computed for certificates

    @property
    def dual(self) -> float:
        """The dual objective; without a certificate, that of the gradients training keeps."""
        certified = self.certificate.dual
        return certified if math.isfinite(certified) else self.machine.dual


def solve_larank(
    machine: LaRank,
    problem: KernelProblem,
    orders: Iterator[Indices],
    *,
    rule: StoppingRule | None,
    max_epochs: int,
    threads: int = 1,
    verbose: int = 0,
    progress: Progress | None = None,
) -> LaRankSolution:
    """Let a new machine learn a batch, in `orders`, one per epoch.

    Without a rule it stops after `max_epochs` without a certificate; so it does on Ctrl-C, with
    status ``"interrupted"``. `threads` are those of the scores for certificates.
    """
    engine = LaRankEngine(machine, problem, orders, keep_rows=max_epochs > 1, threads=threads)
    run: Run[LaRank] = Run(
        engine,
        CertifiedGap(0.0) if rule is None else rule,
        max_iter=max_epochs,
        time_limit=None,
        certify=rule is not None,
        tol=rule.tol if isinstance(rule, CertifiedGap) else 0.0,
        clock=Clock(),
        step="epoch",
        verbose=verbose,
    )
    try:
        machine.work_on(problem.kernel.X, problem.n_classes, lambda: run.loop(progress))
    finally:
        machine.clear_cache()  # a fitted model is not to hold cache_size megabytes
    return LaRankSolution(
        certificate=engine.known or Certificate(math.nan, math.nan),
        n_iter=run.n_iter,
        history=run.history.arrays(),
        status=run.status,
        machine=machine,
        n_gap_evaluations=engine.n_gap_evaluations,
    )
