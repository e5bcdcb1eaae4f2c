"""One-vs-rest: ``sum_m max(0, 1 - y_m s_m)`` over all classes; block set ``p_m <= c``."""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.losses.hinge import Hinge


@dataclass(frozen=True)
class OneVsRest(Hinge):
    """A hinge loss per class, of which nothing couples the classes."""

    name = "one_vs_rest"
    sum_is_bounded = False
    no_costs = (
        "its classes are not compared with each other, so that there are no margins between them"
    )
