"""What of the gap a certificate would find now: whether one is worth its price.

A certificate looks at everyone, which costs about half a pass: one that comes too early is lost,
one that comes too late has lost passes. What a pass saw of the gap, each example's share before its
own visit, is the gap as it was in the middle of the pass. Where that falls fast, what is left of it
when the pass is over depends on the rate: smooth losses lose about as much with every pass, the
others less and less. What certificates found corrects this.
"""

from __future__ import annotations

import math

from polymargin.solvers import audit
from polymargin.solvers.checkpoint import Tree
from polymargin.solvers.engines.base import Seen

# of the gap to what a pass of a kind sees of it; "falling": to that times the root of the rate
FIRST_GUESS = {"full": 0.5, "falling": 0.9, "smooth": 0.5, "short": 0.7, "newton": 1.0}
FAST = 0.75  # a rate below it
LESS_THAN_BEFORE = 1.25  # smooth losses: of the rate


class Forecast:
    """The gap that a certificate would find, from what passes have seen of it."""

    def __init__(self) -> None:
        self.longest = 1  # visits of a pass, so far
        self._before = math.nan  # what the last pass saw; NaN where that was too little
        self._rate = math.nan  # of it to what the pass before saw
        self._guess = dict(FIRST_GUESS)

    def after_pass(self, seen: Seen) -> None:
        """Take in what a pass saw."""
        self.longest = max(self.longest, seen.n_visited)
        many = seen.kind in ("full", "smooth") and 2 * seen.n_visited >= self.longest
        gap = seen.gap if many and math.isfinite(seen.gap) else math.nan
        self._rate = gap / self._before if self._before > 0 else math.nan
        self._before = gap

    def gap(self, seen: Seen) -> float:
        """What a certificate would find after this pass, the last one taken in."""
        kind = self._kind(seen)
        guess = self._guess[kind]
        if kind == "smooth" and self._rate > 0:
            guess = min(guess, LESS_THAN_BEFORE * self._rate)
        return guess * self._scale(kind) * seen.gap

    def learn(self, seen: Seen, found: float) -> None:
        """Take in what a certificate found after the last pass.

        That there is more than the pass saw is believed only half: the primal point is an average,
        which may be about to catch up.
        """
        kind = self._kind(seen)
        if seen.gap > 0 and math.isfinite(found):
            guess = found / (self._scale(kind) * seen.gap)
            self._guess[kind] = guess if guess < 1.0 else math.sqrt(guess)

    def _kind(self, seen: Seen) -> str:
        return "falling" if seen.kind == "full" and 0.0 < self._rate < FAST else seen.kind

    def _scale(self, kind: str) -> float:
        return math.sqrt(self._rate) if kind == "falling" else 1.0

    # --- checkpoints -----------------------------------------------------------------------------

    def state_dict(self) -> Tree:
        """What it has learned."""
        gaps = {"before": self._before, "rate": self._rate}
        return {"longest": self.longest, "guess": dict(self._guess)} | gaps

    def load_state_dict(self, state: Tree) -> None:
        """The inverse of `state_dict`."""
        self.longest = audit.count(state, "longest", 1)
        self._before = audit.any_number(state, "before")
        self._rate = audit.any_number(state, "rate")
        self._guess = {kind: audit.number(state["guess"], kind, 0.0) for kind in FIRST_GUESS}
