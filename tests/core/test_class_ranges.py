"""Classes cut into ranges that threads own: the same path, and one dual to everybody else."""

import os

import numpy as np
import pytest

from polymargin.solvers.state import State
from tests.core.test_sweeps import make_problem, tolerance

UNCOUPLED = ("one_vs_rest", "one_vs_rest_squared")
# One listed pass: a block that does not move keeps its listed zeros, and a part of a block may stay
# where another moves; so a second one may visit other classes.
MODES = {
    "dense": ["rows", "listed", "blocked", "by_class", "blocked"],
    np.int32: ["rows", "listed", "rows", "rows"],
}
every_uncoupled = pytest.mark.parametrize("name", UNCOUPLED)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_layout = pytest.mark.parametrize("layout", ["dense", np.int32])


def swept(problem, modes, ranges=1, n_jobs=1):
    state = State(problem)
    if ranges > 1:
        state.cut_classes(ranges)
    rng = np.random.default_rng(1)
    totals = [state.sweep(rng.permutation(problem.visited), m, n_jobs=n_jobs) for m in modes]
    return state, totals


def marks(state):
    p = state.dual_block()
    return [a.tobytes() for a in (state.W, state.gap, p.data, p.indices, p.indptr)]


@every_uncoupled
@every_dtype
@every_layout
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("n_classes", [3, 26, 60])
def test_ranges_walk_the_same_path(name, dtype, layout, bias, n_classes):
    problem = make_problem(name, dtype, layout=layout, n_classes=n_classes, bias=bias, n=300)
    whole, seen = swept(problem, MODES[layout])
    for ranges in (2, 3, 1000):
        cut, others = swept(problem, MODES[layout], ranges, n_jobs=2)
        near = {"rtol": 0, "atol": 10 * tolerance(dtype) * np.abs(whole.W).max()}
        np.testing.assert_allclose(cut.W, whole.W, **near)
        np.testing.assert_allclose(cut.dual_block().toarray(), whole.dual_block().toarray(), **near)
        np.testing.assert_allclose(cut.gap, whole.gap, rtol=0, atol=1e3 * near["atol"])
        assert cut.dual_sum() == pytest.approx(whole.dual_sum(), rel=10 * tolerance(dtype))
        for one, other in zip(seen, others, strict=True):
            assert other.dual == pytest.approx(one.dual, rel=1e-3, abs=1e-3)
            assert other.gap == pytest.approx(one.gap, rel=1e-3, abs=1e-3)
            assert other.loss == pytest.approx(one.loss, rel=1e-3, abs=1e-3)


@every_uncoupled
@every_layout
def test_threads_change_no_bit(name, layout):
    """Ranges are swept alike whoever owns them; so do more ranges than threads."""
    problem = make_problem(name, layout=layout, n_classes=60, bias=1.0, n=300)
    alone = marks(swept(problem, MODES[layout], ranges=4, n_jobs=1)[0])
    for n_jobs in (2, 3, 8):
        assert marks(swept(problem, MODES[layout], ranges=4, n_jobs=n_jobs)[0]) == alone


@every_uncoupled
@every_dtype
@every_layout
def test_what_others_see_does_not_depend_on_the_cut(name, dtype, layout):
    """Certificates, rebuilt weights, free examples and the stored dual."""
    problem = make_problem(name, dtype, layout=layout, n_classes=60, bias=1.0)
    state, _ = swept(problem, ["rows", "listed"])
    losses, gap = state.evaluate(state.W, 2).copy(), state.gap.copy()
    block, V, free = state.dual_block(), state.rebuild(), state.free_examples()
    for ranges in (3, 2, 1):
        state.cut_classes(ranges)  # takes over the dual that is there
        assert (abs(state.dual_block() - block)).nnz == 0
        np.testing.assert_array_equal(state.free_examples(), free)
        np.testing.assert_allclose(state.rebuild(), V, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(state.evaluate(state.W, 2), losses)
        np.testing.assert_allclose(state.gap, gap, rtol=0, atol=1e-10 * np.abs(losses).max())
        state.set_dual(block)
        assert (abs(state.dual_block() - block)).nnz == 0


@every_uncoupled
@every_dtype
@every_layout
def test_the_weights_belong_to_the_dual(name, dtype, layout):
    """And no sweep lowers the dual, listed ones included."""
    problem = make_problem(name, dtype, layout=layout, n_classes=60, bias=1.0)
    state, rng, last = State(problem), np.random.default_rng(2), 0.0
    state.cut_classes(3)
    for mode in ["rows", "listed", "listed"] * 4:
        state.sweep(rng.permutation(problem.visited), mode, n_jobs=2)
        V = state.rebuild()
        assert np.abs(V - state.W).max() <= tolerance(dtype) * np.abs(V).max()
        dual = state.dual_sum() - 0.5 * float((V.astype(np.float64) ** 2).sum())
        assert dual >= last - tolerance(dtype) * abs(last)
        last = dual


def test_refusals():
    with pytest.raises(ValueError, match="depend on each other"):
        State(make_problem("crammer_singer")).cut_classes(2)
    state = State(make_problem("one_vs_rest", n_classes=26))
    state.track_violation()
    with pytest.raises(ValueError, match="violation"):
        state.cut_classes(2)
    state = State(make_problem("one_vs_rest", n_classes=26))
    state.cut_classes(2)
    with pytest.raises(ValueError, match="violation"):
        state.track_violation()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own():
    problem = make_problem("one_vs_rest", layout=np.int32, n_classes=60)
    state, _ = swept(problem, ["rows"], ranges=2, n_jobs=2)  # its threads wait for the next job
    child = os.fork()
    if child == 0:
        try:
            state.sweep(problem.visited, n_jobs=2)
            state.evaluate(state.W, 2)
            del state  # joins the child's threads, not the parent's
            os._exit(0)
        except BaseException:
            os._exit(1)
    state.sweep(problem.visited, n_jobs=2)
    assert os.waitpid(child, 0)[1] == 0
