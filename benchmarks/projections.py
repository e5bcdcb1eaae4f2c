"""The cost of the projections: nanoseconds per entry against the size, and against NumPy.

    python -m benchmarks.projections [--quick] [--output FOLDER]

One thread, float64, wall-clock time, the fastest of several repeats; results into memory that is
already there. Each size is measured on a matrix with as many rows as make up a fixed number of
entries (one row for the largest), so that the call itself does not count. Entries are
standard normal. Two simplices: z = 1, where few entries are positive, and z = n / 10, where about
every fifth is; there it shows what a warm start (the threshold of a slightly perturbed vector)
is worth. The comparison with NumPy is of whole calls, checks and allocation included.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.reference_optima import write_json
from polymargin import instruction_set
from polymargin.core import core
from polymargin.projections import project_simplex

RESULTS = Path(__file__).resolve().parent / "results"
SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (10, 100, 1_000)
TABLE_SIZES = (1_000, 1_000_000)
ENTRIES = 1_000_000  # per measurement, spread over rows
NOISE = 0.01  # of the vectors whose thresholds serve as warm starts
K = 5
GREEDY_LIMIT = 1_000  # its steps cost O(n) each
NUMPY_SHAPE = (100_000, 1_000)

Matrix = np.ndarray


@dataclass(frozen=True)
class Measurement:
    """Nanoseconds per entry of one method at one size."""

    problem: str
    method: str
    size: int
    nanoseconds: float


def fastest(run: Callable[[], object], repeats: int) -> float:
    """Return the least wall-clock time of a few runs, in seconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def thresholds(V: Matrix, z: Matrix) -> Matrix:
    """Return the simplex thresholds of the rows."""
    tau = np.full(len(V), np.nan)
    core.project_simplex("newton", V, z, 0.0, 1, tau, np.empty_like(V))
    return tau


def simplex_runs(V: Matrix, size_of_simplex: float, guess: Matrix) -> dict[str, Callable]:
    """Return a call per simplex method; Newton's also from given thresholds."""
    P, z = np.empty_like(V), np.full(len(V), size_of_simplex)
    none = np.full(len(V), np.nan)

    def run(method: str, tau: Matrix = none) -> Callable:
        return lambda: core.project_simplex(method, V, z, 1e-15, 1, tau.copy(), P)

    runs = {method: run(method) for method in ("sort", "pivot", "bisection", "condat", "newton")}
    return runs | {"newton, warm start": run("newton", guess)}


def other_runs(V: Matrix) -> dict[str, Callable]:
    """Return a call per further projection and per method of the Weston-Watkins subproblem."""
    n = V.shape[1]
    P, ones, violation = np.empty_like(V), np.ones(len(V)), np.empty(len(V))
    upper = np.full((1, 1), max(0.1, 2 / n))
    k = min(K, n)

    def weston_watkins(method: str) -> Callable:
        return lambda: core.solve_weston_watkins(
            method, V, ones, 1e-9, 100 * n + 10_000, violation, P
        )

    methods = ["walrus", "newton"] + (["greedy"] if n <= GREEDY_LIMIT else [])
    return {f"weston-watkins {method}": weston_watkins(method) for method in methods} | {
        "1-norm ball": lambda: core.project_l1_ball(V, ones, P),
        "capped simplex": lambda: core.project_capped_simplex(V, upper, ones, True, P),
        "top-k simplex": lambda: core.project_top_k(V, k, ones, 0.0, P),
        "top-k cone": lambda: core.project_top_k(V, k, np.full(len(V), np.inf), 0.0, P),
    }


def measure(sizes: Sequence[int], entries: int, repeats: int) -> list[Measurement]:
    """Time every method at every size."""
    rng = np.random.default_rng(0)
    found = []
    for n in sizes:
        V = rng.standard_normal((max(1, entries // n), n))
        similar = V + NOISE * rng.standard_normal(V.shape)
        problems = {"other": other_runs(V)}
        for name, z in (("simplex, z = 1", 1.0), ("simplex, z = n / 10", n / 10)):
            guess = thresholds(similar, np.full(len(V), z))
            problems[name] = simplex_runs(V, z, guess)
        for problem, runs in problems.items():
            for method, run in runs.items():
                nanoseconds = 1e9 * fastest(run, repeats) / V.size
                found.append(Measurement(problem, method, n, nanoseconds))
                print(f"{problem:20} {method:22} n={n:<8} {nanoseconds:8.2f} ns", flush=True)
    return found


def numpy_simplex(V: Matrix, z: float = 1.0) -> Matrix:
    """Blondel's algorithm 2 on all rows at once, in NumPy."""
    mu = np.sort(V, axis=1)[:, ::-1]
    pi = (np.cumsum(mu, axis=1) - z) / np.arange(1, V.shape[1] + 1)
    rho = np.count_nonzero(mu > pi, axis=1)
    return np.maximum(V - pi[np.arange(len(V)), rho - 1, None], 0)


def in_chunks(project: Callable[[Matrix], Matrix], V: Matrix, rows: int) -> Matrix:
    """Apply a projection to a few rows at a time, so that they stay in the cache."""
    P = np.empty_like(V)
    for start in range(0, len(V), rows):
        P[start : start + rows] = project(V[start : start + rows])
    return P


def against_numpy(shape: tuple[int, int], repeats: int) -> dict[str, float]:
    """Time a whole call of ours and of NumPy's on one matrix; NumPy the faster of two ways."""
    V = np.random.default_rng(1).standard_normal(shape)
    assert np.allclose(project_simplex(V[:100]), numpy_simplex(V[:100]), atol=1e-12)
    ours = fastest(lambda: project_simplex(V), repeats)
    whole = fastest(lambda: numpy_simplex(V), repeats)
    chunked = fastest(lambda: in_chunks(numpy_simplex, V, 100), repeats)
    theirs = min(whole, chunked)
    return {
        "rows": shape[0],
        "columns": shape[1],
        "polymargin_seconds": ours,
        "numpy_whole_seconds": whole,
        "numpy_chunked_seconds": chunked,
        "ratio": theirs / ours,
    }


def markdown(found: Sequence[Measurement], numpy: dict[str, float], machine: str) -> str:
    """Return the tables."""
    sizes = sorted({m.size for m in found})
    shown = [n for n in TABLE_SIZES if n in sizes] or sizes[-1:]
    values = {(m.problem, m.method, m.size): m.nanoseconds for m in found}
    lines = [
        "# Projections",
        "",
        machine,
        "",
        "| problem | method | " + " | ".join(f"ns per entry, n = {n:,}" for n in shown) + " |",
        "|---|---|" + "--:|" * len(shown),
    ]
    for problem, method in dict.fromkeys((m.problem, m.method) for m in found):
        cells = (values.get((problem, method, n)) for n in shown)
        row = " | ".join("" if value is None else f"{value:.2f}" for value in cells)
        lines.append(f"| {problem} | {method} | {row} |")
    lines += [
        "",
        f"A whole call on {numpy['rows']:,} x {numpy['columns']:,} entries (float64, z = 1): "
        f"{numpy['polymargin_seconds']:.2f} s; NumPy, sorting all rows at once, "
        f"{numpy['numpy_whole_seconds']:.2f} s, in chunks of 100 rows "
        f"{numpy['numpy_chunked_seconds']:.2f} s. The faster of the two takes "
        f"{numpy['ratio']:.1f} times as long as ours.",
        "",
    ]
    return "\n".join(lines)


def plot(found: Sequence[Measurement], path: Path) -> None:
    """Draw time per entry against size, a panel per problem."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    problems = list(dict.fromkeys(m.problem for m in found))
    figure, panels = plt.subplots(
        1, len(problems), figsize=(5.2 * len(problems), 4.8), sharey=True, layout="constrained"
    )
    for panel, problem in zip(panels, problems, strict=True):
        for method in dict.fromkeys(m.method for m in found if m.problem == problem):
            points = [m for m in found if (m.problem, m.method) == (problem, method)]
            style = "--" if "warm" in method else "-"
            panel.plot(
                [m.size for m in points], [m.nanoseconds for m in points], style, marker=".",
                label=method,
            )  # fmt: skip
        panel.set(xscale="log", yscale="log", xlabel="entries", title=problem)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    panels[0].set_ylabel("nanoseconds per entry")
    figure.savefig(path, dpi=130)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three small sizes, little data")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(argv)
    machine = (
        f"Python {platform.python_version()}, NumPy {np.__version__}, kernels for "
        f"{instruction_set}, one thread, {platform.machine()}."
    )
    with threadpool_limits(1):
        if options.quick:
            found = measure(QUICK_SIZES, 20_000, repeats=2)
            numpy = against_numpy((2_000, 1_000), repeats=2)
        else:
            found = measure(SIZES, ENTRIES, repeats=5)
            numpy = against_numpy(NUMPY_SHAPE, repeats=3)
    text = markdown(found, numpy, machine)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "projections.md").write_text(text)
    rows = [asdict(m) for m in found]
    write_json(
        options.output / "projections.json",
        {"machine": machine, "measurements": rows, "numpy": numpy},
    )
    plot(found, options.output / "projections.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
