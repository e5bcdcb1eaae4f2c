"""How much more memory than its own bytes a file may ask for.

Whoever reads a file from a stranger asks here before the memory is taken. A file may expand to a
fixed amount, or to a multiple of its size where that is more.
"""

from __future__ import annotations

from collections.abc import Sequence

from polymargin.storage.errors import StorageError

ALWAYS = 64 * 2**20  # bytes that any file may expand to
_TIMES = 32  # the text of strings: what an array of them may take, padded to the longest
_MOST_STRINGS = 2**30  # bytes of all arrays of strings of a file
_CHARACTER = 4  # bytes
_TIMES_COMPRESSED = 100  # the size of a data file, or
_MOST_OF_SMALL = 2**30  # bytes, where that is more


class StringRoom:
    """What the padded arrays of strings of one file take: each string as much as the longest.

    Writers ask as readers do, so that what is written can be read. A part of the arrays never needs
    more room than all of them.
    """

    def __init__(self) -> None:
        self._padding = 0
        self._total = 0

    def take(self, values: Sequence[str]) -> None:
        """Raise `StorageError` unless there is room for an array of these strings."""
        longest = max(map(len, values), default=0)
        padded = _CHARACTER * longest * len(values)
        self._total += padded
        self._padding += max(0, padded - _TIMES * sum(map(len, values)))
        if self._padding > ALWAYS or self._total > _MOST_STRINGS:
            raise StorageError(
                f"an array of {len(values)} strings, each padded to the {longest} characters of "
                f"the longest, would take {padded:,} bytes: more than such a file may ask for"
            )


def most_bytes(size: int) -> int:
    """What the contents of a data file of so many bytes may expand to, compressed as it may be."""
    return max(_MOST_OF_SMALL, _TIMES_COMPRESSED * size)


def check_expansion(what: str, needed: int, size: int) -> None:
    """Raise `StorageError` where `what`, of a file of so many bytes, needs too much memory."""
    if needed > most_bytes(size):
        raise StorageError(
            f"{what} would take {needed:,} bytes, and a file of {size:,} bytes may ask for "
            f"{most_bytes(size):,}"
        )
