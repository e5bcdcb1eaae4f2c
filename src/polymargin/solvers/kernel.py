"""The batch solver for kernel machines: working sets of many examples, solved exactly.

Here are its settings and its interface; what a round does is in
:mod:`~polymargin.solvers.engines.kernel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from polymargin.problem import KernelProblem
from polymargin.solvers.engines.kernel import KernelEngine
from polymargin.solvers.progress import Progress
from polymargin.solvers.run import Clock, Run
from polymargin.solvers.settings import RandomState, Settings, draw_seed
from polymargin.solvers.solution import DualSolution
from polymargin.solvers.stopping import CertifiedGap, MostSeconds


@dataclass(kw_only=True)
class KernelSolution(DualSolution):
    """A kernel machine's dual and its certificate."""

    n_kernel_evaluations: int


@dataclass(kw_only=True, eq=False, repr=False)
class KernelSolver(Settings):
    """Expert settings of the kernel machine's solver.

    Parameters
    ----------
    working_set : "auto" or int, default="auto"
        "auto": the support patterns and some more. An integer: so many examples, those that violate
        most. 1 is the classical method, which takes the single most violating example next (MCSVM;
        Crammer and Singer 2001).
    inner_passes : int, default=100
        Passes over a working set at most.
    inner_stop : float, default=0.05
        A working set is done when a pass finds this part of the gap its first one found; sooner
        while most of the gap is outside the sets.
    shrinking : bool, default=True
        Leave out examples that have settled.
    restricted, restricted_tol :
        As in :class:`polymargin.DualSolver`.
    time_limit : float or None, default=None
        Seconds after which to stop.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import KernelMulticlassSVC, KernelSolver
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = KernelMulticlassSVC(solver=KernelSolver(time_limit=60.0), random_state=0).fit(X, y)
    >>> clf.dual_gap_ <= clf.tol
    True
    """

    working_set: Literal["auto"] | int = "auto"
    inner_passes: int = 100
    inner_stop: float = 0.05
    shrinking: bool = True
    restricted: str = "auto"
    restricted_tol: float | None = None
    time_limit: float | None = None

    def solve(
        self,
        problem: KernelProblem,
        *,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        cache_bytes: int = 200 * 2**20,
        random_state: RandomState = None,
        verbose: int = 0,
        start: DualSolution | None = None,
        progress: Progress | None = None,
    ) -> KernelSolution:
        """Solve ``problem`` to a relative duality gap of ``tol``.

        The arguments are those of :meth:`DualSolver.solve`, with working sets for passes;
        ``cache_bytes`` are for kernel rows that are kept.

        Returns
        -------
        KernelSolution
            Also on Ctrl-C, then with status ``"interrupted"``.
        """
        self._check()
        clock = Clock()
        engine = KernelEngine(
            problem, self, np.random.default_rng(draw_seed(random_state)), cache_bytes
        )
        engine.start(start)
        run: Run[sparse.csr_array] = Run(
            engine,
            CertifiedGap(tol),
            max_iter=max_iter,
            time_limit=self.time_limit,
            certify=True,
            tol=tol,
            clock=clock,
            step="set",
            verbose=verbose,
        )
        run.loop(progress)
        certificate, block = run.result()
        return KernelSolution(
            certificate=certificate,
            n_iter=run.n_iter,
            history=run.history.arrays(),
            status=run.status,
            block=block,
            c=problem.c,
            y=problem.y,
            loss=problem.loss,
            n_kernel_evaluations=problem.kernel.n_evaluations,
        )

    def _check(self) -> None:
        size = self.working_set
        if size != "auto" and not (isinstance(size, int | np.integer) and size >= 1):
            raise ValueError(f'working_set must be "auto" or a positive integer, got {size!r}.')
        if not self.inner_passes >= 1:
            raise ValueError(f"inner_passes must be at least 1, got {self.inner_passes!r}.")
        if not 0 <= self.inner_stop < 1:
            raise ValueError(f"inner_stop must lie in [0, 1), got {self.inner_stop!r}.")
        MostSeconds(self.time_limit)
