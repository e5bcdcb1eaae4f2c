"""Why a fit did not converge, measured, and what to try: values, not words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from polymargin.arrays import Floats, Matrix
from polymargin.problem import KernelProblem, Problem
from polymargin.solvers import Status

# the mean of c_i ||x_i||^2 beyond which it, and not the number of passes, is called the cause
TOO_STEEP = 100.0
UNEVEN = 30.0  # the largest feature to the median one
CAUTION = 10.0  # the pace slows down; a limit that is too large costs nothing
BEYOND = 300.0  # times as many passes as were made are no proposal
FEWEST = 6  # passes that have a pace


@dataclass(frozen=True)
class Measured:
    """What makes a problem hard: the mean of ``||x||^2`` and that of ``c ||x||^2``."""

    of: str  # "||x||^2" or "k(x, x)"
    mean_square: float
    curvature: float
    uneven: float = 1.0  # the root mean square of the largest feature to that of the median one


def measure(problem: object, X: object) -> Measured | None:
    """Measure a problem with the data that it was made of; None where they are not at hand."""
    if isinstance(problem, KernelProblem):
        squares, of, uneven = np.asarray(problem.kernel.diagonal(), float), "k(x, x)", 1.0
    elif isinstance(problem, Problem):
        squares, of = np.asarray(problem.squared_lengths, float), "||x||^2"
        uneven = _uneven(X) if isinstance(X, np.ndarray) or sparse.issparse(X) else 1.0
    else:
        return None
    present = problem.c > 0
    curvature = float(np.mean(problem.c[present] * squares[present]))
    return Measured(of, float(np.mean(squares[present])), curvature, uneven)


def _uneven(X: Matrix) -> float:
    """The largest root mean square of a feature, in units of the median of those not zero."""
    if isinstance(X, np.ndarray):
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
    else:
        squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), X.shape[1])
    used = squares[squares > 0]
    return math.sqrt(float(used.max() / np.median(used))) if len(used) else 1.0


def above_optimum(gap: float) -> str:
    """Say what a relative gap guarantees, since ``P* >= D = (1 - gap) P``."""
    if not gap < 1.0:
        return "no bound on the distance to the optimum is known yet"
    if gap >= 0.5:
        return f"the objective is at most {1 / (1 - gap):.2g} times the optimum"
    return f"the objective is at most {100 * gap / (1 - gap):.2g} % above the optimum"


def advice(
    status: Status,
    measured: Measured | None,
    *,
    C: float,
    limit: str,
    tol: object,
    history: Mapping[str, Floats],
    time_limit: float | None = None,
) -> str:
    """What to try; `limit` is what the number of passes is limited by, as "max_iter"."""
    said = []
    if measured is not None and measured.curvature > TOO_STEEP:
        said.append(_about_scale(measured, C))
    if status is Status.STALLED:
        said.append("The precision allows no smaller gap: try float64 data, or a larger tol.")
        return " ".join(said)
    by_time = status is Status.TIME_LIMIT
    limit, column = ("time_limit", "time") if by_time else (limit, "pass")
    needed = _needed(history, column, tol if isinstance(tol, int | float) else 0.0)
    if needed is None:
        said.append(f"{'Otherwise raise' if said else 'Raise'} {limit} or tol.")
    else:
        value = rounded_up(max(needed, time_limit or 0.0)) if by_time else rounded_up(needed)
        said.append(f"As the gap fell so far, {limit}={value:.10g} may do; or raise tol.")
    return " ".join(said)


def advice_on_many(statuses: Iterable[Status]) -> str:
    """What lets several fits end, of which these gave up."""
    limits = {Status.TIME_LIMIT: "time_limit", Status.MAX_ITER: "max_iter"}
    names = sorted({limits[status] for status in statuses if status in limits})
    return f"Raise {' or '.join([*names, 'tol'])}, scale the features"


def _about_scale(found: Measured, C: float) -> str:
    value = rounded(C / found.curvature)
    known = f"The mean of {found.of} is {_plain(found.mean_square)} at C = {C:g}"
    if found.of != "||x||^2":
        return f"{known}: try a smaller C, such as C={value:g}."
    if found.uneven > UNEVEN:
        return (
            f"{known}, and the largest feature is {_plain(found.uneven)} times the median one: "
            "scale the features (sklearn.preprocessing.StandardScaler or MaxAbsScaler), or try a "
            f"smaller C, such as C={value:g}."
        )
    return (
        f"{known}: normalise the rows (sklearn.preprocessing.Normalizer) or scale the features, or "
        f"try a smaller C, such as C={value:g}."
    )


def _needed(history: Mapping[str, Floats], column: str, tol: float) -> float | None:
    """Passes or seconds in all, by how the gap fell in the second half; None if it hardly did."""
    gaps = np.where(np.isfinite(history["gap"]), history["gap"], history["estimated_gap"])
    known = np.isfinite(gaps) & (gaps > 0)
    if tol <= 0 or np.count_nonzero(known) < FEWEST:
        return None
    at, lowest = history[column][known], np.minimum.accumulate(gaps[known])
    half = int(np.searchsorted(at, at[-1] / 2))
    fallen = math.log(lowest[half] / lowest[-1])
    if fallen <= 0 or at[-1] <= at[half]:
        return None
    left = math.log(max(1.0, float(gaps[known][-1]) / tol)) * float(at[-1] - at[half]) / fallen
    return float(at[-1]) + CAUTION * left if left < BEYOND * at[-1] else None


def rounded(value: float) -> float:
    """To one digit."""
    return float(f"{value:.0e}")


def rounded_up(value: float) -> float:
    """To two digits, and never less."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.2g}")


def _plain(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.10g}" if 1 <= value < 1e7 else f"{value:.1e}"
