"""Solvers: they take a problem and return a certified solution."""

from polymargin.solvers.checkpoint import Checkpoint, CheckpointError
from polymargin.solvers.dual import DualSolver
from polymargin.solvers.kernel import KernelSolver
from polymargin.solvers.progress import watching
from polymargin.solvers.solution import Solution
from polymargin.solvers.stopping import CertifiedGap, LargestViolation, Status, StoppingRule
from polymargin.solvers.stream import StreamSolver

__all__ = [
    "CertifiedGap",
    "Checkpoint",
    "CheckpointError",
    "DualSolver",
    "KernelSolver",
    "LargestViolation",
    "Solution",
    "Status",
    "StoppingRule",
    "StreamSolver",
    "watching",
]
