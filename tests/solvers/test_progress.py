"""Whoever watches sees every pass of every solver called meanwhile, and nothing afterwards."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris

from polymargin import KernelMulticlassSVC, LinearMulticlassSVC
from polymargin.solvers import watching


@pytest.mark.parametrize("model", [LinearMulticlassSVC, KernelMulticlassSVC])
def test_every_pass_is_seen_by_all_who_watch(model):
    X, y = load_iris(return_X_y=True)
    outer, inner = [], []
    with watching(outer.append):
        with watching(inner.append):
            fitted = model(random_state=0).fit(X, y)
        passes = [record["pass"] for record in inner]
        assert passes == sorted(set(passes))  # a Newton step counts as several
        assert passes[0] == 1 and passes[-1] == fitted.n_iter_
        model(random_state=0).fit(X, y)
    model(random_state=0).fit(X, y)
    assert len(outer) == 2 * len(inner)


def test_a_listener_that_raises_ends_the_fit():
    X, y = load_iris(return_X_y=True)

    def refuse(record):
        raise RuntimeError("enough")

    with watching(refuse), pytest.raises(RuntimeError, match="enough"):
        LinearMulticlassSVC(random_state=0).fit(X, y)
    LinearMulticlassSVC(random_state=0).fit(X, y)
