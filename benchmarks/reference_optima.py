"""Lower bounds on the optimum of each benchmark problem, computed once and cached.

A long run of polymargin certifies a relative gap, so ``(1 - gap) * P`` lies below the optimum.
"Within 1e-3 of the optimum" then means ``P <= (1 + 1e-3) * lower bound``, which is a little harder
than it sounds, for everybody alike. The cache is ``benchmarks/.cache/optima.json``; delete it to
compute the bounds again.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.datasets import Dataset
from benchmarks.objective import primal
from polymargin import DualSolver, LinearMulticlassSVC

CACHE = Path(__file__).resolve().parent / ".cache"
ACCURATE = 1e-5
WORST_GAP = 1e-4


def lower_bound(data: Dataset, C: float, cache: Path = CACHE / "optima.json") -> float:
    """Return a certified lower bound on the Crammer-Singer optimum (no intercept, no weights).

    Parameters
    ----------
    data : Dataset
        Prepared data in float64.
    C : float
        Weight of the loss.
    cache : Path
        JSON file with the bounds known so far.

    Returns
    -------
    float
        The bound, within 1e-4 of the optimum.

    Raises
    ------
    RuntimeError
        When the accurate run ends with a gap too wide to judge others by.
    """
    known = read_json(cache)
    key = f"{data.name} C={C:g} crammer_singer"
    if key not in known:
        found = certified_bound(data, C)
        if not found["gap"] <= WORST_GAP:
            raise RuntimeError(
                f"{data.name} C={C:g}: the reference run ended with a gap of {found['gap']:.1e}"
            )
        known[key] = found
        write_json(cache, known)
    return float(known[key]["lower_bound"])


def certified_bound(
    data: Dataset,
    C: float,
    loss: str = "crammer_singer",
    top_k: int | None = None,
    tol: float = ACCURATE,
    time_limit: float | None = None,
) -> dict[str, float]:
    """Train accurately and return the primal, the certified gap and the bound they give.

    Parameters
    ----------
    data : Dataset
        Prepared data in float64.
    C : float
        Weight of the loss.
    loss, top_k
        As in `objective.primal`.
    tol : float
        The gap to reach.
    time_limit : float, default=None
        Seconds after which the gap reached so far has to do.

    Returns
    -------
    dict
        "primal", "gap" and "lower_bound".
    """
    classifier = LinearMulticlassSVC(
        loss=loss,
        top_k=top_k,
        C=C,
        tol=tol,
        max_iter=100_000,
        fit_intercept=False,
        random_state=0,
        solver=DualSolver(time_limit=time_limit),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap tells
        classifier.fit(data.X_train, data.y_train)
    gap = float(classifier.dual_gap_)
    value = primal(data.X_train, data.y_train, classifier.coef_, C, loss, top_k)
    return {"primal": value, "gap": gap, "lower_bound": (1.0 - gap) * value}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; an absent file is an empty one."""
    return json.loads(path.read_text()) if path.is_file() else {}


def write_json(path: Path, content: Any) -> None:
    """Write JSON, creating the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
