"""Writing files so that there never is half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

StrPath = str | os.PathLike[str]


@contextmanager
def replacing(path: StrPath, *, via: StrPath | None = None) -> Iterator[IO[bytes]]:
    """A temporary file in the same folder that takes the name in one step, once it is on disk.

    After an exception, what was there is still there. `via` is the name of the temporary file. None
    is a fresh one: a killed process leaves it behind. With a name that stays the same the next one
    writes over it, but two must not write at a time.
    """
    path = Path(path)
    temporary = fresh_name(path) if via is None else Path(via)
    try:
        with naming(path, temporary):
            with open(temporary, "w+b") as file:
                yield file
                sync(file)
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextmanager
def naming(path: Path, temporary: Path) -> Iterator[None]:
    """Let what the system says of a full disk or a folder name what was to be written.

    It says nothing of the sort, or the name of the temporary file or folder.
    """
    try:
        yield
    except OSError as error:
        found = error.filename
        ours = found is None or str(temporary) in os.fspath(found)
        if error.errno is None or not ours:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def fresh_name(path: Path) -> Path:
    """A hidden name beside a path, which nobody has."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def sync(file: IO[bytes] | IO[str]) -> None:
    """Force what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where the system lets folders be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
