"""Folders that go, whatever Ctrl-C comes into."""

from __future__ import annotations

import os
import secrets
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Self


def remove_folder(folder: Path) -> None:
    """Remove a folder, if there is one, as far as that can be; Ctrl-C comes out as it is.

    `shutil.rmtree` closes descriptors twice when it is interrupted, and then says that.
    """
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            with suppress(OSError):
                os.unlink(os.path.join(place, name))
        for name in folders:
            path = os.path.join(place, name)
            with suppress(OSError):
                os.unlink(path) if os.path.islink(path) else os.rmdir(path)
    with suppress(OSError):
        folder.rmdir()


class TemporaryFolder:
    """A folder that goes at the end of a `with` block, or with the object.

    Unlike one of `tempfile`, it goes once more, with the object, where Ctrl-C came into that.
    """

    def __init__(self, parent: Path | None = None) -> None:
        name = f"polymargin-{secrets.token_hex(8)}"
        self.path = (Path(tempfile.gettempdir()) if parent is None else parent) / name
        weakref.finalize(self, remove_folder, self.path)
        self.path.mkdir(mode=0o700)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove it now."""
        remove_folder(self.path)
