"""Newton rounds: sums over partitions are those of all examples, and few features converge."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polymargin import DualSolver, LinearMulticlassSVC
from polymargin.estimators.partitioned import LocalSource, PartitionedLinearSVC
from polymargin.losses import get_loss
from polymargin.solvers.engines import newton_rounds
from polymargin.solvers.engines.part import Common, Part
from polymargin.solvers.engines.partitions import LocalPartitions
from polymargin.solvers.newton.side import Point
from tests.solvers.test_partitions import blobs, check_certificate, fitted, source

FLAT = ["crammer_singer", "weston_watkins", "top_k_alpha", "top_k_beta", "one_vs_rest"]


def parts_of(loss: str, cuts: list[int]) -> LocalPartitions:
    """Blobs, cut; some rows weigh nothing, one is zero."""
    X, y = blobs(n=90, d=5)
    c = np.where(np.arange(90) % 11 == 0, 0.0, 0.3)
    X[7] = 0.0
    top_k = 2 if "top_k" in loss else None
    common = Common(get_loss(loss, top_k), 4, 5, np.dtype(float), 0.5, 0.5, DualSolver(), 0)
    codes = y.astype(np.int32)
    bounds = [0, *cuts, 90]
    rows = [slice(*pair) for pair in pairwise(bounds)]
    return LocalPartitions([Part(m, X[r], codes[r], c[r], common) for m, r in enumerate(rows)])


@pytest.mark.parametrize("loss", FLAT)
def test_sums_over_partitions_are_those_of_all_examples(loss: str) -> None:
    rng = np.random.default_rng(3)
    W, D = rng.normal(size=(2, 6, 4)) * 0.3
    whole, cut = parts_of(loss, []), parts_of(loss, [1, 40, 40, 77])
    whole.call("sweep", np.zeros((6, 4)), 1.0)
    p = whole.parts[0].dual()[0]
    cut.set_duals([p[:1], p[1:40], p[40:40], p[40:77], p[77:]])
    at = Point(1, 0.7, W)
    for method, arguments in (("look", ()), ("times", (D,)), ("blocks", ()), ("move", ())):
        one, many = (parts.total(method, at, *arguments) for parts in (whole, cut))
        np.testing.assert_allclose(many.V, one.V, atol=1e-12)
        if method == "look":
            for i in range(5):
                total = sum(looked[i] for looked in many.looked)
                assert total == pytest.approx(one.looked[0][i], rel=1e-12)
    moved = np.vstack([part.dual()[0].toarray() for part in cut.parts])
    np.testing.assert_allclose(moved, whole.parts[0].dual()[0].toarray(), atol=1e-12)


@pytest.mark.parametrize("loss", FLAT)
def test_the_hessian_is_the_derivative_of_the_gradient(loss: str) -> None:
    """Along a short step that stays inside all faces, V(N) changes as ``times`` says."""
    parts = parts_of(loss, [30, 60])
    W, D = np.random.default_rng(5).normal(size=(2, 6, 4)) * 0.3
    step = 1e-7
    ahead, behind = (
        parts.total("look", Point(i, 0.7, W + t * D)).V for i, t in enumerate((step, -step))
    )
    product = parts.total("times", Point(2, 0.7, W), D).V
    np.testing.assert_allclose((behind - ahead) / (2 * step), product, atol=1e-5)


def test_a_partition_that_does_not_know_the_point_finds_it_again() -> None:
    parts = parts_of("crammer_singer", [30, 60])
    at = Point(1, 0.7, np.random.default_rng(5).normal(size=(6, 4)))
    parts.total("look", at)
    D = np.ones((6, 4)) * np.arange(4)
    known = parts.total("times", at, D).V
    old = parts.parts[1]
    parts.parts[1] = Part(old.number, old.X, old.y, old.c, old.common)
    np.testing.assert_array_equal(parts.total("times", at, D).V, known)
    old.set_dual(old.dual()[0])  # another centre, as far as anybody knows: the same
    np.testing.assert_array_equal(parts.total("times", at, D).V, known)


def narrow(n: int = 600) -> tuple[Any, np.ndarray]:
    """Correlated features of several sizes."""
    X, y = blobs(n, 12, 4, seed=2)
    return X @ np.random.default_rng(0).normal(size=(12, 12)) * np.logspace(0, -1.5, 12), y


def test_few_features_converge_where_local_passes_do_not() -> None:
    X, y = narrow()
    params = {"C": 1.0, "tol": 1e-4, "max_iter": 400}
    clf = fitted(source(X, y, 8), **params)
    check_certificate(clf, X, y)
    whole = LinearMulticlassSVC(C=1.0, tol=1e-7, max_iter=20_000).fit(X, y)
    assert clf.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    with pytest.warns(ConvergenceWarning):
        local = fitted(source(X, y, 8), **params, solver=DualSolver(newton=False))
    assert local.dual_gap_ > 10 * clf.dual_gap_


def test_rounds_are_trips_to_all_partitions() -> None:
    class Counting(LocalSource):
        trips = 0

        def total(self, method: str, *arguments: Any) -> Any:
            self.trips += 1
            return super().total(method, *arguments)

    X, y = narrow()
    parts = Counting(source(X, y, 3).chunks)
    clf = fitted(parts, C=1.0, store_dual=False)
    assert clf.n_iter_ == parts.trips


def test_what_makes_newton_rounds() -> None:
    common = parts_of("crammer_singer", []).parts[0].common
    sizes = {"dense": True, "largest": 1000}
    assert newton_rounds.is_for(common, **sizes)
    assert not newton_rounds.is_for(common, dense=False, largest=1000)
    assert not newton_rounds.is_for(common, dense=True, largest=10**8)
    wide = replace(common, n_features=5000)
    smooth = replace(common, loss=get_loss("crammer_singer", None, 0.5))
    unasked = replace(common, settings=DualSolver(newton=False))
    blind = replace(common, settings=DualSolver(certify=False))
    for other in (wide, smooth, unasked, blind):
        assert not newton_rounds.is_for(other, **sizes)


def test_ctrl_c_leaves_the_best_model() -> None:
    X, y = narrow()

    class Interrupted(LocalSource):
        trips = 0

        def total(self, method: str, *arguments: Any) -> Any:
            self.trips += 1
            if self.trips == 60:
                raise KeyboardInterrupt
            return super().total(method, *arguments)

    clf = PartitionedLinearSVC(random_state=0, store_dual=True, tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        clf._fit(Interrupted(source(X, y, 3).chunks), None, None)
    clf.tol = 1.0
    check_certificate(clf, X, y)
