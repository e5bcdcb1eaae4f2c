"""Checkpoints of fits on a cluster that somebody has edited: refused, or a true certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")

from distributed import Client, LocalCluster

from polymargin import Checkpoint, DualSolver
from polymargin.dask import DaskLinearMulticlassSVC
from tests.dask.test_estimator import PARAMS, chunked
from tests.solvers import edited
from tests.solvers.test_edited_checkpoints import outcomes
from tests.solvers.test_partitions import blobs, check_certificate


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    made = LocalCluster(n_workers=2, processes=False, dashboard_address=":0")
    with made as workers, Client(workers, set_as_default=False) as found:
        yield found


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("newton", ["auto", False])
@pytest.mark.filterwarnings("ignore")
def test_edits_of_fits_on_a_cluster(client: Client, tmp_path: Any, newton: Any, count: int) -> None:
    """The workers check the duals that a file gives them."""
    X, y = blobs(150, 8)
    path = tmp_path / "fit"
    place = Checkpoint(path, every=None, passes=1)
    params = PARAMS | {"tol": 1e-3, "C": 0.1, "solver": DualSolver(newton=newton)}
    params |= {"checkpoint": place, "client": client}

    def fitted(max_iter: int) -> DaskLinearMulticlassSVC:
        clf = DaskLinearMulticlassSVC(**params | {"max_iter": max_iter})
        return clf.fit(*chunked(X, y, 3))

    def check(clf: Any) -> None:
        clf.tol = max(clf.tol, clf.dual_gap_)
        check_certificate(clf, X, y)

    fitted(4)
    saved = edited.read(path)
    seen = outcomes(saved, path, lambda: fitted(40), check, count)
    assert seen.total() == count and seen["refused"] >= count // 4
