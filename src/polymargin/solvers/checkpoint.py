"""Checkpoint files: the state of a long computation, saved so that nothing can tear it.

A file is an archive of :mod:`polymargin.storage`, written whole or not at all. It also says what it
was made for, hashes of data and parameters, and is refused for anything else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import sparse

from polymargin.core import instruction_set
from polymargin.problem import Problem
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.settings import Settings
from polymargin.solvers.solution import DualSolution, Solution
from polymargin.solvers.stopping import Status
from polymargin.storage import (
    Archive,
    DamagedFileError,
    Decoder,
    Encoder,
    ForeignFileError,
    Format,
    NewerFileError,
    StorageError,
    digest_of,
    write_archive,
)
from polymargin.version import __version__

FORMAT = Format("polymargin-checkpoint", 2)
_FORMAT_1 = b"polymargin checkpoint 0001 "  # how its files began, which were no such archives

Tree = dict[str, Any]  # of arrays, numbers, strings, lists, tuples, CSR arrays and further trees


class CheckpointError(ValueError):
    """A checkpoint that is damaged, foreign, or made for something else.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import CheckpointError, LinearMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.checkpoint")
    ...     _ = open(path, "w").write("something else")
    ...     try:
    ...         LinearMulticlassSVC(checkpoint=path).fit(X, y)
    ...     except CheckpointError:
    ...         print("not a checkpoint")
    not a checkpoint
    """


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to save a long computation.

    Parameters
    ----------
    path : str or path-like
        The file. A fit that finds one there goes on from it; it is removed when the fit is done.
    every : float or None, default=60.0
        Seconds between two checkpoints at least; None: not by time.
    passes : int or None, default=None
        Save after every so many passes as well; None: not by passes.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import Checkpoint, LinearMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(os.path.join(folder, "iris.checkpoint"), every=600.0)
    ...     clf = LinearMulticlassSVC(random_state=0, checkpoint=checkpoint).fit(X, y)
    >>> clf.dual_gap_ <= clf.tol
    True
    """

    path: str | os.PathLike[str]
    every: float | None = 60.0
    passes: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not os.fspath(self.path):
            raise ValueError(f"path must be the name of a file, got {self.path!r}.")
        if self.every is not None and not self.every >= 0:
            raise ValueError(f"every must be a number of seconds or None, got {self.every!r}.")
        if self.passes is not None and not self.passes >= 1:
            raise ValueError(f"passes must be a positive integer or None, got {self.passes!r}.")

    @staticmethod
    def of(place: Checkpoint | str | os.PathLike[str]) -> Checkpoint:
        """A checkpoint at a path, with the default intervals; a checkpoint as it is."""
        return place if isinstance(place, Checkpoint) else Checkpoint(place)

    def open(self, made_for: Mapping[str, str]) -> CheckpointFile:
        """Read what is there, and be ready to save.

        What the state depends on, by name, must be the same when it is read again: else, and for a
        file that is no checkpoint, damaged or of a later version, a `CheckpointError` is raised.
        """
        return CheckpointFile(self, made_for)


class CheckpointFile:
    """One computation's checkpoint; `saved` is what was found, None where it starts afresh."""

    def __init__(self, settings: Checkpoint, made_for: Mapping[str, str]) -> None:
        self.path = Path(settings.path)
        self._settings = settings
        self._made_for = dict(made_for)
        self._temporary = self.path.with_name(self.path.name + ".tmp")
        self._last_time = time.monotonic()
        self._last_passes = 0
        self.saved = self._read() if self.path.exists() else None
        if self.saved is None and not self.path.parent.is_dir():
            raise CheckpointError(f"The folder of the checkpoint {self.path} does not exist.")

    def due(self, n_passes: int) -> bool:
        """Whether it is time to save, after so many passes in all."""
        every, passes = self._settings.every, self._settings.passes
        before, self._last_passes = self._last_passes, n_passes  # a step may count as several
        if passes is not None and n_passes // passes > before // passes:
            return True
        return every is not None and time.monotonic() - self._last_time >= every

    def save(self, state: Tree) -> None:
        """Replace the checkpoint by this state: all of it, or nothing."""
        encoder = Encoder()
        manifest = {"made_for": self._made_for, "state": encoder.encode(state, "the state")}
        write_archive(self.path, FORMAT, manifest, encoder.arrays, via=self._temporary)
        self._last_time = time.monotonic()

    def remove(self) -> None:
        """The computation is done."""
        self.path.unlink(missing_ok=True)
        self._temporary.unlink(missing_ok=True)

    def _read(self) -> Tree:
        try:
            with Archive(self.path, FORMAT) as archive:
                self._check_made_for(archive.manifest["made_for"])
                state: Tree = Decoder(archive.array).decode(archive.manifest["state"])
                return state
        except StorageError as error:
            raise CheckpointError(self._what_to_do(error)) from error
        except (CheckpointError, OSError, MemoryError):
            raise
        except Exception as error:  # whatever a manifest leads to that none of ours has written
            what = DamagedFileError(f"{type(error).__name__}: {error}")
            raise CheckpointError(self._what_to_do(what)) from error

    def _what_to_do(self, error: StorageError) -> str:
        if isinstance(error, NewerFileError):
            return (
                f"The checkpoint {self.path} has format {error.found}, but this version of "
                f"polymargin knows formats up to {error.known}: update polymargin, or remove the "
                "file to start afresh."
            )
        if not isinstance(error, ForeignFileError):
            return (
                f"The checkpoint {self.path} is damaged or truncated ({error}): remove it to start "
                "afresh."
            )
        with open(self.path, "rb") as file:
            if file.read(len(_FORMAT_1)) == _FORMAT_1:
                return (
                    f"The checkpoint {self.path} has format 1, of an earlier polymargin: finish "
                    "the fit with that, or remove the file to start afresh."
                )
        return (
            f"{self.path} is not a checkpoint of polymargin: it was left as it is. Give another "
            "path, or remove it."
        )

    def _check_made_for(self, found: dict[str, str]) -> None:
        names = [*self._made_for, *(name for name in found if name not in self._made_for)]
        other = [name for name in names if found.get(name) != self._made_for.get(name)]
        if other:
            raise CheckpointError(
                f"The checkpoint {self.path} was made for something else; these differ: "
                f"{', '.join(other)}. Use the data and the parameters it was made for, or remove "
                "it (or give another path) to start afresh."
            )


KEPT = ("coef", "intercept", "primal", "dual", "n_iter", "history", "block")  # of a solution


class PathFile(CheckpointFile):
    """The checkpoint of a path over C: the solutions found, and `saved`, the run at the next C."""

    def __init__(self, settings: Checkpoint, made_for: Mapping[str, str]) -> None:
        super().__init__(settings, made_for)
        whole: Tree = self.saved or {"found": [], "run": None}
        self._found: list[Tree] = whole["found"]
        self.saved = whole["run"]

    def save(self, state: Tree) -> None:
        """Save the solutions and the state of a run."""
        super().save({"found": self._found, "run": state})

    def found(self, i: int, problem: Problem) -> Solution | None:
        """The solution of the ``i``-th C, if it was found before; what it claims is not checked."""
        if i >= len(self._found):
            return None
        kept = dict(self._found[i])
        kept["block"] = sparse.csr_array(kept["block"])
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


def dependencies(
    problem: Problem,
    settings: Settings,
    tol: float,
    random_state: int | None,
    n_jobs: int,
    *,
    start: DualSolution | None = None,
    length: int | None = None,
) -> dict[str, str]:
    """Everything a run of a linear solver depends on, hashed: a checkpoint is for the same only.

    Left out are the limits of passes and time: a longer run goes through the same states. (Not so
    without certificates, where the number of passes, ``length``, decides how they are made.)
    """
    pb = problem
    warm = "none"
    if start is not None:
        block = start.block
        warm = digest_of(block.data, block.indices, block.indptr, start.c)
    parameters = {k: v for k, v in settings.get_params().items() if k != "time_limit"}
    return {
        "X": pb.rows.digest(),
        "y": digest_of(pb.y, pb.n_classes),
        "C, sample_weight or class_weight": digest_of(pb.c),
        "loss": repr(pb.loss),
        "cost_matrix": repr(pb.loss.margins),
        "intercept": repr(pb.intercept_scaling),
        "tol": repr(tol),
        "solver": repr(sorted(parameters.items())),
        "random_state": repr(random_state),
        "n_jobs": repr(n_jobs),
        "max_iter": repr(length),
        "warm start": warm,
        "version of polymargin": __version__,
        "instruction set": instruction_set,
    }
