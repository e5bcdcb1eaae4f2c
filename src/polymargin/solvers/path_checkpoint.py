"""The checkpoint of a path over C: the solutions found so far, and the run at the next C."""

from __future__ import annotations

from polymargin.problem import Problem
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import CheckpointFile, Tree
from polymargin.solvers.solution import Solution
from polymargin.solvers.status import Status

KEPT = ("coef", "intercept", "primal", "dual", "n_iter", "history", "block")


class PathFile:
    """A :class:`CheckpointFile` with the solutions of a path in it.

    Attributes
    ----------
    state : dict or None
        The run that was saved, at the C after those in `found`.
    """

    def __init__(self, file: CheckpointFile) -> None:
        self._file = file
        saved, file.saved = file.saved or {"found": [], "run": None}, None
        self._found: list[Tree] = saved["found"]
        self.state: Tree | None = saved["run"]

    def found(self, i: int, problem: Problem) -> Solution | None:
        """The solution of the ``i``-th C, if it was found before."""
        if i >= len(self._found):
            return None
        kept = dict(self._found[i])
        return Solution(
            certificate=Certificate(kept.pop("primal"), kept.pop("dual")),
            status=Status(kept.pop("status")),
            **kept,
            c=problem.c,
            y=problem.y,
            loss=problem.loss,
        )

    def add(self, solution: Solution) -> None:
        """Keep a solution; it is on disk with the next state that is saved."""
        kept = {name: getattr(solution, name) for name in KEPT}
        self._found.append(kept | {"status": str(solution.status)})

    def due(self, n_passes: int) -> bool:
        """Whether it is time to save."""
        return self._file.due(n_passes)

    def save(self, state: Tree) -> None:
        """Save the solutions and the state of a run."""
        self._file.save({"found": self._found, "run": state})

    def remove(self) -> None:
        """The path is done."""
        self._file.remove()
