"""Model files of format 1, written by an earlier polymargin, load and predict as they did."""

from __future__ import annotations

import numpy as np
import pytest

import polymargin
from polymargin.io import inspect_model
from tests.models.make_format1 import FOLDER, inputs_of

NAMES = sorted(path.stem for path in FOLDER.glob("*.pmz"))


@pytest.fixture(scope="module")
def expected():
    with np.load(FOLDER / "expected.npz") as arrays:
        return dict(arrays)


def test_there_is_one_of_each_estimator(expected):
    kinds = {inspect_model(FOLDER / f"{name}.pmz").kind for name in NAMES}
    assert kinds == {name for name in polymargin.__all__ if name.endswith(("SVC", "CV", "fier"))}
    assert set(expected) == {"X", *NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_it_predicts_as_it_did(name, expected):
    model = polymargin.load(FOLDER / f"{name}.pmz")
    inputs = inputs_of(name, expected["X"])
    scores = model.decision_function(inputs)
    assert scores.dtype == expected[name].dtype
    np.testing.assert_allclose(scores, expected[name], rtol=1e-10, atol=1e-12)
    best = expected[name] > 0 if scores.ndim == 1 else expected[name].argmax(axis=1)
    assert np.array_equal(model.predict(inputs), model.classes_[best.astype(int)])


@pytest.mark.parametrize("name", ["linear_stream", "larank", "larank_sparse"])
def test_it_goes_on_learning(name, expected):
    model = polymargin.load(FOLDER / f"{name}.pmz")
    seen = model.classes_[[0] * 5]
    model.partial_fit(expected["X"][:5], seen)
    assert np.isfinite(model.decision_function(expected["X"])).all()
    assert (model.predict(expected["X"][:5]) == seen).all()
