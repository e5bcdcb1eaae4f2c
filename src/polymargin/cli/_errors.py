"""Exit codes, and errors that carry one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

import click


class Exit(IntEnum):
    """What the exit status of the command says; documented in docs/command_line.md."""

    OK = 0
    FAILED = 1
    USAGE = 2  # click's own
    DATA = 3
    NOT_CONVERGED = 4
    OUTPUT = 5
    INTERRUPTED = 130


class CommandError(click.ClickException):
    """An error that is the user's to solve: a message and an exit code, no traceback."""

    def __init__(self, message: str, code: Exit = Exit.DATA) -> None:
        super().__init__(message)
        self.code = code


UNREADABLE: dict[type[OSError], str] = {
    FileNotFoundError: ": there is no such file",
    IsADirectoryError: " is a directory that `polymargin convert` did not make",
    PermissionError: ": no permission to read it",
}


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what can go wrong with an input file into a clear message."""
    try:
        yield
    except OSError as error:
        what = UNREADABLE.get(type(error), f": {error.strerror or error}")
        raise CommandError(f"{path}{what}") from error
    except (ValueError, EOFError) as error:  # DataFileError and ModelFileError say where
        message = str(error)
        raise CommandError(message if path in message else f"{path}: {message}") from error


@contextmanager
def about(what: str) -> Iterator[None]:
    """Say what it is that the library cannot do something with."""
    try:
        yield
    except ValueError as error:
        raise CommandError(f"{what}: {error}") from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn what can go wrong with an output file into a clear message."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", Exit.OUTPUT) from error


def check_piped(path: str | None) -> None:
    """Refuse to write a file of bytes to a terminal."""
    if path == "-" and sys.stdout.isatty():
        raise CommandError("-o - is for a file or a program behind a pipe, not for a terminal")


def check_output(path: str | None, inputs: tuple[str | None, ...] = ()) -> None:
    """Refuse now what could not be written in an hour, or would overwrite one of the inputs."""
    if path is None or path == "-":
        return
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        raise CommandError(f"{path}: the directory {folder} does not exist", Exit.OUTPUT)
    if target.is_dir():
        raise CommandError(f"{path} is a directory; give the name of a file", Exit.OUTPUT)
    if target.exists() and not target.is_file():
        raise CommandError(f"{path} is no regular file, which could be replaced", Exit.OUTPUT)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{path}: no permission to write into {folder}", Exit.OUTPUT)
    for source in inputs:
        other = None if source in (None, "-") else source
        if other and target.exists() and os.path.exists(other) and target.samefile(other):
            raise CommandError(f"{path} is an input, too: give another name", Exit.USAGE)
