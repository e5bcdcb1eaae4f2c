"""The same random_state and n_jobs give the same bits, wherever the fit runs."""

from __future__ import annotations

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polymargin import LinearMulticlassSVC
from tests.estimators import LOSS_PARAMS, loss_id, make_problem, make_sparse_problem

PROBLEMS = {"dense": make_problem, "sparse": make_sparse_problem}
by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)
by_data = pytest.mark.parametrize("data", PROBLEMS)


def fit_coef(data: str, params: dict, seed: int = 0, n_jobs: int | None = None) -> np.ndarray:
    """Fit in whatever thread or process this is called from."""
    X, y = PROBLEMS[data](300, 20, 5)
    clf = LinearMulticlassSVC(**params, C=0.05, random_state=seed, n_jobs=n_jobs).fit(X, y)
    return np.column_stack([clf.coef_, clf.intercept_])


@by_data
@by_loss
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fits_repeat_bit_for_bit(data, params, n_jobs):
    first = fit_coef(data, params, n_jobs=n_jobs)
    np.testing.assert_array_equal(first, fit_coef(data, params, n_jobs=n_jobs))


def test_another_seed_visits_in_another_order():
    params = {"loss": "crammer_singer"}
    assert not np.array_equal(fit_coef("dense", params, 0), fit_coef("dense", params, 1))


@by_data
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_threads_at_once_give_the_same_bits(data, n_jobs):
    """Each thread has its own seed, so that shared state would show."""
    fit = functools.partial(fit_coef, data, {"loss": "crammer_singer"}, n_jobs=n_jobs)
    alone = [fit(seed=seed) for seed in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda seed: fit(seed=seed % 4), range(32)))
    for seed, coef in enumerate(together):
        np.testing.assert_array_equal(coef, alone[seed % 4])


@by_data
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_give_the_same_bits(data, n_jobs, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform cannot {method}")
    fit = functools.partial(fit_coef, data, {"loss": "weston_watkins"}, n_jobs=n_jobs)
    here = fit()  # before the fork, so that a thread pool of the parent would be inherited
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        there = [pool.submit(fit).result(timeout=600) for _ in range(2)]
    for coef in there:
        np.testing.assert_array_equal(coef, here)


@by_data
@by_loss
def test_threads_do_not_change_the_passes(data, params):
    X, y = PROBLEMS[data](300, 20, 5)

    def three_passes(n_jobs: int) -> LinearMulticlassSVC:
        clf = LinearMulticlassSVC(**params, tol=1e-12, max_iter=3, random_state=0, n_jobs=n_jobs)
        with pytest.warns(ConvergenceWarning):
            return clf.fit(X, y)

    one = three_passes(1)
    for n_jobs in (2, 3):
        other = three_passes(n_jobs)
        np.testing.assert_allclose(other.coef_, one.coef_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=0, atol=1e-10)


@by_loss
def test_threads_do_not_change_the_optimum(params):
    X, y = make_problem(300, 20, 5)
    settings = {**params, "C": 0.05, "tol": 1e-6, "max_iter": 20_000, "random_state": 0}
    one = LinearMulticlassSVC(**settings, n_jobs=1).fit(X, y)
    two = LinearMulticlassSVC(**settings, n_jobs=2).fit(X, y)
    assert max(one.dual_gap_, two.dual_gap_) <= 1e-6
    assert two.objective_ == pytest.approx(one.objective_, rel=2e-6)


def test_all_cores_is_a_number_of_threads():
    assert fit_coef("dense", {"loss": "crammer_singer"}, n_jobs=-1).shape == (5, 21)


def test_a_random_state_instance_moves_on():
    X, y = make_problem()
    rng = np.random.RandomState(0)
    clf = LinearMulticlassSVC(random_state=rng)
    first, second = clf.fit(X, y).coef_, clf.fit(X, y).coef_
    assert not np.array_equal(first, second)
    again = LinearMulticlassSVC(random_state=np.random.RandomState(0)).fit(X, y).coef_
    np.testing.assert_array_equal(first, again)
