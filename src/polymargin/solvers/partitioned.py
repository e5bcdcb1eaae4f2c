"""Linear problems whose examples are in partitions: rounds until the duality gap is certified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from polymargin.arrays import Doubles, Floats
from polymargin.core import instruction_set
from polymargin.solvers.checkpoint import Checkpoint
from polymargin.solvers.engines.newton_rounds import NewtonRounds
from polymargin.solvers.engines.part import Common, HeldDual
from polymargin.solvers.engines.partitions import (
    PartitionEngine,
    Partitions,
    initial_kappa,
    local_constant,
)
from polymargin.solvers.progress import Progress
from polymargin.solvers.run import Clock
from polymargin.solvers.solution import Outcome, feasible_block
from polymargin.solvers.stopping import Status
from polymargin.storage import digest_of
from polymargin.version import __version__

if TYPE_CHECKING:
    from polymargin.losses import Loss
    from polymargin.solvers.dual import DualSolver


@dataclass(frozen=True)
class Strengths:
    """The proximal strengths of a problem, by its partitions."""

    n_busy: int  # partitions that have examples
    kappa: float
    constant: float  # of the constant feature in local passes; 0 without an intercept
    mean_square: float  # of the rows
    newton: bool  # whether Newton rounds are made, which need none of the others

    @staticmethod
    def of(
        common: Common, *, n_busy: int, per_class: float, mean_square: float, newton: bool
    ) -> Strengths:
        """For this many examples per class, of rows with this mean of ``||x||^2``."""
        if common.settings.newton is True and not newton:
            raise ValueError(
                "newton=True needs dense partitions of few features, and a hinge loss without "
                'smoothing: use newton="auto".'
            )
        choice, scaling = common.settings.acceleration, common.intercept_scaling
        auto = choice == "auto" or choice is True
        kappa = initial_kappa(n_busy) if auto else float(choice)
        constant = local_constant(scaling, kappa, n_busy, per_class, mean_square)
        if newton:
            constant, mean_square = scaling, mean_square + scaling**2
        return Strengths(n_busy, kappa, constant, mean_square, newton)


@dataclass(kw_only=True)
class PartitionedSolution(Outcome):
    """A linear model and its certificate; the dual stays with the partitions.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
    intercept : ndarray of shape (n_classes,)
    duals : list of csr_array or None
        Rows ``a_i`` of the dual of each partition, where they were asked for.
    loss : Loss
    held : list of HeldDual or None
        What another fit needs to begin from here, where that was asked for.
    """

    coef: Floats
    intercept: Floats
    duals: list[sparse.csr_array] | None = field(repr=False)
    loss: Loss
    held: list[HeldDual] | None = field(repr=False)

    def dual_coef(self) -> sparse.csr_array:
        """Rows ``a_i`` of the dual, (n, n_classes), in the order of the partitions."""
        assert self.duals is not None
        return sparse.vstack(self.duals, format="csr")


def duals_for(
    parts: Partitions, common: Common, solution: PartitionedSolution
) -> list[sparse.csr_array] | None:
    """The dual of a solution, feasible for these partitions; None where it means nothing there."""
    held = solution.held
    if held is None or solution.loss != common.loss or len(held) != parts.n:
        return None
    duals = []
    for one, (y, c) in zip(held, parts.call("task"), strict=True):
        if one.block.shape != (len(y), common.n_classes) or not np.array_equal(one.y, y):
            return None
        duals.append(feasible_block(c, one.block, one.c).astype(common.dtype))
    return duals


def check_settings(settings: DualSolver, loss: Loss) -> None:
    """Raise ``ValueError`` for what rounds cannot do."""
    loss.check_restricted(settings.restricted, settings.restricted_tol)
    if settings.schedule != "auto":
        raise ValueError('Partitioned data need schedule="auto".')
    if settings.stopping is not None and settings.stopping.needs_violation:
        raise ValueError(f"{settings.stopping!r} cannot stop rounds: leave stopping out.")


def solve_partitions(
    parts: Partitions,
    common: Common,
    strengths: Strengths,
    *,
    tol: float,
    max_iter: int,
    verbose: int = 0,
    keep_dual: bool = False,
    start: list[sparse.csr_array] | None = None,
    hold_dual: bool = False,
    random_state: int | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> PartitionedSolution:
    """Rounds of `parts` until a relative duality gap of `tol`; as `DualSolver.solve`.

    `start` is a dual to begin from; with `hold_dual` the solution has what the next one needs.
    """
    clock, settings = Clock(), common.settings
    file = None
    if checkpoint is not None:
        file = checkpoint.open(_dependencies(parts, common, strengths, tol, random_state))
    engine = _engine(parts, common, strengths, keep_dual=keep_dual)
    if start is not None:
        engine.start(start)
    run = settings._run(engine, tol, max_iter, clock, step="round", verbose=verbose)
    run.loop(progress, file)
    certificate, model = run.result()
    done = run.status is Status.UNCERTIFIED and run.n_iter >= max_iter
    if file is not None and (done or run.has_converged):
        file.remove()
    W = model.weights[:, : common.n_classes]
    intercept: Doubles | Floats = np.zeros(common.n_classes, W.dtype)
    if common.intercept_scaling:
        intercept = W[-1] * W.dtype.type(common.intercept_scaling)
    return PartitionedSolution(
        coef=np.array(W[: common.n_features].T, order="C"),
        intercept=intercept,
        certificate=certificate,
        n_iter=run.n_iter,
        history=run.history.arrays(),
        status=run.status,
        duals=model.dual,
        loss=common.loss,
        held=parts.call("held_dual") if hold_dual else None,
    )


def _engine(
    parts: Partitions, common: Common, strengths: Strengths, *, keep_dual: bool
) -> PartitionEngine:
    n_busy = strengths.n_busy
    if strengths.newton:
        return NewtonRounds(parts, common, n_busy, strengths.mean_square, keep_dual=keep_dual)
    return PartitionEngine(parts, common, strengths.kappa, n_busy, keep_dual=keep_dual)


def _dependencies(
    parts: Partitions, common: Common, strengths: Strengths, tol: float, random_state: int | None
) -> dict[str, str]:
    """What a checkpoint must agree in; the limits of rounds and time, and the workers, need not."""
    chosen = {k: v for k, v in common.settings.get_params().items() if k != "time_limit"}
    return {
        "the partitions (data, labels, weights or C)": digest_of(*parts.call("digest")),
        "loss": repr(common.loss),
        "cost_matrix": repr(common.loss.margins),
        "classes": repr(common.n_classes),
        "intercept": repr(common.intercept_scaling),
        "strengths": repr(strengths),
        "tol": repr(tol),
        "solver": repr(sorted(chosen.items())),
        "random_state": repr(random_state),
        "version of polymargin": __version__,
        "instruction set": instruction_set,
    }
