"""Is this tree slower than another commit? Both measured in turns, in one run.

    python -m benchmarks.regression --base COMMIT [--rounds 7] [--threshold 1.1] [--large-c]

The other commit is checked out into a temporary worktree and built into a virtual environment of
its own, which sees this one's NumPy, SciPy and scikit-learn: only polymargin differs. A fixed small
set of problems is then solved by both in turns (A B, B A, A B, ...), every measurement a process of
its own, the CPU seconds of the faster of two fits. A ratio is this tree's time over the other's in
the same round; the table has the median and the quartiles over the rounds. With ``--threshold T``
the exit code is 1 when the lower quartile of a problem's ratios, which noise seldom lifts, is
above T.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import datasets
from benchmarks.provenance import ROOT

WORKER = Path(__file__).resolve().parent / "regression_worker.py"


@dataclass(frozen=True)
class Case:
    """A problem of the fixed set; `data` names a data set or is "sparse" or "dense", generated.

    `machine` is "linear", "stream" (one pass of `partial_fit`), "kernel" or "larank" (one epoch).
    """

    data: str
    loss: str = "crammer_singer"
    C: float = 1.0
    dtype: str = "float64"
    machine: str = "linear"

    def __str__(self) -> str:
        kind = "" if self.machine == "linear" else f" {self.machine}"
        return f"{self.data}{kind} {self.loss} C={self.C:g} {self.dtype}"


CASES = (
    Case("sparse"),
    Case("sparse", "weston_watkins", dtype="float32"),
    Case("dense", C=0.1, dtype="float32"),
    Case("dense", "one_vs_rest", C=0.1),
    Case("digits", "top_k_alpha"),
    Case("letter", C=10.0),
    Case("clinc150"),
    Case("clinc150", "weston_watkins"),
    Case("news20"),
    Case("news20", C=0.01),  # the set-up counts
    Case("usps", C=0.1),
    Case("news20", machine="stream"),
    Case("clinc150", "one_vs_rest", machine="stream"),
    Case("usps", C=10.0, dtype="float32", machine="kernel"),
    Case("digits", "weston_watkins", machine="kernel"),
    Case("digits", dtype="float32", machine="larank"),
    Case("usps", C=10.0, machine="larank"),
)
LARGE_C = tuple(Case(data, C=10.0) for data in ("usps", "aloi", "mnist"))  # minutes each


@dataclass(frozen=True)
class Comparison:
    """Ratios of one case, a round each: above 1 means this tree is slower."""

    case: str
    base: list[float]
    head: list[float]

    @property
    def ratios(self) -> np.ndarray:
        """Seconds of this tree over those of the other, by round."""
        return np.array(self.head) / np.array(self.base)

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median, upper quartile of the ratios."""
        low, middle, high = np.quantile(self.ratios, [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)


def compare(
    cases: Sequence[Case],
    rounds: int,
    measure: Callable[[str, Case], float],
    log: Callable[[str], None] = print,
) -> list[Comparison]:
    """Measure all cases round by round, the two sides in turns.

    Parameters
    ----------
    cases : sequence of Case
        What to solve.
    rounds : int
        How often.
    measure : callable
        ``measure(side, case) -> seconds`` with side "base" or "head".
    log : callable
        Gets a line per round.

    Returns
    -------
    list of Comparison
        One per case.
    """
    times: dict[tuple[str, Case], list[float]] = {}
    for number in range(rounds):
        sides = ("base", "head") if number % 2 == 0 else ("head", "base")
        for case in cases:
            for side in sides:
                times.setdefault((side, case), []).append(measure(side, case))
        log(f"round {number + 1} of {rounds}")
    return [Comparison(str(c), times["base", c], times["head", c]) for c in cases]


def slower(comparisons: Sequence[Comparison], threshold: float) -> list[str]:
    """Name the cases whose lower quartile is above the threshold."""
    return [found.case for found in comparisons if found.quartiles[0] > threshold]


def markdown(comparisons: Sequence[Comparison]) -> str:
    """Format the ratios with their spread."""
    lines = ["| problem | base s | this tree s | ratio | quartiles | range |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for found in comparisons:
        low, middle, high = found.quartiles
        lines.append(
            f"| {found.case} | {min(found.base):.3g} | {min(found.head):.3g} | {middle:.2f} "
            f"| {low:.2f} - {high:.2f} | {found.ratios.min():.2f} - {found.ratios.max():.2f} |"
        )
    together = np.exp(np.mean([np.log(found.quartiles[1]) for found in comparisons]))
    lines += ["", f"Geometric mean of the ratios: {together:.3f} (above 1: this tree is slower)."]
    return "\n".join(lines) + "\n"


def save_problems(cases: Sequence[Case], folder: Path) -> list[Case]:
    """Write the prepared arrays for both sides; data that are absent are named and left out."""
    present: list[Case] = []
    for case in cases:
        try:
            X, y = _arrays(case.data)
        except FileNotFoundError as error:
            print(f"left out: {case}: {error}", file=sys.stderr)
            continue
        present.append(case)
        path = folder / f"{case.data}.npz"
        if sparse.issparse(X):
            parts = {name: getattr(X, name) for name in ("data", "indices", "indptr")}
            np.savez(path, y=y, shape=X.shape, **parts)
        else:
            np.savez(path, y=y, X=X)
    return present


def _arrays(name: str) -> tuple[Any, np.ndarray]:
    if name == "sparse":
        return datasets.generate_sparse(10_000, 5_000, 50, dtype=np.float64)
    if name == "dense":
        return datasets.generate_dense(3_000, 200, 100, dtype=np.float64)
    data = datasets.load(name, download=False)
    return data.X_train, data.y_train


def measure_in_process(python: Path, case: Case, folder: Path, where: Path | None) -> float:
    """Fit in a new interpreter; `where` is the folder polymargin must come from, if it matters."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"
    command = [str(python), str(WORKER), str(folder / f"{case.data}.npz"), case.loss]
    command += [str(case.C), case.dtype, case.machine]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    report = json.loads(done.stdout)
    if where is not None and not Path(report["file"]).is_relative_to(where.resolve()):
        raise RuntimeError(f"measured {report['file']} instead of the build in {where}")
    return float(report["seconds"])


@contextmanager
def built(commit: str, folder: Path) -> Iterator[Path]:
    """Check out and build a commit; give the interpreter of its virtual environment."""
    tree, venv = folder / "tree", folder / "venv"
    _call("git", "worktree", "add", "--quiet", "--detach", str(tree), commit)
    try:
        _call(sys.executable, "-m", "venv", "--without-pip", str(venv))
        python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        _call(
            sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps",
            str(tree), f"--config-settings=build-dir={folder / 'build'}",
        )  # fmt: skip
        # After its own packages, this interpreter's: the same NumPy on both sides.
        site = _output(python, "import sysconfig; print(sysconfig.get_path('purelib'))")
        shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (Path(site) / "shared.pth").write_text("\n".join(sorted(shared)) + "\n")
        yield python
    finally:
        _call("git", "worktree", "remove", "--force", str(tree))


def _call(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def _output(python: Path, code: str) -> str:
    done = subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Build, measure, print; exit with 1 where the threshold is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", required=True, help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="measurements per side (default 7)")
    parser.add_argument("--threshold", type=float, help="exit with 1 above this ratio, e.g. 1.1")
    parser.add_argument("--data", nargs="+", help="only cases on these data")
    parser.add_argument("--large-c", action="store_true", help="C = 10 on large data instead")
    parser.add_argument("--json", type=Path, help="write the times here as well")
    options = parser.parse_args(argv)
    every = LARGE_C if options.large_c else CASES
    cases = [case for case in every if case.data in (options.data or [case.data])]
    with tempfile.TemporaryDirectory(prefix="polymargin-regression-") as name:
        folder = Path(name)
        cases = save_problems(cases, folder)
        print(f"building {options.base}", flush=True)
        with built(options.base, folder) as python:

            def measure(side: str, case: Case) -> float:
                if side == "base":
                    return measure_in_process(python, case, folder, where=folder / "venv")
                return measure_in_process(Path(sys.executable), case, folder, where=None)

            found = compare(cases, options.rounds, measure, lambda text: print(text, flush=True))
    print(f"\nbase: {options.base}\n\n{markdown(found)}")
    if options.json:
        content = [{"case": c.case, "base": c.base, "head": c.head} for c in found]
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    too_slow = slower(found, options.threshold) if options.threshold else []
    if too_slow:
        print(f"slower than {options.threshold:g} times the base: {'; '.join(too_slow)}")
    return 1 if too_slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
