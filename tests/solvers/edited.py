"""Checkpoints that somebody edits and seals again: what is changed, and what must come of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from polymargin import Problem
from polymargin.solvers.checkpoint import FORMAT
from polymargin.solvers.solution import Solution, signed_dual
from polymargin.storage import Archive, Array, Json, write_archive
from tests.reference import objective

NUMBERS = (
    0,
    -1,
    1,
    3,
    0.0,
    1.0,
    -2.5,
    1e-300,
    1e300,
    2**40,
    None,
    "x",
    True,
    [],
    {"$float": "nan"},
)
VALUES = (0.0, -1.0, 1.0, 1e30, 1e-30)


def read(path: Path) -> tuple[dict[str, Json], list[Array]]:
    """The manifest and the arrays of a checkpoint."""
    with Archive(path, FORMAT) as archive:
        manifest = copy.deepcopy(archive.manifest)
        return manifest, [archive.array(name) for name in manifest.pop("arrays")]


def write(path: Path, manifest: dict[str, Json], arrays: list[Array]) -> None:
    """A checkpoint with a valid seal and valid digests."""
    write_archive(path, FORMAT, manifest, arrays)


def _leaves(tree: Json) -> Iterator[tuple[list[Json], int]]:
    """Where numbers, strings and names of arrays are: a list, and the place in it."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key in ("$dict", "$tuple"):
                yield from _leaves(value)
            elif key == "$sparse":
                yield from _leaves([value])
            elif isinstance(value, (dict, list)):
                yield from _leaves(value)
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            if isinstance(value, (dict, list)) and "$array" not in value:
                yield from _leaves(value)
            if not isinstance(value, str):  # the keys of a dict
                yield tree, i


def edit(rng: np.random.Generator, manifest: dict[str, Json], arrays: list[Array]) -> str:
    """Change something; returns what."""
    if rng.random() < 0.35:
        leaves = list(_leaves(manifest["state"]))
        where, i = leaves[rng.integers(len(leaves))]
        before = where[i]
        if isinstance(before, (int, float)) and rng.random() < 0.6:
            where[i] = type(before)(before * rng.choice([0.5, 0.999, 1.001, 2, -1]))
        elif rng.random() < 0.3:
            other, j = leaves[rng.integers(len(leaves))]
            where[i] = copy.deepcopy(other[j])
        else:
            where[i] = copy.deepcopy(NUMBERS[rng.integers(len(NUMBERS))])
        return f"{before!r:.60} -> {where[i]!r:.60}"
    filled = [i for i, array in enumerate(arrays) if array.size]
    i = int(rng.choice(filled))
    array = arrays[i] = arrays[i].copy()
    flat, how = array.reshape(-1), rng.integers(8)
    some = rng.integers(flat.size, size=rng.integers(1, 4))
    if how == 0:
        flat[:] = (flat * rng.choice([0.5, 0.99, 1.01, 2.0])).astype(flat.dtype)
    elif how == 1:
        flat[some] = np.array(rng.choice(VALUES)).astype(flat.dtype)
    elif how == 2:
        flat[some] = -flat[some]
    elif how == 3:
        flat[:] = rng.permutation(flat)
    elif how == 4:
        flat[:] = 0
    elif how == 5:
        arrays[i] = flat[: rng.integers(flat.size)].copy()
    elif how == 6:
        arrays[i] = array.astype(np.float32 if array.dtype == np.float64 else np.int64)
    else:
        arrays[i] = arrays[int(rng.choice(filled))]
    return f"array {i} of {array.dtype}{array.shape}, kind {how}"


def check(solution: Solution, problem: Problem) -> None:
    """The objectives that a solution claims are those of NumPy, and its dual is feasible."""
    loss = problem.loss
    spec = objective.Spec(
        problem.X,
        problem.y,
        problem.c,
        loss.name,
        loss.top_k,
        problem.intercept_scaling,
        problem.n_classes,
        loss.smoothing,
    )
    rounding = 2e-5 if problem.rows.dtype == np.float32 else 1e-8
    a = signed_dual(solution.block, solution.y, coupled=loss.coupled)
    primal = objective.primal(spec, solution.coef, solution.intercept)
    dual = objective.dual(spec, a)
    assert abs(primal - solution.primal) <= rounding * abs(primal), (primal, solution.primal)
    assert abs(dual - solution.dual) <= rounding * abs(primal), (dual, solution.dual)
    assert objective.dual_infeasibility(spec, a) <= rounding
    if solution.status == "converged":
        assert (primal - dual) / primal <= solution.gap + 2 * rounding
