"""How far a run has come is told by the gap on a log scale; watching changes nothing."""

from __future__ import annotations

import math

import pytest
from sklearn.datasets import load_iris

from polymargin import KernelMulticlassSVC, LinearMulticlassSVC
from polymargin.solvers import watching
from polymargin.solvers.watch import Watch


def watch_of(gaps, tol=1e-4, certified=math.nan):
    watch = Watch()
    for i, gap in enumerate(gaps, start=1):
        watch({"pass": i, "time": 2.0 * i, "gap": gap, "certified_gap": certified, "tol": tol})
    return watch


def test_half_of_the_decades_are_half_of_the_way():
    assert watch_of([1.0, 1e-1, 1e-2]).done == pytest.approx(0.5)
    assert watch_of([math.inf]).done == 0.0
    assert watch_of([1.0, 1e-2, 1e-1]).done == pytest.approx(0.5)  # never backwards


def test_only_a_certificate_completes_the_bar():
    assert watch_of([1.0, 1e-5]).done < 1
    assert watch_of([1.0, 1e-5], certified=9e-5).done == 1
    assert "estimated" in watch_of([1.0, 1e-2]).describe()
    assert "certified" in watch_of([1.0, 1e-2], certified=1e-2).describe()


def test_the_time_left_follows_the_recent_speed():
    # a decade per pass of 2 seconds: two decades to go
    watch = watch_of([1.0, 1e-1, 1e-2, 1e-3, 1e-4], tol=1e-6)
    assert watch.seconds_left == pytest.approx(4.0)
    assert "about 4 s left" in watch.describe()
    assert watch_of([1.0, 1e-1]).seconds_left is None
    assert watch_of([0.5] * 8).seconds_left is None


@pytest.mark.parametrize("model", [LinearMulticlassSVC, KernelMulticlassSVC])
def test_a_watched_solver_gives_the_same_model(model):
    X, y = load_iris(return_X_y=True)
    watch = Watch()
    with watching(watch):
        watched = model(C=0.1, random_state=0).fit(X, y)
    plain = model(C=0.1, random_state=0).fit(X, y)
    assert (watched.decision_function(X) == plain.decision_function(X)).all()
    assert watch.n_iter == watched.n_iter_
    assert watch.done >= 0.99
    if model is LinearMulticlassSVC:  # kernel machines certify the last round afterwards
        assert watch.done == 1.0
        assert watch.certified == pytest.approx(watched.dual_gap_)
