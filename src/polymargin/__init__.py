"""polymargin: multiclass support vector machines, solved exactly, with a certificate.

What is here is imported when it is used: ``polymargin --version`` needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from polymargin.version import __version__

if TYPE_CHECKING:
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
    from polymargin.estimators.top_k import predict_top_k
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
    "predict_top_k",
    "projections",
    "regularization_path",
    "save",
    "show_versions",
]

# which module has what; the modules themselves are attributes, too
_HOMES = {
    "core": ["instruction_set"],
    "displays": ["ConfusedPairsDisplay", "ConvergenceDisplay", "RegularizationPathDisplay"],
    "estimators": [
        "KernelMulticlassSVC",
        "KernelMulticlassSVCCV",
        "LaRankClassifier",
        "LinearMulticlassSVC",
        "LinearMulticlassSVCCV",
    ],
    "estimators.path": ["RegularizationPath", "regularization_path"],
    "estimators.top_k": ["predict_top_k"],
    "installation": ["show_versions"],
    "io": ["load", "save"],
    "losses": ["LOSSES", "Loss", "get_loss"],
    "problem": ["Problem"],
    "solvers": [
        "Checkpoint",
        "CheckpointError",
        "DualSolver",
        "KernelSolver",
        "Solution",
        "StreamSolver",
    ],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = (
    "arrays",
    "core",
    "costs",
    "data",
    "displays",
    "estimators",
    "evaluation",
    "export",
    "files",
    "fitted",
    "installation",
    "io",
    "kernel_functions",
    "losses",
    "models",
    "problem",
    "projections",
    "report",
    "solvers",
    "storage",
    "tables",
)

if not TYPE_CHECKING:  # which would take every name for one that exists

    def __getattr__(name):
        """Import what is asked for, and keep it."""
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
