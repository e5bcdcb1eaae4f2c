"""Objectives of a solver on its way, against CPU time that does not include looking at them.

`DualSolver.solve` certifies only when that pays, and what it certifies early it does not go on
from. Papers plot the objective after every pass. So `trace` drives the run behind ``solve`` itself
(the same passes in the same order: a test compares) and evaluates both objectives from its progress
function, with the clock stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polymargin import DualSolver, Problem, Solution
from polymargin.solvers import CertifiedGap
from polymargin.solvers.engines.linear import LinearEngine
from polymargin.solvers.run import Clock, Run


@dataclass
class Trace:
    """One entry per look.

    Attributes
    ----------
    passes : list of int
        Passes made.
    seconds : list of float
        CPU time since before the solver allocated anything.
    primal, dual : list of float
        Objectives; the dual is the one that is maximised.
    observed : list of float
        What `observe` said of the weights.
    """

    passes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    observed: list[float] = field(default_factory=list)

    @property
    def gaps(self) -> np.ndarray:
        """Absolute duality gaps."""
        return np.array(self.primal) - np.array(self.dual)


class _EnoughError(Exception):
    """Ends a run from its progress function."""


def trace(
    solver: DualSolver,
    problem: Problem,
    *,
    max_iter: int,
    seconds: float = np.inf,
    seed: int = 0,
    spacing: float = 0.0,
    stop: Callable[[Trace], bool] | None = None,
    observe: Callable[[np.ndarray], float] | None = None,
) -> Trace:
    """Run a solver and look at the objectives.

    Parameters
    ----------
    solver : DualSolver
        Settings. With ``certify=True`` the run certifies at least every fifty passes, and that
        counts as its time.
    problem : Problem
        In float64.
    max_iter : int
        Passes at most.
    seconds : float, default=inf
        CPU time at most, without the looks.
    seed : int, default=0
        As ``random_state`` of ``solve``.
    spacing : float, default=0
        Look again once the time has grown by this part; 0: after every pass.
    stop : callable or None
        End the run when it says so.
    observe : callable or None
        A further value of the weights (n_classes, n_features) to keep at each look.

    Returns
    -------
    Trace
    """
    found = Trace()
    rng = np.random.default_rng(check_random_state(seed).randint(np.iinfo(np.int32).max))
    began, paused, due = time.process_time(), 0.0, 0.0
    engine = LinearEngine(problem, solver, rng, n_jobs=1, max_iter=max_iter)
    run = Run(
        engine,
        CertifiedGap(0.0),
        max_iter=max_iter,
        time_limit=None,
        certify=solver.certify,
        tol=0.0,
        clock=Clock(),
    )

    def look(record: dict[str, Any]) -> None:
        nonlocal paused, due
        now = time.process_time()
        spent = now - began - paused
        last = record["pass"] == max_iter or spent >= seconds
        if spent < due and not last:
            return
        due = (1.0 + spacing) * spent
        values = engine.objectives()
        found.passes.append(record["pass"])
        found.seconds.append(spent)
        found.primal.append(values.primal)
        found.dual.append(values.dual)
        if observe is not None:
            found.observed.append(observe(engine.state.split(engine.model(copy=False).weights)[0]))
        paused += time.process_time() - now
        if last or (stop is not None and stop(found)):
            raise _EnoughError

    try:
        engine.start(None)
        run.loop(look)
    except _EnoughError:
        pass
    return found


def first_below(values: Any, limit: float, at: list[float]) -> float | None:
    """Where a sequence is first at or below a limit; None when it never is."""
    reached = np.flatnonzero(np.asarray(values) <= limit)
    return float(at[reached[0]]) if reached.size else None


def certified_optimum(
    problem: Problem, *, tol: float, seconds: float, solver: DualSolver | None = None
) -> Solution:
    """Solve accurately, in so much CPU time at most: the solver's own limit is a wall clock."""
    began = time.process_time()

    def watch(record: dict[str, Any]) -> None:
        if time.process_time() - began >= seconds:
            raise KeyboardInterrupt  # the solver returns its best certified model

    return (solver or DualSolver()).solve(
        problem, tol=tol, max_iter=1_000_000, random_state=0, progress=watch
    )
