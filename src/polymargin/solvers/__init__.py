"""Solvers: they take a problem and return a certified solution."""

from polymargin.solvers.dual import DualSolver
from polymargin.solvers.kernel import KernelSolver
from polymargin.solvers.solution import Solution

__all__ = ["DualSolver", "KernelSolver", "Solution"]
