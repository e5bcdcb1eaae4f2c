"""One solver on one problem, in a process of its own: prints a JSON line per run.

    python -m benchmarks.solvers_bench.worker SPECIFICATION

A process of its own, because a compiled solver can only be stopped by ending its process, and
because the peak of a process's memory never falls. The runner reads the lines as they come; what is
printed before the time limit ends the process is kept.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from benchmarks.reference_optima import certified_bound
from benchmarks.solvers_bench import memory
from benchmarks.solvers_bench.base import BaseSolver, all_solvers
from benchmarks.solvers_bench.objective import OBJECTIVES, Objective

SHORT = 1.0  # seconds: shorter runs are repeated, and the fastest counts
REPEATS = 3


def main() -> int:
    """Read the specification, run, print."""
    specification = json.loads(sys.argv[1])
    for line in work(specification):
        print(json.dumps(line), flush=True)
    return 0


def work(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what there is to tell: "absent" data, a "bound", or "start" and "cell" of every run.

    Parameters
    ----------
    spec : dict
        "data", "layout", "C", "objective", "solver" (a label, or "reference"), "settings",
        "optimum", "target", "limit" (CPU seconds a run), "budget" (CPU seconds for all).

    Yields
    ------
    dict
        With "event" and its figures.
    """
    try:
        data = datasets.load(spec["data"], layout=spec["layout"])
    except FileNotFoundError as error:
        yield {"event": "absent", "reason": str(error)}
        return
    objective = OBJECTIVES[spec["objective"]]
    if spec["solver"] == "reference":
        yield {"event": "start"}
        top_k = objective.k(data.n_classes)
        loss = objective.loss or "crammer_singer"
        bound = certified_bound(data, spec["C"], loss, top_k, spec["tol"], spec["limit"])
        yield {"event": "bound", **bound}
        return
    solver = next(solver for solver in all_solvers() if solver.label == spec["solver"])
    memory.forget_peak()
    before = memory.resident_mb()
    solver.set_objective(data, spec["C"], objective)
    spent = 0.0
    for setting in spec["settings"]:
        yield {"event": "start"}
        limit_cpu(spec["limit"] * solver.n_threads)
        cell = run(solver, setting, data, objective, spec)
        limit_cpu(math.inf)
        peak = memory.peak_mb()
        cell["memory_mb"] = None if peak is None or before is None else peak - before
        yield {"event": "cell", "setting": setting, **cell}
        spent += cell.get("total", 0.0)
        if cell["status"] == "error" or reached(cell, spec["target"]) or spent > spec["budget"]:
            return


def run(
    solver: BaseSolver,
    setting: float,
    data: datasets.Dataset,
    objective: Objective,
    spec: dict[str, Any],
) -> dict[str, Any]:
    """Train at one setting, short runs several times, and judge the model."""
    cpu, wall = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            while not cpu or (sum(cpu) < SHORT and len(cpu) < REPEATS):
                gc.collect()
                start_wall, start = time.perf_counter(), time.process_time()
                solver.run(setting)
                cpu.append(time.process_time() - start)
                wall.append(time.perf_counter() - start_wall)
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
        "total": sum(cpu),
        "primal": value,
        "suboptimality": value / optimum - 1.0 if compared else None,
        "accuracy": float((solver.predict(data.X_test) == data.y_test).mean()),
        **result,
    }


def reached(cell: dict[str, Any], target: float) -> bool:
    """Tell whether a cell is close enough for the walk over the settings to end."""
    value = cell.get("suboptimality")
    return value is not None and value <= target


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
