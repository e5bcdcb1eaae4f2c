"""Solvers: they take a problem and return a certified solution."""

from polymargin.solvers.dual import DualSolver
from polymargin.solvers.solution import Solution

__all__ = ["DualSolver", "Solution"]
