"""Every version of scikit-learn behaves alike where the estimators ask."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score, get_scorer, make_scorer

from polymargin import LaRankClassifier, LinearMulticlassSVC, LinearMulticlassSVCCV
from polymargin.estimators import compat
from tests.estimators import make_problem, needs_callbacks


@needs_callbacks
def test_without_callbacks_a_task_has_the_methods_of_scikit_learns():
    ours = {name for name in vars(compat._NoContext) if not name.startswith("_")}
    assert len(ours) == 4
    assert ours <= set(vars(compat.CallbackContext))


@pytest.mark.parametrize("make", [LinearMulticlassSVC, LinearMulticlassSVCCV, LaRankClassifier])
def test_fits_go_the_same_way_without_callbacks(make, monkeypatch):
    X, y = make_problem()
    expected = make(random_state=0).fit(X, y).decision_function(X)
    monkeypatch.setattr(
        compat.CallbackSupportMixin,
        "_init_callback_context",
        compat._NoCallbacks._init_callback_context,
    )
    np.testing.assert_array_equal(make(random_state=0).fit(X, y).decision_function(X), expected)


@pytest.mark.parametrize("X", [np.ones((3, 2)), sparse.csr_array(np.ones((3, 2)))])
def test_weights(X):
    np.testing.assert_array_equal(compat.check_sample_weight(None, X), np.ones(3))
    weight = compat.check_sample_weight([2, 0, 1], X)
    assert weight.dtype == np.float64
    np.testing.assert_array_equal(weight, [2.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="Negative"):
        compat.check_sample_weight([1, -1, 0], X)
    with pytest.raises(ValueError, match="expected"):
        compat.check_sample_weight([1, 1], X)


def test_weights_that_are_all_zero():
    X, zeros = np.ones((3, 2)), np.zeros(3)
    with pytest.raises(ValueError, match="at least one non-zero"):
        compat.check_sample_weight(zeros, X)
    weight = compat.check_sample_weight(zeros, X, allow_all_zero_weights=True)
    np.testing.assert_array_equal(weight, zeros)


def plain(estimator, X, y):
    return 0.0


def weighted(estimator, X, y, sample_weight=None):
    return 0.0


def share_of_ones(y_true, y_pred):
    return np.mean(y_pred == 1)


def test_scorers_say_whether_they_take_weights():
    for scorer in (get_scorer("accuracy"), make_scorer(accuracy_score), weighted):
        assert compat.takes_weights(scorer)
    for scorer in (make_scorer(share_of_ones), plain):
        assert not compat.takes_weights(scorer)


def test_a_scorer_without_weights_is_given_none():
    X, y = make_problem()
    clf = LinearMulticlassSVCCV(Cs=[0.1], cv=3, scoring=make_scorer(share_of_ones))
    clf.fit(X, y, sample_weight=np.ones(len(y)))
    assert 0 < clf.best_score_ < 1
