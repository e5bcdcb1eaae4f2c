"""What goes wrong with data files, with the place where it does."""

from __future__ import annotations


class DataFileError(ValueError):
    """A data file that cannot be read, with the place of the fault.

    Parameters
    ----------
    reason : str
        What was wrong, what was expected and what to do.
    path : str, default=""
        The file.
    line, column : int, default=None
        Where, counted from 1. `column` counts bytes in svmlight files and fields in tables.
    """

    def __init__(
        self, reason: str, *, path: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = [str(part) for part in (self.path, self.line, self.column) if part]
        return ": ".join([":".join(place), self.reason]) if place else self.reason
