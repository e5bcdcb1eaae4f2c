"""What is wrong with an archive. Whoever reads one says which file it is, and what to do."""

from __future__ import annotations


class StorageError(ValueError):
    """Something that an archive cannot hold, or a file that is not the archive it should be."""


class ForeignFileError(StorageError):
    """A file that is something else."""


class NewerFileError(StorageError):
    """An archive in a version of its format that came later."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"it has version {found} of the format, and this polymargin reads up to {known}; "
            "update polymargin"
        )
        self.found, self.known = found, known


class DamagedFileError(StorageError):
    """An archive that is cut short, changed, or does not agree with itself."""
