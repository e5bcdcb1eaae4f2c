"""The compiled sweeps: all modes walk the same path, and W always belongs to the dual."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from polymargin import LOSSES, Problem, get_loss
from polymargin.solvers.state import State
from tests.reference.objective import Spec, primal

every_loss = pytest.mark.parametrize("name", LOSSES)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def make_problem(name, dtype=np.float64, *, layout="dense", n_classes=7, n=90, d=13, bias=0.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    X[5] = 0
    X = X.astype(dtype)
    y = rng.integers(n_classes, size=n).astype(np.int32)
    c = rng.uniform(0.1, 2.0, n)
    c[3] = 0
    if layout != "dense":
        X = sparse.csr_array(X)
        X.indices, X.indptr = X.indices.astype(layout), X.indptr.astype(layout)
    return Problem(X, y, c, get_loss(name, 3), n_classes, bias)


def run(problem, modes, n_jobs=1):
    state = State(problem)
    rng = np.random.default_rng(1)
    for mode in modes:
        state.sweep(rng.permutation(problem.visited), mode, n_jobs=n_jobs)
    return state


def drift(state):
    return np.abs(state.rebuild() - state.W).max() / np.abs(state.W).max()


def tolerance(dtype):
    return 1e-11 if dtype == np.float64 else 1e-4


@every_loss
@every_dtype
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("n_classes", [4, 7, 26, 60])
def test_csr_and_dense_and_blocked_sweeps_agree(name, dtype, bias, n_classes):
    dense = make_problem(name, dtype, n_classes=n_classes, bias=bias)
    reference = run(dense, ["rows"] * 3).W
    scale = np.abs(reference).max()
    for layout, modes, n_jobs in (
        (np.int32, ["rows"] * 3, 1),
        (np.int64, ["rows"] * 3, 1),
        ("dense", ["blocked"] * 3, 1),
        ("dense", ["blocked"] * 3, 2),
        ("dense", ["by_class"] * 3, 1),
    ):
        problem = make_problem(name, dtype, layout=layout, n_classes=n_classes, bias=bias)
        W = run(problem, modes, n_jobs).W
        assert np.abs(W - reference).max() <= tolerance(dtype) * scale


@every_loss
def test_blocks_of_many_examples_agree(name):
    problem = make_problem(name, n=700, d=40, n_classes=50)
    reference = run(problem, ["rows"] * 2).W
    for mode in ("blocked", "by_class"):
        assert np.abs(run(problem, [mode] * 2).W - reference).max() <= 1e-10


@every_loss
@every_dtype
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_listed_classes_of_csr_and_dense_rows_agree(name, dtype, bias):
    """Dense rows are swept on a copy of the weights by class."""
    modes = ["rows", "rows", "listed", "listed", "rows", "listed"]
    sizes = {"n": 200, "d": 37, "n_classes": 26, "bias": bias}
    reference = run(make_problem(name, dtype, layout=np.int32, **sizes), modes)
    dense = run(make_problem(name, dtype, **sizes), modes)
    scale = np.abs(reference.W).max()
    assert np.abs(dense.W - reference.W).max() <= 10 * tolerance(dtype) * scale


@every_loss
@every_dtype
@pytest.mark.parametrize("layout", ["dense", np.int32])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_the_weights_belong_to_the_dual(name, dtype, layout, bias):
    problem = make_problem(name, dtype, layout=layout, n_classes=26, bias=bias)
    state = run(problem, ["rows", "rows", "listed", "listed", "rows", "listed"])
    assert drift(state) <= tolerance(dtype)


@every_loss
def test_no_sweep_lowers_the_dual(name):
    problem = make_problem(name)
    state = State(problem)
    rng = np.random.default_rng(2)
    last = 0.0
    for mode in ["rows", "listed", "blocked"] * 6:
        state.sweep(rng.permutation(problem.visited), mode)
        dual = state.dual_sum() - 0.5 * float((state.rebuild() ** 2).sum())
        assert dual >= last - 1e-10
        last = dual


@every_loss
@every_dtype
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_losses_are_evaluated_exactly(name, dtype, n_jobs):
    problem = make_problem(name, dtype, bias=1.5)
    state = run(problem, ["rows"] * 2)
    W = state.W[:, :7].astype(np.float64)
    losses = state.evaluate(state.W, n_jobs)
    spec = Spec(problem.X.astype(np.float64), problem.y, problem.c, name, problem.loss.top_k, 1.5)
    expected = primal(spec, W[:-1].T, W[-1] * 1.5) - 0.5 * (W**2).sum()
    assert losses.sum() == pytest.approx(expected, rel=1e-12)


@every_loss
@pytest.mark.parametrize("layout", ["dense", np.int32])
def test_losses_at_multiples_of_the_weights(name, layout):
    """Those at the multiples themselves, and the same sums for any number of threads."""
    problem = make_problem(name, layout=layout, n=2500, bias=1.5)
    state = run(problem, ["rows"] * 2)
    factors = np.array([0.5, 1.0, 1.01, 2.0])
    sums = {n_jobs: np.zeros(4) for n_jobs in (1, 2, 3)}
    for n_jobs, found in sums.items():
        state.evaluate(state.W, n_jobs, factors=factors, sums=found)
        assert np.array_equal(found, sums[1])
    expected = [state.evaluate(t * state.W).sum() for t in factors]
    np.testing.assert_allclose(sums[1], expected, rtol=1e-12)


@every_loss
def test_a_second_visit_finds_nothing(name):
    problem = make_problem(name)
    state = run(problem, ["rows"] * 3)
    for i in problem.visited[:30]:
        one = np.array([i])
        state.sweep(one)
        state.sweep(one)
        assert state.gap[i] <= 1e-12


@every_loss
def test_the_dual_survives_a_round_trip(name):
    problem = make_problem(name)
    state = run(problem, ["rows"] * 3)
    other = State(problem)
    other.set_dual(state.dual_block())
    assert (other.dual_block() != state.dual_block()).nnz == 0
    assert np.array_equal(other.rebuild(), state.rebuild())


def test_nonsense_is_refused():
    problem = make_problem("crammer_singer")
    state = State(problem)
    with pytest.raises(ValueError, match="order"):
        state.sweep(np.array([10_000]))
    with pytest.raises(ValueError, match="order"):
        state.sweep(np.array([-1]))
    with pytest.raises(ValueError, match="mode"):
        state.sweep(problem.visited, "sideways")
    with pytest.raises(ValueError, match="wrong number of rows"):
        state.evaluate(state.W[:-1])
    with pytest.raises(ValueError, match="a sum per factor"):
        state.evaluate(state.W, factors=np.ones(2), sums=np.zeros(1))
    csr = make_problem("crammer_singer", layout=np.int32)
    with pytest.raises(ValueError, match="mode"):
        State(csr).sweep(problem.visited, "blocked")
    broken = csr.X.copy()
    broken.indices[0] = 99
    with pytest.raises(ValueError, match="outside"):
        Problem(broken, csr.y, csr.c, csr.loss, csr.n_classes)


@every_loss
def test_a_dual_is_taken_over_from_another_precision(name):
    single = run(make_problem(name, np.float32), ["rows"] * 2)
    double, back = State(make_problem(name)), State(make_problem(name, np.float32))
    run_before = np.random.default_rng(2).permutation(double.problem.visited)
    double.sweep(run_before)  # what was there is forgotten
    double.copy_dual(single)
    back.copy_dual(double)
    expected = single.dual_block().toarray()
    np.testing.assert_array_equal(double.dual_block().toarray(), expected)
    np.testing.assert_array_equal(back.dual_block().toarray(), expected)
    assert double.dual_sum() == pytest.approx(single.dual_sum(), rel=1e-12)
    with pytest.raises(ValueError, match="differ in shape"):
        double.copy_dual(State(make_problem(name, n=80)))


@pytest.mark.parametrize("name", ["crammer_singer", "top_k_beta", "top_k_alpha"])
def test_what_a_visit_sees_of_a_smoothed_gap_is_never_too_small(name):
    """The value that a visit takes is a bound at the last threshold, exact at the optimum."""
    problem = make_problem(name)
    problem = replace(problem, loss=get_loss(name, problem.loss.top_k, smoothing=0.7))
    state, exact = State(problem), State(problem)
    rng = np.random.default_rng(1)
    loose = 0.0
    for _ in range(12):
        for i in rng.permutation(problem.visited)[:20]:
            exact.copy_dual(state)
            exact.evaluate(state.W)
            state.sweep(np.array([i]))
            excess = state.gap[i] - exact.gap[i]
            assert excess >= -1e-12
            loose = max(loose, excess)
    if name in ("crammer_singer", "top_k_beta"):
        assert loose > 1e-6  # far from the optimum it is a bound
    for _ in range(300):
        state.sweep(rng.permutation(problem.visited))
    seen = state.gap.copy()
    state.evaluate(state.W)
    assert seen.sum() <= 1e-9
    np.testing.assert_allclose(seen, state.gap, rtol=0, atol=1e-10)
