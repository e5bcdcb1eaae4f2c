"""polymargin: multiclass support vector machines, solved exactly, with a certificate."""

from polymargin import projections
from polymargin._kernels import instruction_set
from polymargin.estimators import KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC
from polymargin.losses import LOSSES, Loss, get_loss
from polymargin.problem import Problem
from polymargin.solvers import (
    Checkpoint,
    CheckpointError,
    DualSolver,
    KernelSolver,
    Solution,
    StreamSolver,
)

__version__ = "0.1.0"

__all__ = [
    "LOSSES",
    "Checkpoint",
    "CheckpointError",
    "DualSolver",
    "KernelMulticlassSVC",
    "KernelSolver",
    "LaRankClassifier",
    "LinearMulticlassSVC",
    "Loss",
    "Problem",
    "Solution",
    "StreamSolver",
    "get_loss",
    "instruction_set",
    "projections",
]
