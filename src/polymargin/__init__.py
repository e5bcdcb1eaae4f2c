"""polymargin: multiclass support vector machines, solved exactly, with a certificate."""

from polymargin import costs, export, io, projections
from polymargin.core import instruction_set
from polymargin.displays import (
    ConfusedPairsDisplay,
    ConvergenceDisplay,
    RegularizationPathDisplay,
)
from polymargin.estimators import (
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
)
from polymargin.estimators.path import RegularizationPath, regularization_path
from polymargin.installation import show_versions
from polymargin.io import load, save
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
from polymargin.version import __version__

__all__ = [
    "LOSSES",
    "Checkpoint",
    "CheckpointError",
    "ConfusedPairsDisplay",
    "ConvergenceDisplay",
    "DualSolver",
    "KernelMulticlassSVC",
    "KernelMulticlassSVCCV",
    "KernelSolver",
    "LaRankClassifier",
    "LinearMulticlassSVC",
    "LinearMulticlassSVCCV",
    "Loss",
    "Problem",
    "RegularizationPath",
    "RegularizationPathDisplay",
    "Solution",
    "StreamSolver",
    "__version__",
    "costs",
    "export",
    "get_loss",
    "instruction_set",
    "io",
    "load",
    "projections",
    "regularization_path",
    "save",
    "show_versions",
]
