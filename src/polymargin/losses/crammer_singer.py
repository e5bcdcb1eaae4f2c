"""Crammer-Singer: the largest violation, ``max(0, max_j h_j)``; block set ``sum p <= c``."""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.losses.hinge import CoupledHinge


@dataclass(frozen=True)
class CrammerSinger(CoupledHinge):
    """The largest margin violation (Crammer and Singer 2001)."""

    name = "crammer_singer"
