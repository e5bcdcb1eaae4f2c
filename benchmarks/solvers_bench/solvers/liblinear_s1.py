"""LIBLINEAR ``-s 1``: one-vs-rest, squared hinge loss."""

from benchmarks.solvers_bench.liblinear import LiblinearSolver


class Solver(LiblinearSolver):
    """Settings are its ``-e``."""

    name = "LIBLINEAR -s 1"
    formulation = 1
    objectives = ("squared_hinge",)
