"""Weston-Watkins: all violations, ``sum_j max(0, h_j)``; block set ``p_j <= c``."""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.losses.hinge import CoupledHinge


@dataclass(frozen=True)
class WestonWatkins(CoupledHinge):
    """The sum of the margin violations (Weston and Watkins 1999)."""

    name = "weston_watkins"
    sum_is_bounded = False
