"""What the top-k losses share (Lapin, Hein and Schiele 2015): their k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polymargin.losses.base import Loss
from polymargin.losses.hinge import CoupledHinge


@dataclass(frozen=True)
class WithTopK(Loss):
    """A loss of the k largest margins."""

    parameters: ClassVar[tuple[str, ...]] = ("top_k",)
    is_cheap: ClassVar[bool] = False  # the largest must be found
    top_k: int | None = None

    def __post_init__(self) -> None:
        if self.top_k is None:
            raise ValueError(
                f"loss={self.name!r} needs top_k, the number of guesses that count as right: "
                "an integer from 1 to the number of classes - 1."
            )
        if not int(self.top_k) >= 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k!r}.")
        object.__setattr__(self, "top_k", int(self.top_k))

    @property
    def k(self) -> int:
        """``top_k``, which is known to be there."""
        assert self.top_k is not None
        return self.top_k

    def check_n_classes(self, n_classes: int) -> None:
        """Raise ``ValueError`` when there are not more than k classes."""
        if self.k >= n_classes:
            raise ValueError(
                f"top_k={self.top_k} is too large for {n_classes} classes; it can be at most "
                f"{n_classes - 1} (the number of classes - 1)."
            )


@dataclass(frozen=True)
class TopK(CoupledHinge, WithTopK):
    """A hinge loss of the k largest margins."""

    parameters: ClassVar[tuple[str, ...]] = ("top_k", "smoothing", "margins")

    def __post_init__(self) -> None:
        CoupledHinge.__post_init__(self)
        WithTopK.__post_init__(self)

    def check_n_classes(self, n_classes: int) -> None:
        """Raise ``ValueError`` when k or the margins do not fit the number of classes."""
        CoupledHinge.check_n_classes(self, n_classes)
        WithTopK.check_n_classes(self, n_classes)
