"""Measure every solver, resuming where an earlier run stopped, and write the results.

    python -m benchmarks.solvers_bench [--full] [--fresh] [--data NAME ...] [--C VALUE ...]

Every finished run is kept in ``benchmarks/.cache/solvers.jsonl``, by everything it depends on:
data, solver and its version (polymargin: a hash of its sources), setting, machine. ``--fresh``
forgets them, ``--from-results`` adds what the result file holds (of the same kind of machine): so a
grid of many hours can be measured over days and on several machines.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.cells import CellStore
from benchmarks.reference_optima import CACHE, read_json
from benchmarks.solvers_bench.base import all_solvers
from benchmarks.solvers_bench.objective import OBJECTIVES
from benchmarks.solvers_bench.problems import default_problems, full_problems, select
from benchmarks.solvers_bench.runner import Limits, Runner, known_cells
from benchmarks.solvers_bench.tables import compact, page, write

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for, write ``results/solvers.{md,json}`` (``solvers_full`` with --full)."""
    options = _options(argv)
    known = full_problems() if options.full else default_problems()
    problems = select(known, options.data, options.C, options.objective)
    solvers = [s for s in all_solvers() if any(name in s.label for name in options.solver or [""])]
    if not problems or not solvers:
        print("nothing to run: no problem or no solver of that name", file=sys.stderr)
        return 2
    limits = Limits(run=options.limit, budget=options.budget or (120.0 if options.full else 20.0))
    name = "solvers_full" if options.full else "solvers"
    store = CellStore(options.cache / "solvers.jsonl", fresh=options.fresh)
    if options.from_results:
        store.take_over(known_cells(read_json(options.output / f"{name}.json")))
    runner = Runner(
        store,
        limits,
        options.lock,
        only_known=options.only_known,
        log=lambda text: print(text, flush=True),
    )
    packages = sorted({solver.package for solver in solvers} | set(provenance.PACKAGES))
    heading = {
        **provenance.provenance(packages),
        "planned": [str(problem) for problem in problems],
    }

    def save(results: dict[str, Any]) -> None:
        write(options.output / f"{name}.json", heading | compact(results))

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # workers are ended with us
    try:
        results = runner.run(problems, solvers, save)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return 130
    text = page(heading | compact(results))
    (options.output / f"{name}.md").write_text(f"# Solvers, a table per problem\n\n{text}")
    print(text)
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="ten data sets, four C")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument(
        "--from-results", action="store_true", help="what the result file has is measured already"
    )
    parser.add_argument(
        "--only-known", action="store_true", help="measure nothing, write what earlier runs found"
    )
    parser.add_argument("--data", nargs="+", help="only these data sets")
    parser.add_argument("--C", nargs="+", type=float, help="only these values of C")
    parser.add_argument("--objective", nargs="+", choices=tuple(OBJECTIVES))
    parser.add_argument("--solver", nargs="+", help="only solvers whose name contains one of these")
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds a run (120)")
    parser.add_argument("--budget", type=float, help="CPU seconds a solver and problem (20; 120)")
    parser.add_argument("--lock", type=Path, help="a file to lock around each measurement")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the finished runs")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
