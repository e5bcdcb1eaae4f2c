"""The checkpoint of a path over C: the solutions found so far, and the run at the next C."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from polymargin.problem import Problem
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import CheckpointFile, Tree
from polymargin.solvers.solution import Solution
from polymargin.solvers.status import Status

PLAIN = ("coef", "intercept", "primal", "dual", "n_iter", "status", "history")
PARTS = ("data", "indices", "indptr")


class PathFile:
    """A :class:`CheckpointFile` with the solutions of a path in it.

    Attributes
    ----------
    state : dict or None
        The run that was saved, at the C after those in `found`.
    """

    def __init__(self, file: CheckpointFile) -> None:
        self._file = file
        saved, file.saved = file.saved or {"found": {}, "run": None}, None
        self._found: list[Tree] = [saved["found"][str(i)] for i in range(len(saved["found"]))]
        self.state: Tree | None = saved["run"]

    def found(self, i: int, problem: Problem) -> Solution | None:
        """The solution of the ``i``-th C, if it was found before."""
        return _solution(self._found[i], problem) if i < len(self._found) else None

    def add(self, solution: Solution) -> None:
        """Keep a solution; it is on disk with the next state that is saved."""
        tree = {name: getattr(solution, name) for name in PLAIN}
        self._found.append(
            tree | {"block": {part: getattr(solution.block, part) for part in PARTS}}
        )

    def due(self, n_passes: int) -> bool:
        """Whether it is time to save."""
        return self._file.due(n_passes)

    def save(self, state: Tree) -> None:
        """Save the solutions and the state of a run."""
        found = {str(i): tree for i, tree in enumerate(self._found)}
        self._file.save({"found": found, "run": state})

    def remove(self) -> None:
        """The path is done."""
        self._file.remove()


def _solution(tree: Tree, problem: Problem) -> Solution:
    parts: Any = tuple(tree["block"][part] for part in PARTS)
    shape = (problem.n_examples, problem.n_classes)
    return Solution(
        coef=tree["coef"],
        intercept=tree["intercept"],
        certificate=Certificate(tree["primal"], tree["dual"]),
        n_iter=tree["n_iter"],
        status=Status(tree["status"]),
        history=tree["history"],
        block=sparse.csr_array(parts, shape=shape),
        c=problem.c,
        y=problem.y,
        loss=problem.loss,
    )
