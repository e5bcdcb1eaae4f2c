"""What the hinge losses share: a smoothing, which makes them differentiable."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from polymargin.losses.base import Loss
from polymargin.losses.margins import Margins


@dataclass(frozen=True)
class Hinge(Loss):
    """``max p.h`` over a block set; with a smoothing ``g``, ``max p.h - g/(2 c) ||p||^2``."""

    parameters: ClassVar[tuple[str, ...]] = ("smoothing",)
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.smoothing) and self.smoothing >= 0):
            raise ValueError(
                f"smoothing must be a finite number, 0 (none) or more, got {self.smoothing!r}."
            )


@dataclass(frozen=True)
class CoupledHinge(Hinge):
    """One that compares classes with the true one, by margins that may differ between them."""

    parameters: ClassVar[tuple[str, ...]] = ("smoothing", "margins")
    margins: Margins | None = field(default=None, kw_only=True, repr=False)

    def check_n_classes(self, n_classes: int) -> None:
        """Raise ``ValueError`` when there are margins of another number of classes."""
        if self.margins is not None and len(self.margins) != n_classes:
            raise ValueError(
                f"There are margins between {len(self.margins)} classes, but {n_classes} classes."
            )
