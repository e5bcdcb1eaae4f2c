"""Run LIBLINEAR (PyPI ``liblinear-official``) from arrays already in its own format.

Its ``-s 4`` is Crammer and Singer's loss without an intercept, the problem polymargin's default
loss solves with ``fit_intercept=False``. LIBLINEAR stops on the largest violation of the
optimality conditions (``-e``), not on a gap, hence the grid of tolerances in `speed`. Its limit
on the number of passes is compiled in and cannot be set from here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from liblinear import liblinear as ll
from scipy import sparse


@dataclass(frozen=True)
class PeerFit:
    """Weights of LIBLINEAR's model, one row per class code, and the CPU seconds it took."""

    coef: np.ndarray
    seconds: float


def liblinear_problem(X: Any, y: np.ndarray) -> ll.problem:
    """Convert to LIBLINEAR's rows of (index, value) nodes; not part of any timing."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    return ll.problem(np.asarray(y, dtype=np.float64), X, bias=-1)


def fit_liblinear(problem: ll.problem, C: float, eps: float, formulation: int = 4) -> PeerFit:
    """Train LIBLINEAR and time the call to its ``train`` alone.

    Parameters
    ----------
    problem : liblinear.problem
        From `liblinear_problem`.
    C : float
        Weight of the loss.
    eps : float
        LIBLINEAR's stopping tolerance.
    formulation : int, default=4
        Its ``-s``: 4 Crammer-Singer; 3 and 1 one-vs-rest with the hinge and the squared hinge.

    Returns
    -------
    PeerFit
        Weights in the order of the class codes, and CPU seconds.
    """
    parameter = ll.parameter(f"-s {formulation} -B -1 -q -c {C!r} -e {eps!r}")
    start = time.process_time()
    pointer = ll.liblinear.train(problem, parameter)
    seconds = time.process_time() - start
    return PeerFit(_weights(ll.toPyModel(pointer)), seconds)


def _weights(model: Any) -> np.ndarray:
    """Copy ``w[feature * nr_class + class]`` into rows ordered by class code."""
    labels = np.array(model.get_labels())
    flat = np.ctypeslib.as_array(model.w, (model.nr_feature * model.nr_class,))
    by_class = flat.reshape(model.nr_feature, model.nr_class).T
    coef = np.empty_like(by_class, order="C")
    coef[labels] = by_class
    return coef
