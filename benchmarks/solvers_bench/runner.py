"""Walk over problems and solvers, a worker process for each pair, every finished run kept at once.

A solver's settings are tried from loose to tight until its primal is within the smallest target, a
run exceeds the time limit, or all its runs together exceed the budget.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import datasets, provenance
from benchmarks.cells import CellStore
from benchmarks.solvers_bench import base
from benchmarks.solvers_bench.base import BaseSolver
from benchmarks.solvers_bench.objective import OBJECTIVES
from benchmarks.solvers_bench.problems import Problem
from benchmarks.solvers_bench.worker import reached

TARGETS = (1e-2, 1e-3)
REFERENCE_TOL = 2e-5
SIGXCPU = 24  # how the limit on CPU seconds ends a process
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Events = Callable[[dict[str, Any], float], Iterator[dict[str, Any]]]


@dataclass
class Limits:
    """CPU seconds for a run and for all runs of a solver on a problem, and of the bound's run.

    The wall clock ends a run that waits instead of computing, at `patience` times its limit.
    """

    run: float = 120.0
    budget: float = 300.0
    reference: float = 300.0
    patience: float = 5.0


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
    log : callable
        Gets a line of text per event.
    events : callable
        Starts a worker and yields its lines; tests replace it.
    """

    store: CellStore
    limits: Limits = field(default_factory=Limits)
    lock: Path | None = None
    log: Callable[[str], None] = print
    events: Events | None = None

    def run(self, problems: Sequence[Problem], solvers: Sequence[BaseSolver]) -> dict[str, Any]:
        """Measure every solver on every problem it is meant for.

        Parameters
        ----------
        problems : sequence of Problem
            What to solve.
        solvers : sequence of BaseSolver
            By whom.

        Returns
        -------
        dict
            "series" (one per problem and solver), "absent" solvers and "absent_data", with reasons.
        """
        absent: dict[str, str] = {}
        for solver in solvers:
            reason = solver.missing()
            if reason is not None:
                absent[solver.label] = reason
                self.log(f"absent: {solver.label}: {reason}")
        absent_data: dict[str, str] = {}
        series = []
        for problem in problems:
            if problem.data in absent_data:
                continue
            try:
                bound = self.bound(problem)
            except FileNotFoundError as error:
                absent_data[problem.data] = str(error)
                self.log(f"absent: {error}")
                continue
            for solver in solvers:
                if problem.objective in solver.objectives and solver.label not in absent:
                    series.append(self.series(problem, solver, bound))
        return {"series": series, "absent": absent, "absent_data": absent_data}

    def bound(self, problem: Problem) -> dict[str, float] | None:
        """Return the certified lower bound on the optimum, None where primals are not compared.

        Raises
        ------
        FileNotFoundError
            When the data are absent.
        """
        if not OBJECTIVES[problem.objective].has_primal:
            return None
        key = {**_problem_key(problem), "solver": "reference", "tol": REFERENCE_TOL}
        known = self.store.get(key)
        if known is not None:
            return known
        spec = _specification(problem, "reference") | {
            "tol": REFERENCE_TOL,
            "limit": self.limits.reference,
        }
        for event in self._work(spec, self.limits.reference, 1):
            if event["event"] == "absent":
                raise FileNotFoundError(event["reason"])
            if event["event"] == "bound":
                found = {name: event[name] for name in ("primal", "gap", "lower_bound")}
                self.store.put(key, found)
                self.log(f"{problem}: optimum known to {found['gap']:.1e}")
                return found
        raise RuntimeError(f"{problem}: no bound on the optimum, its run ended without one")

    def series(
        self, problem: Problem, solver: BaseSolver, bound: dict[str, float] | None
    ) -> dict[str, Any]:
        """Measure one solver on one problem, from the store as far as it goes."""
        cells: list[dict[str, Any]] = []
        for setting in solver.grid:
            cell = self.store.get(self._key(problem, solver, setting))
            if cell is None or (cell["status"] == "timeout" and cell["limit"] < self.limits.run):
                break
            cells.append(cell)
            if self._finished(cells):
                break
        optimum = None if bound is None else bound["lower_bound"]
        if not self._finished(cells) and len(cells) < len(solver.grid):
            spec = _specification(problem, solver.label) | {
                "settings": list(solver.grid[len(cells) :]),
                "optimum": optimum,
                "target": min(TARGETS),
                "limit": self.limits.run,
                "budget": self.limits.budget - _spent(cells),
            }
            for cell in self._cells(spec, solver):
                self.store.put(self._key(problem, solver, cell["setting"]), cell)
                cells.append(cell)
                self.log(f"{problem}: {solver.label} {_describe(solver, cell)}")
        return {
            "data": problem.data,
            "C": problem.C,
            "objective": problem.objective,
            "solver": solver.label,
            "ours": solver.is_ours,
            "threads": solver.n_threads,
            "setting": solver.setting,
            "package": f"{solver.package} {solver.version()}",
            "reference_gap": None if bound is None else bound["gap"],
            "state": state(cells, solver, bound is not None),
            "cells": cells,
        }

    def _cells(self, spec: dict[str, Any], solver: BaseSolver) -> Iterator[dict[str, Any]]:
        """Yield the worker's cells; a run that was ended becomes one too."""
        waiting = list(spec["settings"])
        started = False
        for event in self._work(spec, self.limits.run, solver.n_threads):
            kind = event.pop("event")
            if kind == "absent":
                raise FileNotFoundError(event["reason"])
            if kind == "start":
                started = True
            elif kind == "cell":
                started = False
                waiting.remove(event["setting"])
                yield event
            elif kind == "ended" and waiting and (started or event["status"] == "error"):
                yield {"setting": waiting[0], "limit": self.limits.run, **event}

    def _work(self, spec: dict[str, Any], limit: float, threads: int) -> Iterator[dict[str, Any]]:
        with locked(self.lock):
            events = self.events or (lambda s, patience: start_worker(s, patience, threads))
            yield from events(spec, self.limits.patience * limit)

    def _finished(self, cells: Sequence[dict[str, Any]]) -> bool:
        last = cells[-1] if cells else {"status": "none"}
        ended = last["status"] in ("timeout", "error") or reached(last, min(TARGETS))
        return ended or _spent(cells) > self.limits.budget

    def _key(self, problem: Problem, solver: BaseSolver, setting: float) -> dict[str, Any]:
        """Everything a figure depends on."""
        code = provenance.fingerprint(base.solver_file(solver), Path(base.__file__))
        return {
            **_problem_key(problem),
            "solver": solver.label,
            "setting": setting,
            "version": solver.version(),
            "code": code,
            "machine": [provenance.machine()[name] for name in ("cpu", "cores")],
        }


def state(cells: Sequence[dict[str, Any]], solver: BaseSolver, compared: bool) -> str:
    """Say in a word how a series ended."""
    if not cells:
        return "not run"
    last = cells[-1]
    if last["status"] in ("timeout", "error"):
        return last["status"]
    if compared and reached(last, min(TARGETS)):
        return "reached"
    if len(cells) < len(solver.grid):
        return "over budget"
    return "not reached" if compared else "done"


def start_worker(
    spec: dict[str, Any], patience: float, threads: int = 1
) -> Iterator[dict[str, Any]]:
    """Start the worker, yield its lines, end it when a run keeps silent for longer than `patience`.

    Yields
    ------
    dict
        The worker's lines; at last "ended" with status "timeout" or "error" where it was ended.
    """
    command = [sys.executable, "-m", "benchmarks.solvers_bench.worker", json.dumps(spec)]
    environment = os.environ | dict.fromkeys(BLAS_THREADS, str(threads))
    with subprocess.Popen(
        command,
        cwd=provenance.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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
                process.kill()
        code = process.wait()
        readers[1].join(timeout=5)
    if gave_up or code == -SIGXCPU:
        yield {"event": "ended", "status": "timeout"}
    elif code != 0:
        text = [line for line in errors if line] or [f"exit code {code}"]
        yield {"event": "ended", "status": "error", "error": text[-1][:300]}


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


def _specification(problem: Problem, solver: str) -> dict[str, Any]:
    return {
        "data": problem.data,
        "layout": problem.layout,
        "C": problem.C,
        "objective": problem.objective,
        "solver": solver,
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
