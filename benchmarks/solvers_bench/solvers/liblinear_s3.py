"""LIBLINEAR ``-s 3``: one-vs-rest, hinge loss."""

from benchmarks.solvers_bench.liblinear import LiblinearSolver


class Solver(LiblinearSolver):
    """Settings are its ``-e``."""

    name = "LIBLINEAR -s 3"
    formulation = 3
    objectives = ("one_vs_rest",)
