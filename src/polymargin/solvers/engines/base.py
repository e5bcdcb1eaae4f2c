"""What the loop asks of an engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import Tree

Model = TypeVar("Model")


@dataclass(frozen=True)
class Seen:
    """What a pass did.

    Attributes
    ----------
    n_visited : int
        Examples.
    gap : float
        The relative duality gap as far as the pass could tell; NaN where it could not.
    kind : str
        Passes of one kind see the same part of the gap.
    may_wait : bool
        Whether a certificate after this pass would be no better than a later one.
    violation : float
        The largest one seen; NaN where nobody looked.
    everyone : bool
        Whether all examples were visited, with all classes.
    certificate : Certificate or None
        That of the model after the pass, where the engine knows it without a further look,
    provisional : bool
        but for the examples that were left out.
    stalled : bool
        Whether rounding allows nothing better.
    note : str
        What to print besides, where lines are printed.
    """

    n_visited: int
    gap: float = math.nan
    kind: str = "full"
    may_wait: bool = False
    violation: float = math.nan
    everyone: bool = False
    certificate: Certificate | None = None
    provisional: bool = False
    stalled: bool = False
    note: str = ""


class Engine(Protocol[Model]):
    """Passes over the examples of one problem.

    Attributes
    ----------
    last_is_best : bool
        Whether no earlier model is worth keeping.
    """

    last_is_best: bool

    @property
    def known(self) -> Certificate | None:
        """The certificate of the model as it is, where it costs nothing."""

    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """Make a pass; `goal` is the difference ``P - D`` to reach, infinity while unknown."""

    def certify(self) -> Certificate:
        """Exact objectives of the model as it is, all examples looked at."""

    def see_everyone(self) -> None:
        """Visit all examples in the next pass."""

    def model(self, *, copy: bool) -> Model:
        """The model as it is; without `copy` it may share memory with the engine."""

    def state_dict(self) -> Tree:
        """What the passes so far have left, as arrays and what JSON has."""

    def load_state_dict(self, state: Tree) -> None:
        """Go on as the engine that gave this state (linear ones: to the last bit)."""

    def model_state(self, model: Model) -> Tree:
        """A model as arrays."""

    def load_model(self, state: Tree) -> Model:
        """The inverse of `model_state`."""
