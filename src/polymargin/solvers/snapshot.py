"""Everything a run of the dual solver knows between two passes, for a checkpoint.

A run that takes a snapshot over goes on as the one that made it would have, to the last bit: the
weights, the dual as it is stored, the marks of the examples, the random numbers, the schedule, the
outer loop, the best model so far, the history. What is not here (the problem, the settings, the
compiled engine) the new run makes anew from the same input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import polymargin
from polymargin._kernels import instruction_set
from polymargin.problem import Problem
from polymargin.solvers.acceleration import OuterLoop
from polymargin.solvers.certificate import Certificate
from polymargin.solvers.checkpoint import CheckpointError, Tree, digest_of
from polymargin.solvers.solution import Solution

if TYPE_CHECKING:
    from polymargin.solvers.run import Run

OF_A_RUN = ("n_iter", "dual_sum", "last_certified", "v", "v_pass", "status")
SCALARS = (bool, int, float, type(None), np.generic)


def made_for(
    problem: Problem,
    settings: Any,
    *,
    tol: float,
    random_state: int | None,
    n_jobs: int,
    start: Solution | None,
    length: int | None,
) -> dict[str, str]:
    """Everything a run depends on, hashed: a checkpoint is for the same only.

    Left out are the limits of passes and time: a longer run goes through the same states. (Not so
    without certificates, where the number of passes, ``length``, decides how they are made.)
    """
    pb = problem
    parameters = {k: v for k, v in settings.get_params().items() if k != "time_limit"}
    return {
        "X": pb.rows.digest(),
        "y": digest_of(pb.y, pb.n_classes),
        "C, sample_weight or class_weight": digest_of(pb.c),
        "loss": repr(pb.loss),
        "intercept": repr(pb.intercept_scaling),
        "tol": repr(tol),
        "solver": repr(sorted(parameters.items())),
        "random_state": repr(random_state),
        "n_jobs": repr(n_jobs),
        "max_iter": repr(length),
        "warm start": digest_of(*_block_arrays(start.block), start.c) if start else "none",
        "version of polymargin": polymargin.__version__,
        "instruction set": instruction_set,
    }


def snapshot(run: Run) -> Tree:
    """The state of a run after a pass."""
    tree = {name: getattr(run, name) for name in OF_A_RUN}
    tree["guess"] = [run.guess[False], run.guess[True]]
    tree["history"] = run.history.arrays()
    tree["elapsed"] = run._elapsed()
    state = run.state
    tree["state"] = {"W": state.W, "kappa": state.kappa, "gap": state.gap}
    tree["state"] |= {"threshold": state.threshold, "dual": state.stored_dual()}
    tree["state"] |= {} if state.Y is None else {"Y": state.Y}
    tree["plan"] = _plain_attributes(run.plan)
    tree["random"] = run.rng.bit_generator.state
    if run.outer is not None:
        tree["outer"] = _plain_attributes(run.outer)
    if run.best is not None:
        found = run.best.certificate
        tree["best"] = {"primal": found.primal, "dual": found.dual, "weights": run.best.weights}
        tree["best"]["block"] = dict(
            zip(("data", "indices", "indptr"), _block_arrays(run.best.block), strict=True)
        )
    return tree


def restore(run: Run, tree: Tree) -> None:
    """Put a run that has just started into the state of a snapshot."""
    if tree["n_iter"] > run.max_iter:
        raise CheckpointError(
            f"The checkpoint is of pass {tree['n_iter']}, past max_iter={run.max_iter}: raise "
            "max_iter, or remove the checkpoint to start afresh."
        )
    for name in OF_A_RUN:
        setattr(run, name, tree[name])
    run.guess = {False: tree["guess"][0], True: tree["guess"][1]}
    run.history.restore(tree["history"])
    run.spent = tree["elapsed"]
    saved, state = tree["state"], run.state
    if "outer" in tree and run.outer is None:  # of an earlier C of a path
        run.outer = OuterLoop(state, saved["kappa"], may_grow=False)
    state.W[:] = saved["W"]
    state.gap[:] = saved["gap"]
    state.threshold[:] = saved["threshold"]
    state.set_stored_dual(saved["dual"])
    state.kappa = saved["kappa"]
    if state.Y is not None:
        state.Y[:] = saved["Y"]
    _set_attributes(run.plan, tree["plan"], run)
    run.rng.bit_generator.state = tree["random"]
    if run.outer is not None:
        _set_attributes(run.outer, tree["outer"], run)
    if "best" in tree:
        best = tree["best"]
        block = best["block"]
        shape = (run.problem.n_examples, run.problem.n_classes)
        p = sparse.csr_array((block["data"], block["indices"], block["indptr"]), shape=shape)
        run.set_best(
            Certificate(best["primal"], best["dual"]), _like_weights(best["weights"], run), p
        )


def _block_arrays(block: sparse.csr_array) -> tuple[NDArray, NDArray, NDArray]:
    return block.data, block.indices, block.indptr


def _plain_attributes(thing: Any) -> Tree:
    """Its numbers and arrays; references to other objects stay what they are."""
    kinds = (*SCALARS, np.ndarray)
    own = {name: value for name, value in vars(thing).items() if name != "_visited"}
    return {name: value for name, value in own.items() if isinstance(value, kinds)}


def _set_attributes(thing: Any, saved: Tree, run: Run) -> None:
    for name, value in saved.items():
        held = getattr(thing, name)
        if not isinstance(value, np.ndarray):
            setattr(thing, name, value)
        elif isinstance(held, np.ndarray) and held.shape == value.shape:
            held[...] = value  # in place: the engine may look at the array too
        else:
            setattr(thing, name, _like_weights(value, run))


def _like_weights(value: NDArray, run: Run) -> NDArray:
    """Arrays of weights aligned as the others are."""
    if value.shape != run.state.W.shape:
        return value
    weights = run.state.new_weights()
    weights[:] = value
    return weights
