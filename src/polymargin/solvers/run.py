"""The one loop: passes of an engine until a rule says to stop.

It has the clock, the limits, the history, the reports, the best model so far, the checkpoints and
the status. What a pass is, and what a model is worth, is the engine's
(:mod:`polymargin.solvers.engines`).
"""

from __future__ import annotations

import math
import time
from typing import Generic

from polymargin.solvers import audit
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import CheckpointError, CheckpointFile, Tree
from polymargin.solvers.engines.base import (
    Best,
    Engine,
    Model,
    SavableEngine,
    SavedBest,
    Seen,
)
from polymargin.solvers.forecast import Forecast
from polymargin.solvers.progress import History, Progress, Record, listeners
from polymargin.solvers.show import Teller, telling
from polymargin.solvers.stopping import Look, MostPasses, MostSeconds, Status, StoppingRule

# between two certificates at most: visits, in those of a pass over everyone, and passes; a
# certificate looks at everyone
LONGEST_WAIT = 12.0
MOST_WAIT = 50


class Clock:
    """Seconds since the solver was called, and those of the calls it goes on from."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.before = 0.0

    @property
    def now(self) -> float:
        """Seconds of this call."""
        return time.perf_counter() - self._began

    @property
    def total(self) -> float:
        """Seconds of all calls."""
        return self.before + self.now


class Run(Generic[Model]):
    """Passes of an engine until `rule` is met, or `max_iter` passes or the seconds are over.

    Without `certify`, all passes are made and nothing is looked at; `tol` is for the reports.
    `step` is what is counted, as "pass"; `verbose` is how much a person wants to see.
    """

    def __init__(
        self,
        engine: Engine[Model],
        rule: StoppingRule,
        *,
        max_iter: int,
        time_limit: float | None,
        certify: bool,
        tol: float,
        clock: Clock,
        step: str = "pass",
        verbose: int = 0,
    ) -> None:
        self.engine = engine
        self._engine_is_whole = True  # not in the middle of a pass or of a certificate
        self.rule = rule
        self.max_iter = max_iter
        self.certify = certify
        self.tol = tol
        self.history = History()
        self.clock = clock
        self._step, self._verbose = step, verbose
        self._teller = Teller()  # whom a person listens to, while there are passes
        self.time_limit = MostSeconds(time_limit)
        self._rules = (*((rule,) if certify else ()), MostPasses(max_iter), self.time_limit)
        self.status = Status.MAX_ITER if certify else Status.UNCERTIFIED
        self.n_iter = 0
        self.best: Best[Model] | None = None
        self.certificate = engine.known  # the latest
        self._certified = -1  # the pass of the latest one that looked at all examples
        self._visits = 0  # since then
        self._forecast = Forecast()

    # --- passes ----------------------------------------------------------------------------------

    def loop(self, progress: Progress | None = None, file: CheckpointFile | None = None) -> None:
        """Passes until a rule is met or Ctrl-C; goes on from what was saved."""
        if file is not None and file.saved is not None:
            self.load_state_dict(file.saved)
            file.saved = None  # to free it
        try:
            with telling(self._step, self._verbose) as self._teller:
                self._make_passes(progress, file)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED

    def _make_passes(self, progress: Progress | None, file: CheckpointFile | None) -> None:
        reports = listeners(progress)
        over = self._is_over(None)  # a start may be good enough
        while not over:
            goal = math.inf if self.certificate is None else self.rule.goal(self.certificate)
            self._engine_is_whole = False
            seen = self.engine.advance(goal, self._out_of_time)
            self._engine_is_whole = True
            self.n_iter = min(self.n_iter + seen.passes, self.max_iter)  # a step may be long
            self._look_at(seen)
            record = self._record(seen)
            self._teller.after_pass(record, seen.note)
            for report in reports:
                report(record)
            over = self._is_over(seen)
            if not over and file is not None and file.due(self.n_iter):
                file.save(self.state_dict())
        if file is not None and self.n_iter >= self.max_iter and not self.has_converged:
            file.save(self.state_dict())  # to go on from with a larger max_iter
        if self.certify and self._certified < self.n_iter:
            self._certify(None)

    @property
    def has_converged(self) -> bool:
        """Whether the rule was met."""
        return self.status is Status.CONVERGED

    def _is_over(self, seen: Seen | None) -> bool:
        """Whether a rule is met; then the status says which. One pass is made in any time."""
        for rule in self._rules[:-1] if seen is None else self._rules:
            if rule.met(self._look(seen)) and self._is_met_by_all(rule, seen):
                if self.certify:
                    self.status = rule.status
                return True
        if seen is not None and seen.stalled:
            self.status = Status.STALLED
            return True
        return False

    def _look(self, seen: Seen | None) -> Look:
        fresh = seen is None or self._certified == self.n_iter or seen.certificate is not None
        return Look(
            n_iter=self.n_iter,
            seconds=self.clock.now,
            certificate=self.certificate if fresh else None,
            violation=math.nan if seen is None else seen.violation,
            everyone=seen is not None and seen.everyone,
        )

    def _is_met_by_all(self, rule: StoppingRule, seen: Seen | None) -> bool:
        """Whether the rule that those visited meet is also met when all examples are looked at."""
        if rule is not self.rule or seen is None or not seen.provisional:
            return True
        self.certificate = self._certificate_now()
        self.best = Best(self.certificate, None)
        self._certified = self.n_iter
        self._write_down(self.certificate, 0)
        return rule.met(self._look(None))

    def _out_of_time(self) -> bool:
        return self.time_limit.met(Look(seconds=self.clock.now))

    # --- certificates ----------------------------------------------------------------------------

    def _look_at(self, seen: Seen) -> None:
        dual, gap = seen.dual, seen.gap
        if seen.certificate is not None:
            dual, gap = seen.certificate.dual, seen.certificate.gap
        self.history.add_pass(self.n_iter, self.clock.total, gap, dual, seen.n_visited)
        if not self.certify:
            return
        if seen.certificate is not None:
            self._note(seen.certificate, seen)
        elif self._worth_certifying(seen):
            self._certify(seen)
        if self.rule.must_see_everyone(self._look(seen)):
            self.engine.see_everyone()

    def _worth_certifying(self, seen: Seen) -> bool:
        self._visits += seen.n_visited
        self._forecast.after_pass(seen)
        if math.isnan(seen.gap) and not seen.may_wait:
            return True
        waited = self._visits >= LONGEST_WAIT * self._forecast.longest
        waited |= self.n_iter - max(0, self._certified) >= MOST_WAIT
        return (waited and not seen.may_wait) or self.rule.near(self._forecast.gap(seen))

    def _certificate_now(self) -> Certificate:
        self._engine_is_whole = False
        found = self.engine.certify()
        self._engine_is_whole = True
        return found

    def _certify(self, seen: Seen | None) -> None:
        found = self._certificate_now()
        if seen is not None:
            self._forecast.learn(seen, found.gap)
        self._note(found, seen)
        if self.rule.met(self._look(None)) and self.status is not Status.INTERRUPTED:
            self.status = Status.CONVERGED

    def _note(self, found: Certificate, seen: Seen | None) -> None:
        """Write a certificate down, and keep the model if it is the best."""
        self.certificate = found
        if seen is None or not seen.provisional:
            self._certified, self._visits = self.n_iter, 0
            self._write_down(found, 0 if seen is None else seen.n_visited)
        if not math.isfinite(found.gap):
            raise ValueError(
                f"The objective cannot be evaluated (primal {found.primal:.3g}, dual "
                f"{found.dual:.3g}): the data or C are too large for this precision. Scale the "
                "features, use a smaller C, or float64."
            )
        if self.engine.last_is_best:
            self.best = Best(found, None)
        elif self.best is None or found.gap < self.best.certificate.gap:
            # nothing touches the model after the last certificate, so it needs no copy
            is_last = self.rule.met(self._look(None))
            self.best = Best(found, self.engine.model(copy=not is_last))

    def _write_down(self, found: Certificate, n_visited: int) -> None:
        self.history.add_certificate(self.n_iter, self.clock.total, found)
        self._teller.after_certificate(self.n_iter, self.clock.total, found, n_visited)

    def result(self) -> tuple[Certificate, Model]:
        """The best certified model; without certificates, the last one."""
        stale = self._certified < self.n_iter or self.status is Status.INTERRUPTED
        if self.certify and stale and (self.best is None or self.engine.last_is_best):
            self._certify_what_there_is()
        best = self.best or Best(Certificate(math.nan, math.nan), None)
        return best.certificate, self.engine.model(copy=False) if best.model is None else best.model

    def _certify_what_there_is(self) -> None:
        if self.status is not Status.INTERRUPTED:
            self._certify(None)
            return
        try:
            if not self._engine_is_whole:
                self.engine.mend()
            self._certify(None)
        except (ValueError, FloatingPointError) as error:  # there is no model to show
            raise KeyboardInterrupt from error

    def _record(self, seen: Seen) -> Record:
        best = math.nan if self.best is None else self.best.certificate.gap
        return {
            "pass": self.n_iter,
            "time": self.clock.total,
            "gap": seen.gap,
            "certified_gap": math.nan if seen.provisional else best,
            "n_awake": seen.n_visited,
            "tol": self.tol,
        }

    # --- checkpoints -----------------------------------------------------------------------------

    @property
    def _savable(self) -> SavableEngine[Model]:
        assert isinstance(self.engine, SavableEngine)  # or nobody would have given a file
        return self.engine

    def state_dict(self) -> Tree:
        """Everything that the passes so far have left: a run that loads it goes on the same way."""
        state: Tree = {
            "n_iter": self.n_iter,
            "certified": self._certified,
            "visits": self._visits,
            "forecast": self._forecast.state_dict(),
            "history": self.history.arrays(),
            "seconds": self.clock.total,
            "engine": self._savable.state_dict(),
        }
        if self.best is not None and self.best.model is not None:
            found = self.best.certificate
            state["best"] = {"primal": found.primal, "dual": found.dual}
            state["best"]["model"] = self._savable.model_state(self.best.model)
        return state

    def load_state_dict(self, state: Tree) -> None:
        """Go on from a state; the engine must have been made for the same problem."""
        with audit.senseless():
            self._load(state)

    def _load(self, state: Tree) -> None:
        n_iter = audit.count(state, "n_iter")
        if n_iter > self.max_iter:
            raise CheckpointError(
                f"The checkpoint is of pass {n_iter}, past max_iter={self.max_iter}: "
                "raise max_iter, or remove the checkpoint to start afresh."
            )
        self.n_iter = n_iter
        self._certified = audit.count(state, "certified", -1)
        has_best = "best" in state
        audit.require(self._certified <= n_iter, "it was certified after its last pass")
        audit.require(has_best == (self._certified >= 0), "it was certified without a model")
        self._visits = audit.count(state, "visits")
        self._forecast.load_state_dict(state["forecast"])
        self.history.restore(state["history"])
        self.clock.before = audit.number(state, "seconds", 0.0)
        saved = None
        if has_best:
            best = state["best"]
            claim = Certificate(audit.number(best, "primal"), audit.number(best, "dual"))
            saved = SavedBest(claim, best["model"])
        self.best = self._savable.load_state_dict(state["engine"], saved)
        if self.best is not None:
            self.certificate = self.best.certificate
