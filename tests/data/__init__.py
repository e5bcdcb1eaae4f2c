"""Data as solvers see it."""
