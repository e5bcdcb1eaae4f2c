"""What the tests of streams share."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimators import LOSS_PARAMS, loss_id

by_loss = pytest.mark.parametrize("params", LOSS_PARAMS, ids=loss_id)
SETTINGS = {
    "plain": {},
    "average": {"average": True},
    "reservoir": {"reservoir": 20, "revisits": 2},
    "both": {"average": True, "reservoir": 7, "revisits": 1},
}
by_settings = pytest.mark.parametrize("chosen", SETTINGS.values(), ids=SETTINGS)


def feed(clf, X, y, size, **kwargs):
    """A stream in batches of one size."""
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        extra = {name: values[rows] for name, values in kwargs.items()}
        clf.partial_fit(X[rows], y[rows], **extra)
    return clf


def late_classes(y):
    """An order in which the classes appear one after the other, 2 first."""
    first = [2, 0, 3, 1]
    rng = np.random.default_rng(0)
    keys = np.array([first.index(label) for label in y]) * 0.2 + rng.random(len(y))
    return np.argsort(keys, kind="stable")


def bits(clf):
    return clf.coef_.tobytes() + clf.intercept_.tobytes() + repr(clf.classes_.tolist()).encode()


def state_of(clf):
    """Everything a fitted classifier shows."""
    return bits(clf), clf.n_samples_seen_, clf.n_features_in_, sorted(vars(clf))
