"""LIBLINEAR ``-s 4``: Crammer-Singer."""

from benchmarks.solvers_bench.liblinear import LiblinearSolver


class Solver(LiblinearSolver):
    """Settings are its ``-e``."""

    name = "LIBLINEAR -s 4"
    formulation = 4
    objectives = ("crammer_singer",)
