"""What a checkpoint holds, looked at before it is used: a certificate must come from the data.

A digest says that a file is what was written, not that what was written makes sense. So types and
ranges are checked, duals are checked for feasibility, weights are compared with those that the dual
gives, and certificates with what the data say of the model (in :mod:`~polymargin.solvers.run` and
the engines). What fails is a `CheckpointError`, or one of `SENSELESS` that becomes one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.arrays import Codes, Doubles, Floats, Indices
from polymargin.problem import Problem
from polymargin.solvers.certificate import Certificate, squared_norm
from polymargin.solvers.checkpoint import CheckpointError, Tree
from polymargin.solvers.solution import Solution

if TYPE_CHECKING:
    from polymargin.solvers.state import State

SENSELESS = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
# what rounding leaves of an equation, relatively: of one in the precision of the dual, and of the
# objectives of a model
ROUNDING = {4: 1e-5, 8: 1e-9}


@contextmanager
def senseless() -> Iterator[None]:
    """Raise whatever a tree leads to that none of ours has written as `CheckpointError`."""
    try:
        yield
    except CheckpointError:
        raise
    except SENSELESS as error:
        raise CheckpointError(
            f"The checkpoint makes no sense ({type(error).__name__}: {error}). Remove it to "
            "start afresh, and do not edit it."
        ) from error


def require(ok: object, what: str) -> None:
    """Raise `CheckpointError` unless a condition holds; `what` is what does not."""
    if not ok:
        raise CheckpointError(
            f"The checkpoint makes no sense: {what}. Remove it to start afresh, and do not edit it."
        )


def number(tree: Tree, name: str, least: float = -math.inf) -> float:
    """A number of the tree that is no NaN; infinity is one."""
    value = tree[name]
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    require(plain and value >= least, f"{name} is {value!r:.50}")
    return float(value)


def any_number(tree: Tree, name: str) -> float:
    """A number of the tree, or NaN."""
    require(isinstance(tree[name], (int, float)), f"{name} is {tree[name]!r:.50}")
    return float(tree[name])


def count(tree: Tree, name: str, least: int = 0) -> int:
    """An integer of the tree."""
    value = tree[name]
    require(type(value) is int and least <= value < 2**31, f"{name} is {value!r:.50}")
    return int(value)


def flag(tree: Tree, name: str) -> bool:
    """A truth value of the tree."""
    require(type(tree[name]) is bool, f"{name} is {tree[name]!r:.50}")
    return bool(tree[name])


def array(tree: Tree, name: str, dtype: DTypeLike, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """An array of the tree, of finite numbers; `shape` None: a vector of any length."""
    found = tree[name]
    right = isinstance(found, np.ndarray) and found.dtype == dtype
    right = right and (found.ndim == 1 if shape is None else found.shape == shape)
    require(right, f"{name} is not an array of type {np.dtype(dtype)} and shape {shape or 'any'}")
    require(found.dtype.kind != "f" or np.isfinite(found).all(), f"{name} is not finite")
    values: NDArray[Any] = found
    return values


def weights(tree: Tree, name: str, like: Floats, n_classes: int) -> Floats:
    """Weights of the tree, of the type and shape of others; what is beyond the classes is zero."""
    found = array(tree, name, like.dtype, like.shape)
    require(not found[:, n_classes:].any(), f"{name} has weights of no class")
    return found


def examples(tree: Tree, name: str, n: int) -> Indices:
    """Different examples of n, in any order."""
    found = array(tree, name, np.int64, None)
    inside = len(found) == 0 or (found.min() >= 0 and found.max() < n)
    require(inside and len(np.unique(found)) == len(found), f"{name} has examples that are none")
    return found


def check_dual(problem: Problem, indptr: Indices, classes: Codes, values: Floats) -> None:
    """Raise unless a dual (rows of classes and values) is feasible for a problem."""
    n, k = problem.n_examples, problem.n_classes
    loss, size = problem.loss, len(values)
    starts = np.asarray(indptr, np.int64)
    require(starts.shape == (n + 1,) and starts[0] == 0 and starts[-1] == size, "its dual is cut")
    require((np.diff(starts) >= 0).all() and len(classes) == size, "its dual is cut")
    if size == 0:
        return
    require(classes.min() >= 0 and classes.max() < k, "its dual has unknown classes")
    rows = np.repeat(np.arange(n), np.diff(starts))
    own = (problem.y[rows] == classes) & (values != 0.0)  # dense duals have a place for it
    require(not (loss.coupled and own.any()), "its dual has variables of the true classes")
    places = rows * k + classes
    require(len(np.unique(places)) == size, "its dual has a variable twice")
    p, c = values.astype(np.float64), problem.c[rows]
    require(np.isfinite(p).all() and (p >= 0).all(), "its dual is not feasible (negative)")
    looked_at = np.zeros(n, bool)
    looked_at[problem.visited] = True
    require(not p[~looked_at[rows]].any(), "its dual has variables of absent examples")
    room = 1.0 + ROUNDING[problem.rows.dtype.itemsize]
    total: Doubles = np.bincount(rows, p, n).astype(np.float64)
    if loss.sum_is_bounded:
        require((total <= room * problem.c).all(), "its dual is not feasible (too large)")
    most = loss.most(c, total[rows])
    require((p <= room * most).all(), "its dual is not feasible (too large)")


def check_claim(claim: Certificate, found: Certificate, itemsize: int) -> None:
    """Raise unless what a file claims of a model is what the data say, but for rounding."""
    room = ROUNDING[itemsize] * max(abs(found.primal), abs(found.dual))
    close = abs(claim.primal - found.primal) <= room and abs(claim.dual - found.dual) <= room
    require(
        math.isfinite(found.difference) and close,
        f"it claims objectives of {claim.primal:.9g} and {claim.dual:.9g} for a model that has "
        f"{found.primal:.9g} and {found.dual:.9g}",
    )


def evaluated(
    state: State, weights: Floats, block: sparse.csr_array, n_jobs: int = 1
) -> Certificate:
    """What weights from a file are worth, with a dual, which must be feasible."""
    problem = state.problem
    check_dual(problem, block.indptr, block.indices, block.data)
    state.set_dual(block)
    dual = state.dual_sum() - 0.5 * squared_norm(state.rebuild()) + problem.constant_loss
    losses = state.evaluate(weights, n_jobs)
    return Certificate(0.5 * squared_norm(weights) + float(losses.sum()), dual)


def check_solution(state: State, solution: Solution) -> None:
    """Raise unless a solution from a file is what it claims; `state` has its problem, and no more.

    One without a certificate claims nothing.
    """
    weights = state.joined(solution.coef, solution.intercept)
    require(np.isfinite(weights).all(), "its weights are not finite")
    found = evaluated(state, weights, solution.block)
    if not (math.isnan(solution.primal) and math.isnan(solution.dual)):
        check_claim(solution.certificate, found, state.dtype.itemsize)
