"""The dual solver: passes of exact block updates until the duality gap is certified.

Here are its settings and its interface; what it does is in :mod:`~polymargin.solvers.run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from polymargin.problem import Problem
from polymargin.solvers.checkpoint import Checkpoint
from polymargin.solvers.path_checkpoint import PathFile
from polymargin.solvers.progress import Progress
from polymargin.solvers.run import Run
from polymargin.solvers.snapshot import made_for, restore
from polymargin.solvers.solution import Solution


class DualSolver(BaseEstimator):
    """Expert settings of the dual solver.

    Parameters
    ----------
    restricted : str, default="auto"
        How an example's restricted problem is solved. ``"auto"`` is the first of

        - crammer_singer: ``"newton"``, ``"sort"``, ``"pivot"``, ``"condat"`` (exact);
          ``"bisection"``, ``"fixed_point"`` (to a tolerance); ``"active_set"``,
          ``"two_variables"`` (exact for some of the variables); ``"smo"``, ``"frank_wolfe"`` (a few
          steps);
        - weston_watkins: ``"newton"``, ``"walrus"``, ``"greedy"`` (to a tolerance),
          ``"active_set"`` (the variables that violate);
        - top_k_beta: ``"newton"``, ``"variable_fixing"``; top_k_alpha: ``"sort"``; one_vs_rest:
          ``"clip"``.
    restricted_tol : float or None, default=None
        Tolerance of the iterative methods, relative to ``C``. None: 1e-3 for ``"bisection"`` and
        ``"fixed_point"``, 1e-4 for ``"greedy"``, one cycle of ``"smo"``, one step of
        ``"frank_wolfe"``.
    schedule : "auto" or "sdm", default="auto"
        When an example is visited: by what its visits gain, or by the rules of the sequential dual
        method (Keerthi et al. 2008; not for the top-k losses).
    shrinking : bool, default=True
        Visit examples less often that gain nothing from a visit; with ``schedule="sdm"``, follow
        each full loop by loops over the free examples and classes.
    shuffle : bool, default=True
        A fresh random order for each pass; False: the order of the data.
    cooling : float or None, default=10.0
        ``schedule="sdm"``: what the tolerance of the shrunk loops, 1 at first, is divided by when
        it is reached. None: it is 1e-3 from the start.
    effort : float, default=5.0
        ``schedule="sdm"``: shrunk loops after a full one end when they cost as much as this many
        full ones.
    acceleration : "auto", bool or float, default="auto"
        The accelerated outer loop: chosen by the conditioning of the data (never with
        ``schedule="sdm"``), on, off, or on with this ``kappa`` to start with (it backs off where it
        is too large, and never grows).
    blocked : "auto" or bool, default="auto"
        Sweep dense data in blocks of examples (the same iterates up to rounding): pays where the
        weights are larger than the caches, and uses ``n_jobs`` threads.
    certify : bool, default=True
        Stop at the tolerance, with a certificate. False: make exactly ``max_iter`` passes and
        certify nothing.
    time_limit : float or None, default=None
        Seconds after which to stop with the best certified model; those of this call, also when it
        goes on from a checkpoint.
    """

    def __init__(
        self,
        *,
        restricted: str = "auto",
        restricted_tol: float | None = None,
        schedule: Literal["auto", "sdm"] = "auto",
        shrinking: bool = True,
        shuffle: bool = True,
        cooling: float | None = 10.0,
        effort: float = 5.0,
        acceleration: Literal["auto"] | bool | float = "auto",
        blocked: Literal["auto"] | bool = "auto",
        certify: bool = True,
        time_limit: float | None = None,
    ) -> None:
        self.restricted = restricted
        self.restricted_tol = restricted_tol
        self.schedule = schedule
        self.shrinking = shrinking
        self.shuffle = shuffle
        self.cooling = cooling
        self.effort = effort
        self.acceleration = acceleration
        self.blocked = blocked
        self.certify = certify
        self.time_limit = time_limit

    def solve(
        self,
        problem: Problem,
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
        n_jobs: int = 1,
        verbose: int = 0,
        start: Solution | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Solution:
        """Solve ``problem`` to a relative duality gap of ``tol``.

        Parameters
        ----------
        problem : Problem
        tol : float
        max_iter : int
            Passes at most.
        random_state : int, RandomState or None
        n_jobs : int
            Threads.
        verbose : int
            Print a line per certificate.
        start : Solution or None
            Warm start from the solution of the same data with other weights.
        progress : callable or None
            Called after every pass with a dict: pass, time, gap (estimated), certified_gap,
            n_awake, tol.
        checkpoint : Checkpoint or None
            Where to save the state, and to go on from if there is one. Removed when the tolerance
            is reached (without certificates: after all passes).

        Returns
        -------
        Solution
            Also on Ctrl-C, then with status ``"interrupted"``.
        """
        self._check(problem)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        file = None
        if checkpoint is not None:
            depends = made_for(
                problem,
                self,
                tol=tol,
                random_state=None if random_state is None else seed,
                n_jobs=n_jobs,
                start=start,
                length=None if self.certify else max_iter,
            )
            file = checkpoint.open(depends)
        run = Run(self, problem, tol, max_iter, np.random.default_rng(seed), n_jobs, verbose)
        try:
            run.start(start)
            if file is not None and file.saved is not None:
                restore(run, file.saved)
                file.saved = None
            run.loop(progress, file)
        except KeyboardInterrupt:
            run.status = "interrupted"
        solution = run.solution()
        done = run.status == "uncertified" and run.n_iter >= max_iter
        if file is not None and (done or run.status == "converged"):
            file.remove()
        return solution

    def solve_path(
        self,
        problem: Problem,
        Cs: Iterable[float],
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
        n_jobs: int = 1,
        verbose: int = 0,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Iterator[Solution]:
        """Solve ``problem`` with its costs multiplied by each of ``Cs``, one from the other.

        Going up is the better direction. The arguments are those of :meth:`solve`; passes and
        seconds count for each C anew. An interrupted solution is the last. A checkpoint holds the
        solutions found so far too, and is removed after the last C.

        Yields
        ------
        Solution
        """
        self._check(problem)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        Cs = [float(C) for C in Cs]
        file = None
        if checkpoint is not None:
            depends = made_for(
                problem,
                self,
                tol=tol,
                random_state=None if random_state is None else seed,
                n_jobs=n_jobs,
                start=None,
                length=max_iter,
            )
            file = PathFile(checkpoint.open(depends | {"Cs": repr(Cs)}))
        run: Run | None = None
        for i, C in enumerate(Cs):
            scaled = problem.with_cost(C * problem.c)
            known = None if file is None else file.found(i, scaled)
            if known is not None:
                yield known
                continue
            try:
                if run is None:
                    run = Run(self, scaled, tol, max_iter, rng, n_jobs, verbose)
                    run.start(None)
                    if file is not None and file.state is not None:
                        restore(run, file.state)
                        file.state = None
                else:
                    run.move_to(scaled, rng)
                run.loop(progress, file)
            except KeyboardInterrupt:
                if run is None:
                    raise
                run.status = "interrupted"
            solution = run.solution()
            if file is not None:
                file.add(solution)
            yield solution
            if run.status == "interrupted":
                return
        if file is not None:
            file.remove()

    def _check(self, problem: Problem) -> None:
        problem.loss.check_restricted(self.restricted, self.restricted_tol)
        if self.schedule not in ("auto", "sdm"):
            raise ValueError(f'schedule must be "auto" or "sdm", got {self.schedule!r}.')
        if self.schedule == "sdm" and not problem.loss.has_violation:
            raise ValueError(
                'schedule="sdm" is for crammer_singer, weston_watkins and one_vs_rest; use '
                f'schedule="auto" with {problem.loss.name}.'
            )
        if self.cooling is not None and not self.cooling > 1:
            raise ValueError(f"cooling must be a number above 1 or None, got {self.cooling!r}.")
        if not self.effort >= 0:
            raise ValueError(f"effort must be a non-negative number, got {self.effort!r}.")
        choice = self.acceleration
        valid = isinstance(choice, bool) or choice == "auto"
        if not valid and not (isinstance(choice, int | float) and choice >= 0):
            raise ValueError(
                'acceleration must be "auto", True, False or a non-negative number, got '
                f"{choice!r}."
            )
        if not isinstance(self.blocked, bool) and self.blocked != "auto":
            raise ValueError(f'blocked must be "auto", True or False, got {self.blocked!r}.')
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit must be positive seconds or None, got {self.time_limit}.")
