"""Files of bytes on standard output."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from polymargin.storage import TemporaryFolder


@contextmanager
def file_or_pipe(path: str) -> Iterator[str]:
    """A file to write; for "-" one that goes to standard output when it is complete."""
    if path != "-":
        yield path
        return
    with TemporaryFolder() as folder:
        yield (written := str(folder.path / "written"))
        with open(written, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
