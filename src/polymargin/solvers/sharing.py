"""How the passes of a linear engine are shared out among threads.

One-vs-rest losses by classes: each class is a problem of its own, so every thread owns a range of
classes (its columns of W, its part of the dual) and walks the whole order with it, without waiting
for the others. A range is a number of whole cache lines of a row of W.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from polymargin.solvers.state import State

# Multiplications of a pass over everyone. Two threads were 1.35 times as fast at 25 million, and
# between 0.84 and 1.28 times at 8 million.
WORTH_SHARING = 16_000_000


def class_ranges(state: State, choice: Literal["auto"] | bool) -> int:
    """Into how many ranges the classes are cut, one for each thread; 1: they are not."""
    problem = state.problem
    if choice is False or problem.loss.coupled:
        return 1
    pass_cost = len(problem.visited) * (problem.rows.per_row + 1) * state.ld
    return state.n_jobs if choice is True or pass_cost >= WORTH_SHARING else 1
