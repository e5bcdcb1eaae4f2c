"""How a solver ended."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """How a solver ended; the members are strings."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"  # rounding allows no smaller gap
    INTERRUPTED = "interrupted"
    UNCERTIFIED = "uncertified"  # all passes were made, and nothing is proved

    @property
    def is_early(self) -> bool:
        """Whether the solver gave up before its tolerance."""
        return self in (Status.MAX_ITER, Status.TIME_LIMIT, Status.STALLED)
