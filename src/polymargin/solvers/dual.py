"""The dual solver: passes of exact block updates until the duality gap is certified.

Here are its settings and its interface; what a pass does is in
:mod:`~polymargin.solvers.engines.linear`, what happens between passes in
:mod:`~polymargin.solvers.run`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from polymargin.problem import Problem
from polymargin.solvers import audit
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import Checkpoint, PathFile, dependencies
from polymargin.solvers.engines.base import Engine, Model
from polymargin.solvers.engines.linear import LinearEngine, LinearModel
from polymargin.solvers.newton.handover import may_follow
from polymargin.solvers.progress import Progress
from polymargin.solvers.run import Clock, Run
from polymargin.solvers.settings import RandomState, Settings, draw_seed
from polymargin.solvers.solution import KeptState, Solution
from polymargin.solvers.state import State
from polymargin.solvers.stopping import CertifiedGap, MostSeconds, Status, StoppingRule


@dataclass(kw_only=True, eq=False, repr=False)
class DualSolver(Settings):
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
          ``"clip"``; one_vs_rest_squared: ``"scale"``; softmax and top_k_entropy:
          ``"newton"``.

        With a smoothing, a loss has its first method only.
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
        weights are larger than the caches, and uses ``n_jobs`` threads. False: one at a time;
        ``"auto"`` knows a third way between them, a few at a time.
    parallel : "auto" or bool, default="auto"
        Share the visits of a pass out among the ``n_jobs`` threads, for the losses whose classes do
        not depend on each other (one_vs_rest, one_vs_rest_squared): each thread has a range of
        classes. The last digits depend on ``n_jobs`` then. ``"auto"``: where a pass is worth it.
    newton : "auto" or bool, default="auto"
        A second-order phase after the sweeps, for dense rows: chosen where the gap falls so slowly
        that it should need half the effective passes at most (with up to 800 features and 32
        classes; never with ``schedule="sdm"``), after the first ten passes, or never. Needs
        ``certify``. Where it gets no further, sweeps go on. Its steps count as the passes that
        their multiplications make.
    precision : "auto", "single" or "double", default="auto"
        Sweeps on data in double precision: with weights in single precision, a copy of the values
        and certificates in double, until the gap is about 5e-5 (or stands still, or is not what
        sweeps took it for), then in double; or in double all along. ``"auto"``: single where the
        weights are larger than a cache. Without effect on float32 data, data on disk,
        ``top_k_alpha``, and where a method of the papers is asked for (``schedule="sdm"``,
        ``stopping``, no ``certify``).
    certify : bool, default=True
        Stop at the tolerance, with a certificate. False: make exactly ``max_iter`` passes and
        certify nothing.
    time_limit : float or None, default=None
        Seconds after which to stop with the best certified model; those of this call, also when it
        goes on from a checkpoint.
    stopping : StoppingRule or None, default=None
        When to stop; None: at a certified gap of ``tol``. The rule of the papers is
        :class:`~polymargin.solvers.LargestViolation`. Whatever stops it, the model is
        certified at the end.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import DualSolver, LinearMulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = DualSolver(time_limit=60.0, shrinking=False)
    >>> clf = LinearMulticlassSVC(solver=solver, random_state=0).fit(X, y)
    >>> clf.dual_gap_ <= clf.tol
    True
    """

    restricted: str = "auto"
    restricted_tol: float | None = None
    schedule: Literal["auto", "sdm"] = "auto"
    shrinking: bool = True
    shuffle: bool = True
    cooling: float | None = 10.0
    effort: float = 5.0
    acceleration: Literal["auto"] | bool | float = "auto"
    blocked: Literal["auto"] | bool = "auto"
    parallel: Literal["auto"] | bool = "auto"
    newton: Literal["auto"] | bool = "auto"
    precision: Literal["auto", "single", "double"] = "auto"
    certify: bool = True
    time_limit: float | None = None
    stopping: StoppingRule | None = None

    @property
    def needs_violation(self) -> bool:
        """Whether the stopping rule looks at violations."""
        return self.stopping is not None and self.stopping.needs_violation

    def solve(
        self,
        problem: Problem,
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: RandomState = None,
        n_jobs: int = 1,
        verbose: int = 0,
        start: Solution | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
        keep_state: bool = False,
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
            1: a bar with the gap and the time left on a terminal or in a notebook, elsewhere lines;
            2: lines, one per certificate and some between.
        start : Solution or None
            Warm start from the solution of the same data with other weights. One of the same
            problem that kept its state is gone on from, as if it had not ended.
        progress : callable or None
            Called after every pass with a dict: pass, time, gap (estimated), certified_gap,
            n_awake, tol.
        checkpoint : Checkpoint or None
            Where to save the state, and to go on from if there is one. Removed when the tolerance
            is reached (without certificates: after all passes).
        keep_state : bool
            Keep what the passes have left (the weights four times at most, and the dual) in the
            solution. Without effect on data on disk.

        Returns
        -------
        Solution
            Also on Ctrl-C, then with status ``"interrupted"``.
        """
        clock = Clock()
        self._check(problem)
        seed = draw_seed(random_state)
        made_for = None
        if problem.rows.is_whole and (keep_state or (start is not None and start.kept is not None)):
            made_for = dependencies(problem, self, math.nan, None, n_jobs)
        goes_on = start is not None and start.kept is not None and start.kept.made_for == made_for
        file = None
        if checkpoint is not None:
            given = None if random_state is None else seed
            length = None if self.certify else max_iter
            depends = dependencies(problem, self, tol, given, n_jobs, start=start, length=length)
            file = checkpoint.open(depends | {"goes on": repr(goes_on)})
        rng = np.random.default_rng(seed)
        engine = LinearEngine(problem, self, rng, n_jobs=n_jobs, max_iter=max_iter)
        if goes_on and start is not None and start.kept is not None:
            engine.start(None)
            engine.load_state_dict(start.kept.engine, None)
        else:
            engine.start(start)
        run = self._run(engine, tol, max_iter, clock, verbose=verbose)
        run.loop(progress, file)
        solution = solution_of(run, engine)
        if keep_state and made_for is not None and run.status is not Status.INTERRUPTED:
            solution.kept = KeptState(made_for, engine.state_dict())
        done = run.status is Status.UNCERTIFIED and run.n_iter >= max_iter
        if file is not None and (done or run.has_converged):
            file.remove()
        return solution

    def solve_path(
        self,
        problem: Problem,
        Cs: Iterable[float],
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: RandomState = None,
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
        seed = draw_seed(random_state)
        rng = np.random.default_rng(seed)
        Cs = [float(C) for C in Cs]
        file = None
        if checkpoint is not None:
            given = None if random_state is None else seed
            depends = dependencies(problem, self, tol, given, n_jobs)
            depends |= {"Cs": repr(Cs), "max_iter": repr(max_iter)}
            file = PathFile(checkpoint, depends)
        engine: LinearEngine | None = None
        for i, C in enumerate(Cs):
            scaled = problem.with_cost(C * problem.c)
            known = None if file is None else self._known(file, i, scaled, tol)
            if known is not None:
                yield known
                continue
            clock = Clock()
            if engine is None:
                engine = LinearEngine(scaled, self, rng, n_jobs=n_jobs, max_iter=max_iter)
                engine.start(None)
            else:
                engine.move_to(scaled)
            run = self._run(engine, tol, max_iter, clock, verbose=verbose)
            run.loop(progress, file)
            solution = solution_of(run, engine)
            if file is not None:
                file.add(solution)
            yield solution
            if run.status is Status.INTERRUPTED:
                return
        if file is not None:
            file.remove()

    def _known(self, file: PathFile, i: int, problem: Problem, tol: float) -> Solution | None:
        """The solution that a checkpoint has of a problem of the path, if it is what it claims."""
        with audit.senseless():
            solution = file.found(i, problem)
            if solution is not None:
                audit.check_solution(State(problem), solution)
                early = self.stopping is None and not solution.gap <= tol
                audit.require(
                    not (early and solution.status is Status.CONVERGED), "it has not converged"
                )
            return solution

    def _run(
        self,
        engine: Engine[Model],
        tol: float,
        max_iter: int,
        clock: Clock,
        *,
        step: str = "pass",
        verbose: int,
    ) -> Run[Model]:
        return Run(
            engine,
            CertifiedGap(tol) if self.stopping is None else self.stopping,
            max_iter=max_iter,
            time_limit=self.time_limit,
            certify=self.certify,
            tol=tol,
            clock=clock,
            step=step,
            verbose=verbose,
        )

    def _check(self, problem: Problem) -> None:
        problem.loss.check_restricted(self.restricted, self.restricted_tol)
        if self.schedule not in ("auto", "sdm"):
            raise ValueError(f'schedule must be "auto" or "sdm", got {self.schedule!r}.')
        if self.schedule == "sdm" and not problem.loss.has_violation:
            raise ValueError(
                'schedule="sdm" is for crammer_singer, weston_watkins and one_vs_rest, without '
                f'smoothing; use schedule="auto" with {problem.loss.name}.'
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
        for name in ("blocked", "parallel"):
            value = getattr(self, name)
            if not isinstance(value, bool) and value != "auto":
                raise ValueError(f'{name} must be "auto", True or False, got {value!r}.')
        if self.precision not in ("auto", "single", "double"):
            raise ValueError(
                f'precision must be "auto", "single" or "double", got {self.precision!r}.'
            )
        self._check_newton(problem)
        MostSeconds(self.time_limit)
        self._check_stopping(problem)

    def _check_newton(self, problem: Problem) -> None:
        if not isinstance(self.newton, bool) and self.newton != "auto":
            raise ValueError(f'newton must be "auto", True or False, got {self.newton!r}.')
        if self.newton is not True:
            return
        if not may_follow(problem):
            raise ValueError(
                f"newton=True needs dense rows and a hinge loss, not {type(problem.rows).__name__} "
                f'with {problem.loss.name}: use newton="auto".'
            )
        if not self.certify or self.schedule == "sdm":
            raise ValueError(
                'newton=True needs certify=True and schedule="auto": use newton="auto" otherwise.'
            )

    def _check_stopping(self, problem: Problem) -> None:
        rule = self.stopping
        if rule is not None and not isinstance(rule, StoppingRule):
            raise ValueError(f"stopping must be a StoppingRule or None, got {rule!r}.")
        if rule is None or not rule.needs_violation:
            return
        if not problem.loss.has_violation:
            raise ValueError(
                f"{rule!r} cannot stop {problem.loss.name}, whose blocks have no violation; leave "
                "stopping out."
            )
        if self.acceleration not in ("auto", False):
            raise ValueError(
                f"{rule!r} needs the weights of the dual, which the accelerated outer loop does "
                'not have: use acceleration="auto" or False.'
            )


def solution_of(run: Run[LinearModel], engine: LinearEngine) -> Solution:
    """What a run found.

    Passes raise the dual of what the outer loop solves, and the dual itself may fall meanwhile. One
    that is worse than none at all proves less, and so a run that ends there shows none.
    """
    (certificate, model), pb = run.result(), engine.problem
    coef, intercept = engine.state.split(model.weights)
    block = model.block
    if certificate.dual < pb.constant_loss:
        certificate = Certificate(certificate.primal, pb.constant_loss)
        block = sparse.csr_array(block.shape, dtype=block.dtype)
    return Solution(
        coef=coef,
        intercept=intercept,
        certificate=certificate,
        n_iter=run.n_iter,
        history=run.history.arrays(),
        status=run.status,
        block=block,
        c=pb.c,
        y=pb.y,
        loss=pb.loss,
    )
