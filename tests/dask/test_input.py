"""Awkward and bad partitions on a real client: the right model, or an error that names them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import get_config

pytest.importorskip("distributed", reason="Dask is absent: pip install polymargin[dask]")

import dask
import dask.array as da
from distributed import Client, LocalCluster

from polymargin.dask import DaskLinearMulticlassSVC, estimator
from polymargin.estimators import partitioned
from tests.dask.test_estimator import PARAMS, chunked
from tests.solvers.test_partitions import blobs, check_certificate


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    made = LocalCluster(n_workers=2, processes=False, dashboard_address=":0")
    with made as workers, Client(workers, set_as_default=False) as client:
        yield client


def delayed(parts: list[Any]) -> list[Any]:
    return [dask.delayed(one) for one in parts]


def cut(X: Any, y: np.ndarray, *cuts: int) -> tuple[list[Any], list[np.ndarray]]:
    """Partitions that end at these rows."""
    edges = [0, *cuts, len(y)]
    parts = [slice(a, b) for a, b in pairwise(edges)]
    return [X[part] for part in parts], [y[part] for part in parts]


# --- right ---------------------------------------------------------------------------------------


def test_partitions_of_several_types_are_solved_in_the_one_that_holds_all(client: Client) -> None:
    X, y = blobs()
    X = np.round(8 * X)  # the same numbers in every type
    rows, labels = cut(X, y, 60, 120, 180, 240)
    rows[0], rows[2], rows[3] = rows[0].astype(np.float32), rows[2].astype(int), rows[3].tolist()
    labels[1] = labels[1].astype(np.int8)
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(delayed(rows), delayed(labels))
    same = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 5))
    assert clf.coef_.dtype == np.float64
    np.testing.assert_array_equal(clf.coef_, same.coef_)
    check_certificate(clf, X, y)


def test_dense_and_sparse_partitions(client: Client) -> None:
    X, y = blobs()
    rows, labels = cut(X, y, 100, 200)
    rows[1] = sparse.coo_array(rows[1])
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(delayed(rows), delayed(labels))
    check_certificate(clf, X, y)


def test_classes_of_one_partition_only_and_partitions_of_one_class(client: Client) -> None:
    X, y = blobs()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    ends = np.searchsorted(y, [1, 2, 3])
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
    clf.fit(*map(delayed, cut(X, y, *ends)))
    assert clf.classes_.tolist() == [0, 1, 2, 3]
    check_certificate(clf, X, y)


def test_empty_partitions_say_nothing(client: Client) -> None:
    """They are there all the same: whatever type and width they claim."""
    X, y = blobs()
    rows, labels = cut(X, y, 0, 100, 100, 200, 300)
    rows[0], labels[0] = np.empty((0, 1), np.float32), np.empty(0, "U3")
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(delayed(rows), delayed(labels))
    check_certificate(clf, X, y)


def test_weights_that_leave_a_partition_nothing(client: Client) -> None:
    X, y = blobs()
    weight = np.where(np.arange(len(y)) < 100, 0.0, 1.0)
    weights = [weight[:100], weight[100:200], weight[200:]]
    rows, labels = cut(X, y, 100, 200)
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
    clf.fit(delayed(rows), delayed(labels), delayed(weights))
    check_certificate(clf, X, y, PARAMS["C"] * weight)


# --- wrong ---------------------------------------------------------------------------------------


def spoiled(what: str) -> tuple[list[Any], list[Any], list[Any] | None]:
    """Eleven partitions, of which the tenth is not as the others are."""
    X, y = blobs(n=330)
    rows, labels = cut(X.copy(), y, *range(30, 330, 30))
    weights: list[Any] = [np.ones(30) for _ in rows]
    if what in ("NaN", "infinity"):
        rows[9][4, 2] = np.nan if what == "NaN" else np.inf
    elif what == "sparse NaN":
        rows = [sparse.csr_array(one) for one in rows]
        rows[9].data[7] = np.nan
    elif what == "width":
        rows[9] = rows[9][:, :11]
    elif what == "text labels":
        labels[9] = labels[9].astype(str)
    elif what == "real labels":
        labels[9] = labels[9] + 0.5
    elif what == "NaN labels":
        labels[9] = np.where(labels[9] == 1, np.nan, labels[9])
    elif what == "text":
        rows[9] = rows[9].astype(str).astype(object)
        rows[9][0, 0] = "no number"
    elif what == "lengths":
        labels[9] = labels[9][:29]
    elif what == "dimensions":
        rows[9] = rows[9][0]
    elif what == "weights":
        weights[9][3] = -1.0
    return rows, labels, weights if what == "weights" else None


WRONG = {
    "NaN": r"Partition 9: .*NaN",
    "infinity": r"Partition 9: .*infinit",
    "sparse NaN": r"Partition 9: .*NaN",
    "width": r"Partition 9 has 11 features, but partition 0 has 12",
    "text labels": r"text in partition 9, but numbers in partition 0",
    "real labels": r"Partition 9: Unknown label type",
    "NaN labels": r"Partition 9: .*NaN",
    "text": r"Partition 9: .*no number",
    "lengths": r"Partition 9: X has 30 rows, but y has 29 labels",
    "dimensions": r"Partition 9: Expected 2D array",
    "weights": r"Partition 9: .*[Nn]egative",
}


@pytest.mark.parametrize("what", WRONG)
def test_the_partition_that_is_wrong_is_named(what: str, client: Client) -> None:
    rows, labels, weights = spoiled(what)
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
    given = [delayed(rows), delayed(labels), weights if weights is None else delayed(weights)]
    with pytest.raises((ValueError, TypeError), match=WRONG[what]):
        clf.fit(*given)
    assert not hasattr(clf, "coef_")
    X, y = blobs()
    check_certificate(clf.fit(*chunked(X, y, 3)), X, y)  # the client goes on


def test_one_class_in_all_of_them_is_refused(client: Client) -> None:
    X, y = blobs()
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
    with pytest.raises(ValueError, match=r"class"):
        clf.fit(*chunked(X, np.zeros_like(y), 4))
    with pytest.raises(ValueError, match="All partitions are empty"):
        clf.fit(*chunked(X[:0], y[:0], 4))


def test_a_fit_that_fails_does_not_disturb_another_on_the_same_client(client: Client) -> None:
    X, y = blobs()
    alone = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*chunked(X, y, 5)).coef_
    found: dict[str, Any] = {}

    def fit(name: str) -> None:
        given = chunked(X, y, 5) if name == "good" else map(delayed, spoiled("NaN")[:2])
        try:
            found[name] = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*given).coef_
        except ValueError as error:
            found[name] = str(error)

    running = [threading.Thread(target=fit, args=(name,)) for name in ("bad", "good", "worse")]
    for one in running:
        one.start()
    for one in running:
        one.join()
    np.testing.assert_array_equal(found["good"], alone)
    assert "Partition 9" in found["bad"] and "Partition 9" in found["worse"]


# --- one object ----------------------------------------------------------------------------------


def test_an_object_is_trained_by_one_thread_at_a_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = blobs()
    inside, most = [], []

    class Counted(estimator.DaskSource):
        def look(self) -> Any:
            inside.append(1)
            most.append(len(inside))
            return super().look()

        def close(self) -> None:
            super().close()
            inside.pop()

    monkeypatch.setattr(estimator, "DaskSource", Counted)
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client)
    running = [threading.Thread(target=clf.fit, args=chunked(X, y, 3)) for _ in range(3)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert most == [1, 1, 1]
    check_certificate(clf, X, y)


def test_names_of_features_and_the_model_are_of_one_fit(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C as the names are looked at: everything is as it was, settings of scikit-learn too."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y = blobs()
    arrays = da.from_array(X[:, :5], chunks=(150, 5)), da.from_array(y, chunks=150)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    frames = dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(y), npartitions=2)
    clf = DaskLinearMulticlassSVC(**PARAMS, client=client).fit(*arrays)
    before = dict(vars(clf))

    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(partitioned, "_check_feature_names", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(*frames)
    assert vars(clf) == before and not get_config()["skip_parameter_validation"]
    clf.fit(*frames)
    assert list(clf.feature_names_in_) == list(frame.columns)
    clf.fit(*arrays)
    assert not hasattr(clf, "feature_names_in_") and clf.n_features_in_ == 5
