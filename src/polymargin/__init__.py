"""polymargin: multiclass support vector machines, solved exactly, with a certificate."""

from polymargin import projections
from polymargin._kernels import instruction_set
from polymargin.displays import RegularizationPathDisplay
from polymargin.estimators import (
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
)
from polymargin.losses import LOSSES, Loss, get_loss
from polymargin.path import RegularizationPath, regularization_path
from polymargin.problem import Problem
from polymargin.solvers import DualSolver, KernelSolver, Solution

__version__ = "0.1.0"

__all__ = [
    "LOSSES",
    "DualSolver",
    "KernelMulticlassSVC",
    "KernelSolver",
    "LaRankClassifier",
    "LinearMulticlassSVC",
    "LinearMulticlassSVCCV",
    "Loss",
    "Problem",
    "RegularizationPath",
    "RegularizationPathDisplay",
    "Solution",
    "get_loss",
    "instruction_set",
    "projections",
    "regularization_path",
]
