"""What a run depends on, hashed: a checkpoint is for the same only."""

from __future__ import annotations

from polymargin.core import instruction_set
from polymargin.problem import Problem
from polymargin.solvers.settings import Settings
from polymargin.solvers.solution import DualSolution
from polymargin.storage import digest_of
from polymargin.version import __version__


def made_for(
    problem: Problem,
    settings: Settings,
    tol: float,
    random_state: int | None,
    n_jobs: int,
    *,
    start: DualSolution | None = None,
    length: int | None = None,
) -> dict[str, str]:
    """Everything a run depends on, hashed: a checkpoint is for the same only.

    Left out are the limits of passes and time: a longer run goes through the same states. (Not so
    without certificates, where the number of passes, ``length``, decides how they are made.)
    """
    pb = problem
    parameters = {k: v for k, v in settings.get_params().items() if k != "time_limit"}
    return {
        "X": pb.rows.digest(),
        "y": digest_of(pb.y, pb.n_classes),
        "C, sample_weight or class_weight": digest_of(pb.c),
        "loss": repr(pb.loss),
        "intercept": repr(pb.intercept_scaling),
        "tol": repr(tol),
        "solver": repr(sorted(parameters.items())),
        "random_state": repr(random_state),
        "n_jobs": repr(n_jobs),
        "max_iter": repr(length),
        "warm start": _digest_of_start(start),
        "version of polymargin": __version__,
        "instruction set": instruction_set,
    }


def _digest_of_start(start: DualSolution | None) -> str:
    if start is None:
        return "none"
    block = start.block
    return digest_of(block.data, block.indices, block.indptr, start.c)
