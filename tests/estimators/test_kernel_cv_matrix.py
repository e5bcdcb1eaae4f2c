"""The kernel matrix that the folds of a kernel machine share, and what they hold out of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import StratifiedKFold

from polymargin import KernelMulticlassSVCCV, KernelSolver
from polymargin.kernel_functions import KernelFunction, SharedKernel, TrainingKernel
from polymargin.losses import get_loss
from polymargin.problem import KernelProblem
from tests.estimators import make_problem
from tests.estimators.test_kernel_cv import EXACT, NO_ROOM, by_loss, full_search


@pytest.mark.parametrize("scoring", [None, "top_2_accuracy"])
def test_every_kernel_value_is_computed_once(scoring):
    X, y = make_problem(100)
    computed = []

    def kernel(A, B):
        computed.append(len(A) * len(B))
        return pairwise_kernels(A, B, metric="rbf", gamma=0.2)

    clf = full_search(kernel=kernel, scoring=scoring).fit(X, y)
    assert sum(computed) == 100**2  # a grid that is given needs no diagonal for its scale
    assert clf.n_kernel_evaluations_ == 100**2
    computed.clear()
    clf.set_params(cache_size=NO_ROOM, refit=False).fit(X, y)
    assert clf.n_kernel_evaluations_ == sum(computed) - 5 * 100 > 100**2  # diagonals of folds


def test_folds_share_the_matrix_and_the_solver_never_asks_for_what_they_hold_out(monkeypatch):
    X, y = make_problem(150)
    asked: list[tuple[KernelProblem, set[int]]] = []
    solve, block = KernelSolver.solve, SharedKernel.block

    def watched_solve(self, problem, **options):
        asked.append((problem, set()))
        return solve(self, problem, **options)

    def watched_block(self, rows, columns, *args, **kwargs):
        asked[-1][1].update(rows.tolist(), columns.tolist())
        return block(self, rows, columns, *args, **kwargs)

    monkeypatch.setattr(KernelSolver, "solve", watched_solve)
    monkeypatch.setattr(SharedKernel, "block", watched_block)
    full_search(refit=False).fit(X, y)
    assert len({id(problem.kernel.matrix) for problem, _ in asked}) == 1
    for position, (train, _) in enumerate(StratifiedKFold(5).split(X, y)):
        for problem, examples in asked[3 * position : 3 * position + 3]:
            assert examples <= set(train.tolist())
            np.testing.assert_array_equal(np.flatnonzero(problem.c), train)


def test_values_of_c_start_from_their_neighbour():
    X, y = make_problem(300)
    grid = [1.0, 1.1, 1.2]
    starts = []

    class Watched(KernelSolver):
        def solve(self, problem, **options):
            starts.append(options["start"])
            return super().solve(problem, **options)

    KernelMulticlassSVCCV(Cs=grid, cv=2, solver=Watched(), refit=False, early_stopping=False).fit(
        X, y
    )
    assert [start is None for start in starts] == [True, False, False] * 2
    assert [start.c.max() for start in starts if start is not None] == [1.0, 1.1] * 2


def test_a_scorer_may_ask_about_other_rows():
    X, y = make_problem(120)
    Z, _ = make_problem(30, seed=1)
    seen = []

    def scorer(estimator, rows, labels):
        assert rows.shape[1] == X.shape[1]  # the data, not kernel values
        at_hand = estimator.decision_function(rows)
        np.testing.assert_allclose(at_hand, estimator.decision_function(rows.copy()), atol=1e-10)
        seen.append(estimator.predict(Z))
        return accuracy_score(labels, estimator.predict(rows))

    clf = full_search(scoring=scorer, **EXACT).fit(X, y)
    np.testing.assert_array_equal(clf.scores_, full_search(**EXACT).fit(X, y).scores_)
    assert len(seen) == clf.scores_.size


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_columns", [60, 280], ids=["few", "most"])
def test_a_shared_matrix_gives_the_values_of_the_kernel(dtype, n_columns):
    X = np.random.default_rng(0).standard_normal((300, 5)).astype(dtype)
    plain = TrainingKernel(X, KernelFunction("rbf", gamma=0.3))
    shared = SharedKernel(TrainingKernel(X, KernelFunction("rbf", gamma=0.3)))
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(300)[:200], rng.permutation(300)[:n_columns]
    places = rng.permutation(250)[:200]
    expected, found = (np.zeros((250, n_columns), dtype) for _ in range(2))
    plain.block(rows, columns, out=expected, places=places)
    shared.block(rows, columns, out=found, places=places)
    close = {"atol": 1e-14 if dtype == np.float64 else 1e-5}
    np.testing.assert_allclose(found, expected, **close)
    coef = rng.standard_normal((200, 3))
    product = plain.times(columns, rows, coef)
    np.testing.assert_allclose(shared.times(columns, rows, coef), product, atol=200 * close["atol"])
    np.testing.assert_allclose(shared.diagonal(), plain.diagonal(), **close)
    assert shared.n_evaluations == 300**2


@by_loss
def test_the_solver_leaves_examples_of_no_cost_out(params):
    """Also after a warm start and through shrinking: the optimum without these rows."""
    X, y = make_problem(200)
    c = np.where(np.arange(200) % 3 == 0, 0.0, 1.0)
    loss = get_loss(params["loss"], params.get("top_k"))

    def problem(rows, c):
        kernel = TrainingKernel(np.ascontiguousarray(X[rows]), KernelFunction("rbf", gamma=0.3))
        return KernelProblem(kernel, y[rows].astype(np.int32), c[rows], loss, 4)

    solver, options = KernelSolver(), {"tol": 1e-6, "random_state": 0}
    first = solver.solve(problem(slice(None), c), **options)
    assert set(first.history["n_awake"]) <= set(range(134))
    second = solver.solve(problem(slice(None), 5 * c), start=first, **options)
    reference = solver.solve(problem(c > 0, 5 * c), **options)
    assert second.dual == pytest.approx(reference.dual, rel=2e-6)
    assert second.primal == pytest.approx(reference.primal, rel=2e-6)
    assert np.diff(second.block.indptr)[c == 0].sum() == 0
