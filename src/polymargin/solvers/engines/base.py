"""What the loop asks of an engine."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import Tree

Model = TypeVar("Model")


@dataclass(frozen=True)
class Seen:
    """What a pass did."""

    n_visited: int
    gap: float = math.nan  # relative, as far as the pass could tell
    dual: float = math.nan  # the dual objective, likewise
    kind: str = "full"  # passes of one kind see the same part of the gap
    may_wait: bool = False  # whether a certificate now would be no better than a later one
    violation: float = math.nan  # the largest one seen; NaN where nobody looked
    everyone: bool = False  # whether all examples were visited, with all classes
    certificate: Certificate | None = None  # after the pass, where the engine knows it anyway,
    provisional: bool = False  # but for the examples that were left out
    stalled: bool = False  # whether rounding allows nothing better
    note: str = ""  # what to print besides, where lines are printed
    passes: int = 1  # how many it counts as, where it was no pass over the examples


@dataclass(frozen=True)
class Best(Generic[Model]):
    """A model with its certificate."""

    certificate: Certificate
    model: Model | None  # None: the engine's own


class SavedBest(NamedTuple):
    """What a checkpoint says of its best model."""

    claim: Certificate
    model: Tree


class Engine(ABC, Generic[Model]):
    """Passes over the examples of one problem."""

    last_is_best: bool  # whether no earlier model is worth keeping

    @property
    def known(self) -> Certificate | None:
        """The certificate of the model as it is, where it costs nothing."""
        return None

    @abstractmethod
    def advance(self, goal: float, out_of_time: Callable[[], bool]) -> Seen:
        """Make a pass; `goal` is the difference ``P - D`` to reach, infinity while unknown."""

    @abstractmethod
    def certify(self) -> Certificate:
        """Exact objectives of the model as it is, all examples looked at."""

    @abstractmethod
    def model(self, *, copy: bool) -> Model:
        """The model as it is; without `copy` it may share memory with the engine."""

    def see_everyone(self) -> None:
        """Visit all examples in the next pass."""

    def mend(self) -> None:
        """After Ctrl-C in the middle of a pass: begin from what is whole, for `certify`."""


class SavableEngine(Engine[Model]):
    """One whose runs can be saved and gone on from."""

    @abstractmethod
    def state_dict(self) -> Tree:
        """What the passes so far have left, as arrays and what JSON has."""

    @abstractmethod
    def load_state_dict(self, state: Tree, best: SavedBest | None) -> Best[Model] | None:
        """Go on as the engine that gave this state would have, to the last bit.

        The state may have been edited. Whatever certificates depend on is compared with the data:
        a state that is none of this problem raises `CheckpointError`, or any error that a tree
        without sense leads to. The best model comes back with a certificate of the data's.
        """

    @abstractmethod
    def model_state(self, model: Model) -> Tree:
        """A model as arrays."""
