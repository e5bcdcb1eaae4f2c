"""polymargin: multiclass support vector machines, solved exactly, with a certificate."""

from polymargin._kernels import instruction_set
from polymargin.estimators import LaRankClassifier, LinearMulticlassSVC
from polymargin.losses import LOSSES, Loss, get_loss
from polymargin.problem import Problem
from polymargin.solvers import DualSolver, Solution

__version__ = "0.1.0"

__all__ = [
    "LOSSES",
    "DualSolver",
    "LaRankClassifier",
    "LinearMulticlassSVC",
    "Loss",
    "Problem",
    "Solution",
    "get_loss",
    "instruction_set",
]
