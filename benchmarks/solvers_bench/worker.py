"""Solvers on one problem, each in a process of its own: prints a JSON line per event.

    python -m benchmarks.solvers_bench.worker SPECIFICATION

A process per solver, because a compiled one can only be stopped by ending its process, and because
the peak of a process's memory never falls. On Linux they are forked after the data are loaded;
elsewhere the runner starts a worker for each. The runner reads the lines as they come; what is
printed before the time limit ends a process is kept.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import datasets
from benchmarks.reference_optima import certified_bound
from benchmarks.solvers_bench import memory
from benchmarks.solvers_bench.base import BaseSolver, all_solvers
from benchmarks.solvers_bench.objective import OBJECTIVES, Objective

CAN_FORK = sys.platform == "linux"
SHORT = 1.0  # seconds: shorter runs are repeated, and the fastest counts
REPEATS = 3
COARSE = 0.04  # seconds: clocks of CPU time may tick in steps of 4 ms, so measure no less
SIGXCPU = 24  # how the limit on CPU seconds ends a process


def main() -> int:
    """Read the specification, load the data, do the jobs."""
    spec = json.loads(sys.argv[1])
    try:
        data = datasets.load(spec["data"], layout=spec["layout"])
    except FileNotFoundError as error:
        tell({"event": "absent", "reason": str(error)})
        return 0
    gc.collect()
    gc.freeze()  # what is alive now need not be looked at before every run
    for job in spec["jobs"]:
        if len(spec["jobs"]) == 1:
            do(job, data, spec)
        else:
            tell({"solver": job["solver"], **in_child(job, data, spec)})
    return 0


def tell(event: dict[str, Any]) -> None:
    """Print one line."""
    print(json.dumps(event), flush=True)


def in_child(job: dict[str, Any], data: datasets.Dataset, spec: dict[str, Any]) -> dict[str, Any]:
    """Do a job in a forked process and say how that ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            do(job, data, spec)
            code = 0
        finally:
            os._exit(code)
    return {"event": "ended", **how_it_ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))}


def how_it_ended(code: int) -> dict[str, Any]:
    """Translate the exit code of a process."""
    if code == 0:
        return {"status": "ok"}
    if code == -SIGXCPU:
        return {"status": "timeout"}
    return {"status": "error", "error": f"ended with exit code {code}"}


def do(job: dict[str, Any], data: datasets.Dataset, spec: dict[str, Any]) -> None:
    """Do a job and tell its events, each with the solver's label."""
    with threadpool_limits(job.get("threads", 1)):
        for event in work(job, data, spec):
            tell({"solver": job["solver"], **event})


def work(
    job: dict[str, Any], data: datasets.Dataset, spec: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield what there is to tell: a "bound", or "start" and "cell" of every run.

    Parameters
    ----------
    job : dict
        "solver" (a label, or "reference" with "tol") , "settings", "budget" (CPU seconds for all).
    data : Dataset
        The data.
    spec : dict
        "C", "objective", "optimum", "target", "limit" (CPU seconds a run).

    Yields
    ------
    dict
        With "event" and its figures.
    """
    objective = OBJECTIVES[spec["objective"]]
    if job["solver"] == "reference":
        top_k = objective.k(data.n_classes)
        loss = objective.loss or "crammer_singer"
        bound = certified_bound(data, spec["C"], loss, top_k, job["tol"], spec["limit"])
        yield {"event": "bound", **bound}
        return
    solver = next(solver for solver in all_solvers() if solver.label == job["solver"])
    # Import the package now, outside of timings and memory, and in this process alone: a package
    # may change the processor's state (snapml has it flush small numbers to zero).
    solver.missing()
    memory.forget_peak()
    before = memory.resident_mb()
    solver.set_objective(data, spec["C"], objective)
    cells: list[dict[str, Any]] = []
    for setting in job["settings"]:
        yield {"event": "start", "setting": setting}
        limit_cpu(spec["limit"] * solver.n_threads)
        cell = run(solver, setting, data, objective, spec)
        limit_cpu(math.inf)
        peak = memory.peak_mb()
        cell["memory_mb"] = None if peak is None or before is None else round(peak - before, 1)
        cells.append({"setting": setting, **cell})
        yield {"event": "cell", **cells[-1]}
        if cell["status"] == "error" or reached(cell, spec["target"]):
            return
        if exhausted(cells, solver, job["budget"], spec["limit"]):
            return


def run(
    solver: BaseSolver,
    setting: float,
    data: datasets.Dataset,
    objective: Objective,
    spec: dict[str, Any],
) -> dict[str, Any]:
    """Train at one setting, short runs several times, and judge the model."""
    cpu, wall, spent = [], [], 0.0
    in_a_row = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            while not cpu or (spent < SHORT and len(cpu) < REPEATS):
                gc.collect()
                start_wall, start = time.perf_counter(), time.process_time()
                for _ in range(in_a_row):
                    solver.run(setting)
                used = time.process_time() - start
                spent += used
                if used < COARSE and in_a_row < 100:
                    in_a_row *= 5
                    continue
                cpu.append(used / in_a_row)
                wall.append((time.perf_counter() - start_wall) / in_a_row)
        except Exception as error:
            return {"status": "error", "error": f"{type(error).__name__}: {error}"[:300]}
    unconverged = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    result = solver.get_result()
    coef = result.pop("coef", None)
    value = None if coef is None else objective.value(data, np.asarray(coef), spec["C"])
    optimum = spec["optimum"]
    compared = value is not None and optimum is not None
    return {
        "status": "not converged" if unconverged else "ok",
        "cpu": min(cpu),
        "wall": min(wall),
        "total": spent,
        "primal": value,
        "suboptimality": value / optimum - 1.0 if compared else None,
        "accuracy": float((solver.predict(data.X_test) == data.y_test).mean()),
        **result,
    }


def reached(cell: dict[str, Any], target: float) -> bool:
    """Tell whether a cell is close enough for the walk over the settings to end."""
    value = cell.get("suboptimality")
    return value is not None and value <= target


def exhausted(
    cells: Sequence[dict[str, Any]], solver: BaseSolver, budget: float, limit: float
) -> bool:
    """Tell whether the budget is spent, or a number of epochs takes what the next would need.

    Epochs cost the same each, so a run that would be ended on the way need not be started.
    """
    left = budget - sum(cell.get("total", 0.0) for cell in cells)
    coming = [setting for setting in solver.grid if cells and setting > cells[-1]["setting"]]
    if solver.setting != "epochs" or not coming or "cpu" not in cells[-1]:
        return left < 0.0
    return cells[-1]["cpu"] * coming[0] / cells[-1]["setting"] > min(left, limit)


def limit_cpu(seconds: float) -> None:
    """End this process when it has used so many more seconds of CPU (where the system can)."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        unlimited = math.isinf(seconds)
        soft = hard if unlimited else math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


if __name__ == "__main__":
    raise SystemExit(main())
