"""Lower bounds on the optimum of each benchmark problem, computed once and cached.

A long run of polymargin certifies a relative gap, so ``(1 - gap) * P`` lies below the optimum.
"Within 1e-3 of the optimum" then means ``P <= (1 + 1e-3) * lower bound``, which is a little harder
than it sounds, for everybody alike. The cache is ``benchmarks/.cache/optima.json``; delete it to
compute the bounds again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.datasets import Dataset
from benchmarks.objective import crammer_singer_primal
from polymargin import LinearMulticlassSVC

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
        known[key] = _accurate_bound(data, C)
        write_json(cache, known)
    return float(known[key]["lower_bound"])


def _accurate_bound(data: Dataset, C: float) -> dict[str, float]:
    classifier = LinearMulticlassSVC(
        C=C, tol=ACCURATE, max_iter=100_000, fit_intercept=False, random_state=0
    ).fit(data.X_train, data.y_train)
    gap = float(classifier.dual_gap_)
    if not gap <= WORST_GAP:
        raise RuntimeError(f"{data.name} C={C:g}: the reference run ended with a gap of {gap:.1e}")
    primal = crammer_singer_primal(data.X_train, data.y_train, classifier.coef_, C)
    return {"primal": primal, "gap": gap, "lower_bound": (1.0 - gap) * primal}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; an absent file is an empty one."""
    return json.loads(path.read_text()) if path.is_file() else {}


def write_json(path: Path, content: Any) -> None:
    """Write JSON, creating the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
