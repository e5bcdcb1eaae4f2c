"""CPU seconds to a given accuracy: polymargin against LIBLINEAR ``-s 4``, one thread each.

    python -m benchmarks.speed [--data NAME ...] [--long] [--repeats 3] [--quick] [--fresh]

Both solve Crammer and Singer's problem without an intercept from arrays already in memory, each in
its own format; converting is not counted. The time of LIBLINEAR is its fastest run over a fixed
grid of ``-e`` whose primal is close enough to the optimum; ours is one ``fit`` at the largest
``tol`` of a fixed grid that gets there, its certificate included. One function evaluates every
primal. Grids are walked from loose to tight (after a long run of LIBLINEAR far from a target, the
next one is put off, and made up for if the one behind it gets there); the runs that got there
are then repeated, LIBLINEAR and polymargin in turns with fresh random orders, and the fastest that
gets there counts. A finished case is kept in
``benchmarks/.cache/speed.jsonl``, so that an interrupted run goes on; ``--fresh`` starts over.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import datasets, provenance
from benchmarks.cells import CellStore
from benchmarks.objective import crammer_singer_primal
from benchmarks.peers import fit_liblinear, liblinear_problem
from benchmarks.reference_optima import CACHE, lower_bound, read_json, write_json
from polymargin import LinearMulticlassSVC

RESULTS = Path(__file__).resolve().parent / "results"
TARGETS = (1e-2, 1e-3)
EPS_GRID = tuple(
    step * 10.0**-decade for decade in range(5) for step in (1.0, 0.5, 0.3, 0.2)
)  # 1, 0.5, 0.3, 0.2, 0.1, ..., 0.00002
TOL_GRID = (5e-2, 3e-2, 2e-2, 1e-2, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 3e-4, 2e-4, 1e-4)
LONG_RUN = 10.0  # seconds of CPU: such runs of LIBLINEAR are not repeated
FAR = 3.0  # times the target: the next setting, at about half the tolerance, will hardly get there

Fit = Callable[[float, int], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class Case:
    """A problem, the ratio wanted at 1e-3, and the layout polymargin gets the features in.

    `quick` cases are in the quick run, `long` ones only in one of all or when they are named.
    """

    data: str
    C: float
    wanted: float
    layout: datasets.Layout = "native"
    quick: bool = True
    long: bool = False

    def __str__(self) -> str:
        return f"{self.data} C={self.C:g}"


CASES = (
    Case("news20", 1.0, 3.0),
    Case("rcv1_multiclass_sub", 1.0, 3.0),
    Case("banking77", 1.0, 3.0),
    Case("clinc150", 1.0, 3.0),
    Case("letter", 1.0, 3.0),
    Case("letter", 10.0, 3.0),
    Case("usps", 1.0, 4.0, quick=False),
    Case("mnist", 0.01, 2.0, layout="csr"),
    Case("quickdraw345", 0.01, 5.0, layout="csr", quick=False, long=True),
    Case("mnist", 1.0, 5.0, layout="csr", quick=False, long=True),
)


@dataclass(frozen=True)
class Run:
    """One training run: the tolerance it was given, the primal it found, its CPU seconds."""

    setting: float
    primal: float
    seconds: float


@dataclass(frozen=True)
class Row:
    """One line of the table. A time is None where no run got there."""

    data: str
    C: float
    target: float
    wanted: float | None
    liblinear: float | None
    eps: float | None
    float64: float | None
    tol: float | None
    float32: float | None
    cached: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times faster float64 is than LIBLINEAR."""
        return _ratio(self.liblinear, self.float64)

    @property
    def ratio32(self) -> float | None:
        """How many times faster float32 is than LIBLINEAR."""
        return _ratio(self.liblinear, self.float32)


class Contender:
    """One program on one problem: walks its grid of tolerances, repeats, keeps every run.

    Parameters
    ----------
    fit : callable
        ``fit(setting, repeat) -> (coef, CPU seconds)``.
    primal : callable
        ``primal(coef) -> float``.
    optimum : float
        The value the targets are relative to.
    runs : sequence of Run
        Runs made earlier, on this problem and machine.
    """

    def __init__(
        self,
        fit: Fit,
        primal: Callable[[np.ndarray], float],
        optimum: float,
        runs: Sequence[Run] = (),
    ) -> None:
        self.fit, self.primal, self.optimum = fit, primal, optimum
        self.runs = list(runs)

    def run(self, setting: float, repeat: int) -> Run:
        """Train once and keep the result."""
        gc.collect()
        coef, seconds = self.fit(setting, repeat)
        self.runs.append(Run(setting, self.primal(coef), seconds))
        return self.runs[-1]

    def reaches(self, run: Run, target: float) -> bool:
        """Tell whether a run got within `target` of the optimum."""
        return run.primal <= (1.0 + target) * self.optimum

    def best(self, target: float, *, loosest: bool) -> Run | None:
        """Return the fastest run that got there, among all or only at the loosest setting."""
        there = [run for run in self.runs if self.reaches(run, target)]
        if loosest and there:
            setting = max(run.setting for run in there)
            there = [run for run in there if run.setting == setting]
        return min(there, key=lambda run: run.seconds, default=None)

    def walk(self, grid: Sequence[float], *, further: int, put_off: bool = False) -> None:
        """Run from loose to tight until every target is met, then `further` short ones more.

        With `put_off`, the setting after a long run far from the next target is made only if the
        one behind it meets a target.
        """
        run, waiting = None, None
        for setting in grid:
            far = put_off and run is not None and self._is_far(run)
            if far and waiting is None and setting != grid[-1]:
                waiting = setting
                continue
            unmet = self._unmet()
            run = self.run(setting, 0)
            if waiting is not None and self._unmet() != unmet:
                self.run(waiting, 0)
            waiting = None
            if self.reaches(run, min(TARGETS)):
                if further == 0 or run.seconds > LONG_RUN:
                    return
                further -= 1

    def _unmet(self) -> list[float]:
        return [target for target in TARGETS if self.best(target, loosest=False) is None]

    def _is_far(self, run: Run) -> bool:
        distance = run.primal / self.optimum - 1.0
        return run.seconds > LONG_RUN / 2 and distance > FAR * max(self._unmet(), default=np.inf)


def measure(case: Case, repeats: int, cached: Sequence[Run] = ()) -> tuple[list[Row], list[Run]]:
    """Measure one case.

    Parameters
    ----------
    case : Case
        What to solve.
    repeats : int
        Runs per setting that matters.
    cached : sequence of Run
        LIBLINEAR's runs measured earlier; it is not run again when there are any.

    Returns
    -------
    rows : list of Row
        One per target.
    peer_runs : list of Run
        All runs of LIBLINEAR.
    """
    data = datasets.load(case.data, layout=case.layout)
    optimum = lower_bound(data, case.C)

    def primal(coef: np.ndarray) -> float:
        return crammer_singer_primal(data.X_train, data.y_train, coef, case.C)

    peer = Contender(_peer_fit(data, case.C), primal, optimum, cached)
    ours = {
        dtype: Contender(_our_fit(data, case.C, dtype), primal, optimum)
        for dtype in (np.float64, np.float32)
    }
    if not cached:
        peer.walk(EPS_GRID, further=1, put_off=True)
    for contender in ours.values():
        contender.walk(TOL_GRID, further=0)
    for repeat in range(1, repeats):
        if not cached:
            _repeat(peer, repeat, loosest=False)
        for contender in ours.values():
            _repeat(contender, repeat, loosest=True)
    _check_bound(case, peer, *ours.values())
    rows = [
        _row(case, target, peer, ours[np.float64], ours[np.float32], bool(cached))
        for target in TARGETS
    ]
    return rows, peer.runs


def _peer_fit(data: datasets.Dataset, C: float) -> Fit:
    problem = liblinear_problem(data.X_train, data.y_train)

    def fit(eps: float, repeat: int) -> tuple[np.ndarray, float]:
        result = fit_liblinear(problem, C, eps)  # its random order goes on from run to run
        return result.coef, result.seconds

    return fit


def _our_fit(data: datasets.Dataset, C: float, dtype: Any) -> Fit:
    X = data.X_train.astype(dtype)

    def fit(tol: float, repeat: int) -> tuple[np.ndarray, float]:
        classifier = LinearMulticlassSVC(
            C=C, tol=tol, max_iter=100_000, fit_intercept=False, random_state=repeat, n_jobs=1
        )
        start = time.process_time()
        classifier.fit(X, data.y_train)
        return classifier.coef_, time.process_time() - start

    return fit


def _repeat(contender: Contender, repeat: int, *, loosest: bool) -> None:
    """Run again at the settings that now give the figures of the table.

    Where the fastest run counts (LIBLINEAR), the next looser setting gets another chance as well:
    whether it gets there depends on the random order.
    """
    best = [contender.best(target, loosest=loosest) for target in TARGETS]
    settings = {run.setting for run in best if run is not None and run.seconds <= LONG_RUN}
    if not loosest:
        tried = sorted({run.setting for run in contender.runs})
        settings |= {min((s for s in tried if s > t), default=t) for t in settings}
    for setting in sorted(settings, reverse=True):
        contender.run(setting, repeat)


def _check_bound(case: Case, *contenders: Contender) -> None:
    """No primal may lie below the certified lower bound."""
    for contender in contenders:
        lowest = min(run.primal for run in contender.runs)
        if lowest < (1.0 - 1e-7) * contender.optimum:
            raise RuntimeError(
                f"{case}: a primal of {lowest!r} lies below the bound {contender.optimum!r}; "
                "delete benchmarks/.cache and report the case"
            )


def _row(
    case: Case,
    target: float,
    peer: Contender,
    ours64: Contender,
    ours32: Contender,
    cached: bool,
) -> Row:
    theirs = peer.best(target, loosest=False)
    double = ours64.best(target, loosest=True)
    single = ours32.best(target, loosest=True)
    return Row(
        data=case.data,
        C=case.C,
        target=target,
        wanted=case.wanted if target == min(TARGETS) else None,
        liblinear=theirs.seconds if theirs else None,
        eps=theirs.setting if theirs else None,
        float64=double.seconds if double else None,
        tol=double.setting if double else None,
        float32=single.seconds if single else None,
        cached=cached,
    )


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return theirs / ours if theirs is not None and ours else None


def markdown(rows: Sequence[Row]) -> str:
    """Format the rows as a Markdown table, with a line that counts the ratios met.

    Parameters
    ----------
    rows : sequence of Row
        What was measured.

    Returns
    -------
    str
        The table; an asterisk marks times of LIBLINEAR measured earlier.
    """
    header = ["data", "C", "within", "LIBLINEAR s (eps)", "polymargin s (tol)", "ratio", "wanted"]
    header += ["float32 s", "ratio"]
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    for row in rows:
        cells = (
            row.data,
            f"{row.C:g}",
            f"{row.target:g}",
            _time(row.liblinear, row.eps) + ("*" if row.cached else ""),
            _time(row.float64, row.tol),
            _times(row.ratio),
            _times(row.wanted),
            _time(row.float32),
            _times(row.ratio32),
        )
        lines.append("| " + " | ".join(cells) + " |")
    judged = [(row.ratio, row.wanted) for row in rows if row.wanted is not None]
    met = sum(ratio is not None and ratio >= wanted for ratio, wanted in judged)
    lines += ["", f"Wanted ratios met: {met} of {len(judged)}."]
    if any(row.cached for row in rows):
        lines += ["", "\\* measured earlier on this machine."]
    return "\n".join(lines) + "\n"


def _time(seconds: float | None, setting: float | None = None) -> str:
    if seconds is None:
        return "not reached"
    return f"{seconds:.3g}" + (f" ({setting:g})" if setting is not None else "")


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}x"


def _key(case: Case, repeats: int) -> dict[str, Any]:
    """Everything the figures of a case depend on."""
    return {
        **asdict(case),
        "source": datasets.source(case.data),
        "repeats": repeats,
        "code": provenance.package_fingerprint(),
        "versions": provenance.versions(),
        "machine": [provenance.machine()[name] for name in ("cpu", "cores")],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases asked for, print the table, and write ``results/speed.{md,json}``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", help="only these data sets")
    parser.add_argument("--long", action="store_true", help="minutes of LIBLINEAR too")
    parser.add_argument("--repeats", type=int, default=3, help="runs per figure (default 3)")
    parser.add_argument("--quick", action="store_true", help="one run each, without the long cases")
    parser.add_argument("--fresh", action="store_true", help="forget finished cases")
    parser.add_argument("--peer-cache", action="store_true", help="reuse LIBLINEAR's earlier times")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(argv)
    cases = [
        case
        for case in CASES
        if case.data in (options.data or [case.data])
        and (case.quick or not options.quick)
        and (options.long or options.data or not case.long)
    ]
    peer_file = CACHE / "liblinear.json"
    known: dict[str, Any] = read_json(peer_file)
    repeats = 1 if options.quick else options.repeats
    store = CellStore(CACHE / "speed.jsonl", fresh=options.fresh)
    rows: list[Row] = []
    with threadpool_limits(1):
        for case in cases:
            finished = None if options.peer_cache else store.get(_key(case, repeats))
            if finished is not None:
                print(f"{case}: measured earlier", flush=True)
                rows += [Row(**row) for row in finished]
                continue
            earlier = [Run(**run) for run in known.get(str(case), [])] if options.peer_cache else []
            try:
                measured, peer_runs = measure(case, repeats, earlier)
            except FileNotFoundError as error:
                print(f"{case} left out: {error}", file=sys.stderr, flush=True)
                continue
            rows += measured
            known[str(case)] = [asdict(run) for run in peer_runs]
            write_json(peer_file, known)
            if not options.peer_cache:
                store.put(_key(case, repeats), [asdict(row) for row in measured])
            print(markdown(measured), flush=True)
    table = markdown(rows)
    print(table)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "speed.md").write_text(table)
    write_json(
        options.output / "speed.json",
        {**provenance.provenance(), "rows": [asdict(row) for row in rows]},
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
