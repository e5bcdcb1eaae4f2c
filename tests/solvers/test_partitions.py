"""Partitioned problems in one process: certificates, lost partitions, awkward partitions."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polymargin import LOSSES, Checkpoint, DualSolver, LinearMulticlassSVC
from polymargin.estimators.partitioned import LocalSource, PartitionedLinearSVC, checked_chunk
from polymargin.solvers.engines.part import Part
from polymargin.solvers.state import State
from tests.reference import objective

ENGINES = pytest.mark.parametrize(
    "solver", [DualSolver(newton=False), DualSolver()], ids=["local passes", "newton"]
)


def blobs(n: int = 300, d: int = 12, k: int = 4, seed: int = 0) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    X = rng.standard_normal((n, d)) + 2 * rng.standard_normal((k, d))[y]
    return X, y


def source(X: Any, y: np.ndarray, n_parts: int, weight: np.ndarray | None = None) -> LocalSource:
    cuts = np.linspace(0, len(y), n_parts + 1).astype(int)
    rows = [slice(a, b) for a, b in pairwise(cuts)]
    weights = [None if weight is None else weight[part] for part in rows]
    return LocalSource(
        [checked_chunk(m, X[part], y[part], weights[m]) for m, part in enumerate(rows)]
    )


def fitted(parts: LocalSource, **params: Any) -> PartitionedLinearSVC:
    chosen = {"random_state": 0, "store_dual": True, "tol": 1e-3, "top_k": 2} | params
    return PartitionedLinearSVC(**chosen)._fit(parts, None, None)


def check_certificate(
    clf: Any, X: Any, y: np.ndarray, c: np.ndarray | None = None, rtol: float = 1e-9
) -> None:
    """Objectives recomputed in NumPy from what the model shows, and a feasible dual."""
    codes = np.searchsorted(clf.classes_, y)
    scaling = float(clf.intercept_scaling) if clf.fit_intercept else 0.0
    cost = np.full(len(y), clf.C) if c is None else c
    k = len(clf.classes_)
    spec = objective.Spec(X, codes, cost, clf.loss, clf.top_k, scaling, k, clf.smoothing)
    a = clf.dual_coef_.T
    P = objective.primal(spec, clf.coef_, clf.intercept_)
    assert clf.objective_ == pytest.approx(P, rel=rtol)
    assert clf.dual_objective_ == pytest.approx(objective.dual(spec, a), rel=rtol)
    assert objective.dual_infeasibility(spec, a) <= 1e-6
    assert clf.dual_gap_ <= clf.tol


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_parts", [1, 3, 11])
@pytest.mark.parametrize("intercept", [True, False])
@ENGINES
def test_certificates_are_those_of_what_the_partitions_hold(
    loss: str, n_parts: int, intercept: bool, solver: DualSolver
) -> None:
    X, y = blobs()
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0)) if n_parts == 3 else X
    params = {"loss": loss, "C": 0.1, "fit_intercept": intercept, "tol": 1e-2, "max_iter": 3000}
    clf = fitted(source(X, y, n_parts), **params, solver=solver)
    check_certificate(clf, X, y)
    whole = LinearMulticlassSVC(loss=loss, C=0.1, fit_intercept=intercept, top_k=2, tol=1e-6)
    whole.fit(X, y)
    assert clf.dual_objective_ <= whole.objective_ * (1 + 1e-9)
    assert whole.dual_objective_ <= clf.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["crammer_singer", "top_k_alpha", "one_vs_rest"])
def test_smoothing_reaches_the_partitions(loss: str) -> None:
    X, y = blobs()
    params = {"loss": loss, "C": 0.1, "tol": 1e-2, "max_iter": 3000}
    clf = fitted(source(X, y, 3), **params, smoothing=0.5)
    check_certificate(clf, X, y)
    assert clf.objective_ < fitted(source(X, y, 3), **params).dual_objective_


def test_temperatures_are_not_for_partitions() -> None:
    X, y = blobs(n=60)
    with pytest.raises(ValueError, match="Use loss='softmax'"):
        fitted(source(X, y, 2), probability=True)


def test_a_memory_limit_is_not_for_partitions() -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match="memory_limit is not for partitioned data"):
        fitted(source(X, y, 2), memory_limit="1GB")


@ENGINES
def test_float32_certificates(solver: DualSolver) -> None:
    X, y = blobs()
    clf = fitted(source(X.astype(np.float32), y, 4), C=0.1, max_iter=3000, solver=solver)
    assert clf.coef_.dtype == np.float32
    check_certificate(clf, X.astype(np.float32), y, rtol=1e-5)


@ENGINES
def test_the_same_seed_gives_the_same_bits(solver: DualSolver) -> None:
    X, y = blobs()
    first, again, other = (
        fitted(source(X, y, 5), C=0.1, random_state=s, solver=solver) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.coef_, other.coef_)


class Losing(LocalSource):
    """Loses a partition in some rounds; or has it replaced by a copy that somebody pickled."""

    def lose(self, rounds: set[int], how: str) -> Losing:
        self.rounds, self.how, self.round, self.n_lost = rounds, how, 0, 0
        return self

    def call(self, method: str, *arguments: Any) -> list[Any]:
        self.round += method in ("sweep", "look", "times", "blocks", "move")
        answers = super().call(method, *arguments)
        if self.round in self.rounds:
            self.rounds -= {self.round}
            old = self.parts[1]
            self.n_lost += 1
            if self.how == "copied":  # after its answer: V is of a dual that changes its name
                self.parts[1] = pickle.loads(pickle.dumps(old))
            else:
                self.parts[1] = Part(old.number, old.X, old.y, old.c, old.common)
        return answers


@pytest.mark.parametrize("how", ["copied", "lost"])
@ENGINES
def test_a_lost_partition_costs_progress_but_never_correctness(
    how: str, solver: DualSolver
) -> None:
    X, y = blobs()
    parts = Losing(source(X, y, 4).chunks).lose(set(range(1, 12)), how)
    clf = fitted(parts, C=0.1, max_iter=3000, solver=solver)
    assert parts.n_lost == 11
    check_certificate(clf, X, y)


@ENGINES
def test_a_partition_lost_at_the_certificate_is_noticed(solver: DualSolver) -> None:
    X, y = blobs()
    stopped = {"C": 0.1, "max_iter": 7, "solver": solver}
    parts = Losing(source(X, y, 4).chunks).lose({7}, "lost")
    with pytest.warns(ConvergenceWarning, match="rounds"):
        clf = fitted(parts, **stopped, tol=1e-9)
    clf.tol = 1.0
    check_certificate(clf, X, y)  # of the dual without the partition that was lost


@ENGINES
def test_awkward_partitions(solver: DualSolver) -> None:
    X, y = blobs(n=240)
    order = np.argsort(y, kind="stable")  # one class per partition
    X, y = X[order], y[order].astype(str)
    weight = np.ones(240)
    weight[:60] = 0.0  # a partition without weight, and so three classes
    chunks = source(X, y, 4, weight).chunks
    chunks.insert(2, checked_chunk(2, np.empty((0, 12)), np.empty(0)))
    chunks[3] = chunks[3]._replace(X=chunks[3].X.astype(np.float32))
    parts = LocalSource([one._replace(number=m) for m, one in enumerate(chunks)])
    clf = fitted(parts, C=0.1, max_iter=3000, solver=solver)
    assert clf.coef_.dtype == np.float64
    X[120:180] = X[120:180].astype(np.float32)
    seen = weight > 0
    a = clf.dual_coef_
    assert a[:, :60].nnz == 0
    clf.dual_coef_ = a[:, 60:]
    check_certificate(clf, X[seen], y[seen])


@ENGINES
def test_balanced_weights_and_rows_of_zeros(solver: DualSolver) -> None:
    X, y = blobs()
    X[::7] = 0
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    params = {"C": 0.05, "class_weight": "balanced", "fit_intercept": False, "max_iter": 3000}
    clf = fitted(source(X, y, 4, weight), **params, solver=solver)
    totals = np.bincount(y, weights=weight)
    check_certificate(clf, X, y, 0.05 * weight * (totals.mean() / totals)[y])


def test_errors_name_the_partition() -> None:
    X, y = blobs()
    parts = source(X.copy(), y, 12)
    parts.chunks[9].X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"Partition 9: .*NaN"):
        fitted(parts)
    with pytest.raises(ValueError, match="Partition 5: X has 3 rows, but y has 2"):
        checked_chunk(5, np.ones((3, 2)), np.zeros(2))
    parts = source(X, y, 3)
    parts.chunks[1] = checked_chunk(1, X[:9, :5], y[:9])
    with pytest.raises(ValueError, match="Partition 1 has 5 features, but partition 0 has 12"):
        fitted(parts)
    parts.chunks[1] = checked_chunk(1, X[:9], y[:9].astype(str))
    with pytest.raises(ValueError, match="text in partition 1, but numbers in partition 0"):
        fitted(parts)
    with pytest.raises(ValueError, match="only one class"):
        fitted(source(X, np.ones(len(y)), 3))


def test_settings_that_rounds_do_not_know_are_refused() -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match="schedule"):
        fitted(source(X, y, 2), solver=DualSolver(schedule="sdm"))
    with pytest.raises(ValueError, match="newton=True needs dense partitions"):
        fitted(source(sparse.csr_array(X), y, 2), solver=DualSolver(newton=True))


@ENGINES
def test_a_checkpoint_is_gone_on_from(tmp_path: Any, solver: DualSolver) -> None:
    X, y = blobs()
    path = tmp_path / "fit"
    params = {"C": 0.1, "checkpoint": Checkpoint(path, every=None, passes=5), "tol": 1e-4}
    params |= {"solver": solver}
    with pytest.warns(ConvergenceWarning):
        fitted(source(X, y, 4), **params, max_iter=12)
    assert path.exists()
    with pytest.raises(ValueError, match="partitions"):
        fitted(source(X, y, 5), **params)
    clf = fitted(source(X, y, 4), **params, max_iter=5000)
    assert clf.n_iter_ > 12 and not path.exists()
    check_certificate(clf, X, y)


@ENGINES
def test_a_warm_start_begins_from_the_duals_of_the_previous_fit(solver: DualSolver) -> None:
    X, y = blobs()
    params = {"C": 0.1, "tol": 1e-4, "max_iter": 5000, "solver": solver}
    clf = fitted(source(X, y, 4), **params, warm_start=True)
    cold = clf.n_iter_
    clf._fit(source(X, y, 4), None, None)
    assert clf.n_iter_ <= 0.5 * cold  # only the primal point has to be found again
    check_certificate(clf, X, y)
    for C in (0.13, 0.09):  # scaled down, and up
        afresh = fitted(source(X, y, 4), **params | {"C": C}).n_iter_
        clf.set_params(C=C)._fit(source(X, y, 4), None, None)
        assert clf.n_iter_ < afresh
        check_certificate(clf, X, y)


def test_a_warm_start_with_other_data_begins_afresh() -> None:
    X, y = blobs()
    params = {"C": 0.1, "warm_start": True}
    for n_parts, labels, loss in (
        (3, y, "crammer_singer"),
        (4, y[::-1], "crammer_singer"),
        (4, y, "weston_watkins"),
    ):
        clf = fitted(source(X, y, 4), **params)
        clf.set_params(loss=loss)._fit(source(X, labels, n_parts), None, None)
        afresh = fitted(source(X, labels, n_parts), **params | {"loss": loss})
        np.testing.assert_array_equal(clf.coef_, afresh.coef_)
        check_certificate(clf, X, labels)


def test_a_partition_lost_after_a_warm_start_begins_from_it() -> None:
    X, y = blobs()
    clf = fitted(source(X, y, 4), C=0.1, warm_start=True, max_iter=3000)
    parts = Losing(source(X, y, 4).chunks).lose({1, 3}, "lost")
    clf.set_params(tol=1e-5)._fit(parts, None, None)
    assert parts.n_lost == 2
    check_certificate(clf, X, y)


def test_two_classes() -> None:
    X, y = blobs(k=2)
    clf = fitted(source(X, y, 4), C=0.1, top_k=None, max_iter=3000)
    whole = LinearMulticlassSVC(C=0.1, tol=1e-5).fit(X, y)
    assert clf.coef_.shape == (1, 12)
    np.testing.assert_array_equal(clf.predict(X) == y, whole.predict(X) == y)


@pytest.mark.parametrize("at", [1, 2, 8])
@ENGINES
def test_the_dual_after_ctrl_c_in_a_round_is_that_of_its_certificate(
    at: int, solver: DualSolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted when some partitions have changed their dual, and nobody knows of it yet."""
    X, y = blobs()
    clf = PartitionedLinearSVC(random_state=0, store_dual=True, C=0.1, tol=1e-9, solver=solver)
    method, calls = "sweep" if not solver.newton else "set_dual", []
    works = getattr(State, method)

    def interrupted(self: State, *given: Any, **options: Any) -> Any:
        found = works(self, *given, **options)
        calls.append(method)
        if len(calls) == at:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(State, method, interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf._fit(source(X, y, 3), None, None)
    clf.tol = np.inf
    check_certificate(clf, X, y)
