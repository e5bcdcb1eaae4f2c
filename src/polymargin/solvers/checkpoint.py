"""Checkpoint files: the state of a long computation, saved so that nothing can tear it.

A file is one line, ``polymargin checkpoint <version> <digest>``, and a NumPy archive (npz, no
pickles): arrays, and the rest as JSON. It is written beside its place, forced to the disk and then
renamed, so that at any moment the place holds a whole checkpoint or none. The digest covers the
archive. The archive also says what it was made for, hashes of data and parameters, and is refused
for anything else.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

MAGIC = b"polymargin checkpoint "
VERSION = 1
DIGEST_SIZE = 32
HEADER = len(MAGIC) + len(b"0001 ") + 2 * DIGEST_SIZE + 1
REST = "json"  # the member of the archive that is no array

Tree = dict[str, Any]  # of arrays, what JSON has, and further trees


class CheckpointError(ValueError):
    """A checkpoint that is damaged, foreign, or made for something else."""


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

        Parameters
        ----------
        made_for : mapping of str to str
            What the state depends on, by name: each value must be the same when it is read again.

        Raises
        ------
        CheckpointError
            When the file is no checkpoint, damaged, of a later version, or made for anything else.
        """
        return CheckpointFile(self, dict(made_for))


class CheckpointFile:
    """One computation's checkpoint.

    Attributes
    ----------
    saved : dict or None
        What was found, None for a computation that starts afresh. Free it when it is taken over.
    """

    def __init__(self, settings: Checkpoint, made_for: dict[str, str]) -> None:
        self.path = Path(settings.path)
        self._settings = settings
        self._made_for = made_for
        self._temporary = self.path.with_name(self.path.name + ".tmp")
        self._last_time = time.monotonic()
        self.saved = self._read() if self.path.exists() else None
        if self.saved is None and not self.path.parent.is_dir():
            raise CheckpointError(f"The folder of the checkpoint {self.path} does not exist.")

    def due(self, n_passes: int) -> bool:
        """Whether it is time to save, after so many passes in all."""
        every, passes = self._settings.every, self._settings.passes
        if passes is not None and n_passes % passes == 0:
            return True
        return every is not None and time.monotonic() - self._last_time >= every

    def save(self, state: Tree) -> None:
        """Replace the checkpoint by this state: all of it, or nothing."""
        arrays: dict[str, np.ndarray] = {}
        rest = {"made_for": self._made_for, "state": _split(state, "", arrays)}
        arrays[REST] = np.frombuffer(json.dumps(rest).encode(), np.uint8)
        try:
            with open(self._temporary, "w+b") as file:
                file.write(b"\0" * HEADER)
                _write_arrays(file, arrays)
                digest = _digest(file)
                file.seek(0)
                file.write(MAGIC + b"%04d " % VERSION + digest.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._temporary, self.path)
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise
        _sync_folder(self.path.parent)
        self._last_time = time.monotonic()

    def remove(self) -> None:
        """The computation is done."""
        self.path.unlink(missing_ok=True)
        self._temporary.unlink(missing_ok=True)

    def _read(self) -> Tree:
        with open(self.path, "rb") as file:
            self._check_header(file)
            file.seek(HEADER)
            try:
                with np.load(file, allow_pickle=False) as archive:
                    arrays = {name: archive[name] for name in archive.files}
                rest = json.loads(arrays.pop(REST).tobytes())
            except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
                raise CheckpointError(
                    f"The checkpoint {self.path} cannot be read: {error}"
                ) from error
        self._check_made_for(rest["made_for"])
        return _join(rest["state"], "", arrays)

    def _check_header(self, file: BinaryIO) -> None:
        header = file.read(HEADER)
        if not header.startswith(MAGIC):
            raise CheckpointError(
                f"{self.path} is not a checkpoint of polymargin: it was left as it is. Give "
                "another path, or remove it."
            )
        version = header[len(MAGIC) :].split(b" ")[0]
        if version.isdigit() and int(version) > VERSION:
            raise CheckpointError(
                f"The checkpoint {self.path} has format {int(version)}, but this version of "
                f"polymargin knows formats up to {VERSION}: update polymargin, or remove the file "
                "to start afresh."
            )
        if header[:-1].split(b" ")[-1] != _digest(file).encode():
            raise CheckpointError(
                f"The checkpoint {self.path} is damaged or truncated: remove it to start afresh."
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


def _write_arrays(file: BinaryIO, arrays: dict[str, np.ndarray]) -> None:
    """As `numpy.savez`, which cannot be told in all versions that no pickles are wanted."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _digest(file: BinaryIO) -> str:
    """The hash of what follows the header."""
    file.seek(HEADER)
    total = hashlib.blake2b(digest_size=DIGEST_SIZE)
    while block := file.read(1 << 20):
        total.update(block)
    return total.hexdigest()


def _split(tree: Tree, prefix: str, arrays: dict[str, np.ndarray]) -> Tree:
    """The tree without its arrays, which go to ``arrays`` under their paths."""
    rest: Tree = {}
    for name, value in tree.items():
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}{name}"] = value
        elif isinstance(value, dict):
            rest[name] = _split(value, f"{prefix}{name}/", arrays)
        else:
            rest[name] = value.item() if isinstance(value, np.generic) else value
    return rest


def _join(rest: Tree, prefix: str, arrays: dict[str, np.ndarray]) -> Tree:
    """The inverse of `_split`."""
    tree: Tree = {}
    for name, value in rest.items():
        is_tree = isinstance(value, dict)
        tree[name] = _join(value, f"{prefix}{name}/", arrays) if is_tree else value
    for path, array in arrays.items():
        folder, _, name = path.rpartition("/")
        if folder == prefix.rstrip("/"):
            tree[name] = array
    return tree


def _sync_folder(folder: Path) -> None:
    """Make a rename last, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
