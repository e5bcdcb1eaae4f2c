"""Walk over problems and solvers, a worker process for each pair, every finished run kept at once.

A solver's settings are tried from loose to tight until its primal is within the smallest target, a
run exceeds the time limit, or all its runs together exceed the budget. One that spent its time
without coming near the optimum is not tried with a larger C, where it would take longer still.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import datasets, provenance
from benchmarks.cells import CellStore
from benchmarks.solvers_bench.base import BaseSolver, solver_files
from benchmarks.solvers_bench.objective import OBJECTIVES, TARGETS
from benchmarks.solvers_bench.problems import Problem
from benchmarks.solvers_bench.worker import CAN_FORK, exhausted, how_it_ended, reached

REFERENCE_TOL = 2e-5
FINAL = ("timeout", "error", "skipped")  # how the last run of a series may have ended it
# For libraries that read it when loaded; a job's own number of threads is set in the worker.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Events = Callable[[dict[str, Any], float], Iterable[dict[str, Any]]]


@dataclass
class Limits:
    """CPU seconds for a run and for all runs of a solver on a problem, and of the bound's run.

    The wall clock ends a run that waits instead of computing, at `patience` times its limit.
    """

    run: float = 120.0
    budget: float = 300.0
    reference: float = 300.0
    patience: float = 10.0


@dataclass
class Runner:
    """Measures what the store does not hold yet.

    Parameters
    ----------
    store : CellStore
        Results so far.
    limits : Limits
        When to give up.
    lock : Path, default=None
        A file to lock around every worker, for machines that others measure on too.
    only_known : bool, default=False
        Whether to put together what the store holds instead of measuring.
    log : callable
        Gets a line of text per event.
    events : callable
        Starts a worker and yields its lines; tests replace it.
    """

    store: CellStore
    limits: Limits = field(default_factory=Limits)
    lock: Path | None = None
    only_known: bool = False
    log: Callable[[str], None] = print
    events: Events | None = None
    planned: Sequence[Problem] = ()

    def run(
        self,
        problems: Sequence[Problem],
        solvers: Sequence[BaseSolver],
        save: Callable[[dict[str, Any]], None] = lambda results: None,
    ) -> dict[str, Any]:
        """Measure every solver on every problem it is meant for.

        Parameters
        ----------
        problems : sequence of Problem
            What to solve.
        solvers : sequence of BaseSolver
            By whom.
        save : callable
            Gets the results so far after every problem.

        Returns
        -------
        dict
            "series" (one per problem and solver), "absent" solvers and "absent_data", with reasons.
        """
        results: dict[str, Any] = {"series": [], "absent": {}, "absent_data": {}}
        for solver in solvers:
            reason = solver.missing()
            if reason is not None:
                results["absent"][solver.label] = reason
                self.log(f"absent: {solver.label}: {reason}")
        present = [solver for solver in solvers if solver.label not in results["absent"]]
        self.planned = problems
        for problem in problems:
            chosen = [solver for solver in present if problem.objective in solver.objectives]
            if problem.data in results["absent_data"] or not chosen:
                continue
            try:
                results["series"] += self.problem(problem, chosen)
            except FileNotFoundError as error:
                results["absent_data"][problem.data] = str(error)
                self.log(f"absent: {error}")
            save(results)
        return results

    def problem(self, problem: Problem, solvers: Sequence[BaseSolver]) -> list[dict[str, Any]]:
        """Measure the solvers on one problem, from the store as far as it goes.

        Raises
        ------
        FileNotFoundError
            When the data are absent.
        """
        bound = self.bound(problem)
        known = {solver.label: self._known(problem, solver) for solver in solvers}
        if self.only_known and not any(known.values()):
            return []
        for solver in solvers:
            if not known[solver.label] and (earlier := self.hopeless(problem, solver)):
                known[solver.label] = [earlier]
        jobs = [
            {
                "solver": solver.label,
                "threads": solver.n_threads,
                "settings": list(solver.grid[len(known[solver.label]) :]),
                "budget": self.limits.budget - _spent(known[solver.label]),
            }
            for solver in solvers
            if not (self.only_known or self._finished(known[solver.label], solver))
        ]
        by_label = {solver.label: solver for solver in solvers}
        spec = _specification(problem) | {
            "optimum": None if bound is None else bound["lower_bound"],
            "target": min(TARGETS),
            "limit": self.limits.run,
        }
        for label, cell in self._cells(spec, jobs):
            solver = by_label[label]
            cell |= {"limit": self.limits.run, "budget": self.limits.budget, **self._when()}
            self.store.put(self._key(problem, solver, cell["setting"]), cell)
            known[label].append(cell)
            self.log(f"{problem}: {label} {_describe(solver, cell)}")
        return [
            self._series(problem, solver, bound, known[solver.label])
            for solver in solvers
            if known[solver.label]
        ]

    def hopeless(self, problem: Problem, solver: BaseSolver) -> dict[str, Any] | None:
        """Return a cell that says so where a smaller C took all the time and came not near."""
        alike = [
            other
            for other in self.planned
            if (other.data, other.objective) == (problem.data, problem.objective)
            and other.C < problem.C
        ]
        for other in sorted(alike, key=lambda other: other.C):
            cells = self._known(other, solver)
            near = any(reached(cell, max(TARGETS)) for cell in cells)
            compared = OBJECTIVES[problem.objective].has_primal or len(cells) == 1
            if cells and compared and not near and self._out_of_time(cells, solver):
                return {"setting": solver.grid[0], "status": "skipped", "since": other.C} | {
                    name: cells[-1][name] for name in ("limit", "budget", "date", "commit")
                }
        return None

    def _out_of_time(self, cells: Sequence[dict[str, Any]], solver: BaseSolver) -> bool:
        last = cells[-1]
        budget, limit = self.limits.budget, self.limits.run
        if self.only_known:
            budget, limit = last["budget"], last["limit"]
        left = len(cells) < len(solver.grid)
        return last["status"] == "timeout" or (left and exhausted(cells, solver, budget, limit))

    def bound(self, problem: Problem) -> dict[str, float] | None:
        """Return the certified lower bound on the optimum, None where primals are not compared.

        Raises
        ------
        FileNotFoundError
            When the data are absent.
        """
        if not OBJECTIVES[problem.objective].has_primal:
            return None
        key = _reference_key(_problem_key(problem))
        known = self.store.get(key)
        if known is not None or self.only_known:
            return known
        spec = _specification(problem) | {"limit": self.limits.reference}
        for event in self._work(spec, [{"solver": "reference", "tol": REFERENCE_TOL}]):
            if event["event"] == "bound":
                found = {name: event[name] for name in ("primal", "gap", "lower_bound")}
                self.store.put(key, found)
                self.log(f"{problem}: optimum known to {found['gap']:.1e}")
                return found
        raise RuntimeError(f"{problem}: no bound on the optimum, its run ended without one")

    def _known(self, problem: Problem, solver: BaseSolver) -> list[dict[str, Any]]:
        """The finished cells of a solver, in the order of its grid, without a gap."""
        cells: list[dict[str, Any]] = []
        for setting in solver.grid:
            cell = self.store.get(self._key(problem, solver, setting))
            if cell is None or (not self.only_known and self._deserves_another_try(cell)):
                break
            cells.append(self._judged(problem, cell))
            if self._finished(cells, solver):
                break
        return cells

    def _judged(self, problem: Problem, cell: dict[str, Any]) -> dict[str, Any]:
        """Measure the distance by the bound known now, which may be better than it was then."""
        bound = self.store.get(_reference_key(_problem_key(problem)))
        if bound is None or cell.get("primal") is None:
            return cell
        return cell | {"suboptimality": cell["primal"] / bound["lower_bound"] - 1.0}

    def _deserves_another_try(self, cell: dict[str, Any]) -> bool:
        """Errors may have been mended since, and a timeout may get more time now."""
        timed_out = cell["status"] == "timeout" and cell["limit"] < self.limits.run
        return cell["status"] == "error" or timed_out

    def _cells(
        self, spec: dict[str, Any], jobs: list[dict[str, Any]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the cells of all jobs; a run that was ended becomes one too.

        One worker does them all, or one each where it cannot fork. When it has to be ended, the
        next one goes on with the jobs that are left.
        """
        setting = {job["solver"]: job["settings"][0] for job in jobs}  # where each solver is
        while jobs:
            batch = jobs if CAN_FORK else jobs[:1]
            running = batch[0]["solver"]
            for event in self._work(spec, batch):
                kind = event.pop("event")
                running = event.pop("solver", running)
                if kind == "start":
                    setting[running] = event["setting"]
                elif kind == "cell":
                    yield running, event
                elif kind == "ended" and event["status"] != "ok":
                    yield running, {"setting": setting[running], "limit": self.limits.run, **event}
            done = next(i for i, job in enumerate(jobs) if job["solver"] == running)
            jobs = jobs[done + 1 :]

    def _work(self, spec: dict[str, Any], jobs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        with locked(self.lock):
            start = self.events or start_worker
            for event in start(spec | {"jobs": jobs}, self.limits.patience * spec["limit"]):
                if event["event"] == "absent":
                    raise FileNotFoundError(event["reason"])
                yield event

    def _finished(self, cells: Sequence[dict[str, Any]], solver: BaseSolver) -> bool:
        last = cells[-1] if cells else {"status": "none"}
        ended = last["status"] in FINAL or reached(last, min(TARGETS))
        limits = self.limits
        return (
            ended
            or len(cells) == len(solver.grid)
            or exhausted(cells, solver, limits.budget, limits.run)
        )

    def _key(self, problem: Problem, solver: BaseSolver, setting: float) -> dict[str, Any]:
        """Everything a figure depends on."""
        return {**_problem_key(problem), **_solver_key(solver), "setting": setting}

    def _when(self) -> dict[str, Any]:
        found = provenance.provenance(())
        return {name: found[name] for name in ("date", "commit")}

    def _series(
        self,
        problem: Problem,
        solver: BaseSolver,
        bound: dict[str, float] | None,
        cells: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """What the tables, and `known_cells`, need to know of one solver on one problem."""
        return {
            **_problem_key(problem),
            **_solver_key(solver),
            "ours": solver.is_ours,
            "threads": solver.n_threads,
            "setting": solver.setting,
            "package": solver.package,
            "reference": bound,
            "state": state(cells, solver, bound is not None),
            "cells": cells,
        }


def known_cells(results: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Read the cells and bounds of a result file, with the keys a store has them by."""
    of_problem = ("data", "source", "C", "objective")
    of_solver = ("solver", "version", "code", "machine")
    for series in results.get("series", []):
        problem = {name: series[name] for name in of_problem}
        if series["reference"] is not None:
            yield _reference_key(problem), series["reference"]
        for cell in series["cells"]:
            if cell["status"] != "skipped":
                key = problem | {name: series[name] for name in of_solver}
                yield key | {"setting": cell["setting"]}, cell


def state(cells: Sequence[dict[str, Any]], solver: BaseSolver, compared: bool) -> str:
    """Say in a word how a series ended."""
    if not cells:
        return "not run"
    last = cells[-1]
    if last["status"] in FINAL:
        return str(last["status"])
    if compared and reached(last, min(TARGETS)):
        return "reached"
    if len(cells) < len(solver.grid):
        over = exhausted(cells, solver, last["budget"], last["limit"])
        return "over budget" if over else "unfinished"
    return "not reached" if compared else "done"


def start_worker(spec: dict[str, Any], patience: float) -> Iterator[dict[str, Any]]:
    """Start a worker, yield its lines, end it when it keeps silent for longer than `patience`.

    Yields
    ------
    dict
        The worker's lines; at last "ended" with a status where the worker did not end by itself.
    """
    command = [sys.executable, "-m", "benchmarks.solvers_bench.worker", json.dumps(spec)]
    with subprocess.Popen(
        command,
        cwd=provenance.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | dict.fromkeys(ONE_THREAD, "1"),
        text=True,
        start_new_session=True,  # to end it with the processes it forked
    ) as process:
        lines: queue.Queue[str | None] = queue.Queue()
        errors: list[str | None] = []
        readers = [
            threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True),
            threading.Thread(target=_read, args=(process.stderr, errors.append), daemon=True),
        ]
        for reader in readers:
            reader.start()
        gave_up = True  # also when whoever reads this goes away, or on Ctrl-C
        try:
            while (line := lines.get(timeout=patience)) is not None:
                if line.startswith("{"):
                    yield json.loads(line)
            gave_up = False
        except queue.Empty:
            pass
        finally:
            if gave_up:
                _end(process)
        ended = {"status": "timeout"} if gave_up else how_it_ended(process.wait())
        readers[1].join(timeout=5)
    if ended["status"] == "error" and (text := [line for line in errors if line]):
        ended["error"] = text[-1][:300]
    if ended["status"] != "ok":
        yield {"event": "ended", **ended}


def _end(process: subprocess.Popen[str]) -> None:
    """End a worker and what it forked."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _read(stream: Any, take: Callable[[Any], None]) -> None:
    for line in stream:
        take(line.rstrip("\n"))
    take(None)


@contextlib.contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Hold a lock file, where there is one to hold and the system has such locks."""
    if path is None or sys.platform == "win32":
        yield
        return
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _problem_key(problem: Problem) -> dict[str, Any]:
    return {
        "data": problem.data,
        "source": datasets.source(problem.data),
        "C": problem.C,
        "objective": problem.objective,
    }


def _solver_key(solver: BaseSolver) -> dict[str, Any]:
    return {
        "solver": solver.label,
        "version": solver.version(),
        "code": provenance.fingerprint(*solver_files(solver)),
        "machine": [provenance.machine()[name] for name in ("cpu", "cores")],
    }


def _reference_key(problem: dict[str, Any]) -> dict[str, Any]:
    return {**problem, "solver": "reference", "tol": REFERENCE_TOL}


def _specification(problem: Problem) -> dict[str, Any]:
    return {
        "data": problem.data,
        "layout": problem.layout,
        "C": problem.C,
        "objective": problem.objective,
    }


def _spent(cells: Sequence[dict[str, Any]]) -> float:
    return sum(cell.get("total", 0.0) for cell in cells)


def _describe(solver: BaseSolver, cell: dict[str, Any]) -> str:
    text = f"{solver.setting}={cell['setting']:g} {cell['status']}"
    if "cpu" not in cell:
        return text
    value = cell["suboptimality"]
    far = "" if value is None else f", {value:.1e} above the bound"
    return f"{text}: {cell['cpu']:.3g} s CPU{far}, accuracy {100 * cell['accuracy']:.2f} %"
