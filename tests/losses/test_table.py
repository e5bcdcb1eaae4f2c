"""The table of losses: Python and compiled code know the same ones, and nothing else."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from polymargin import LOSSES, Loss, get_loss
from polymargin.core import core
from polymargin.losses import loss_class

every_loss = pytest.mark.parametrize("name", LOSSES)


@every_loss
def test_every_compiled_loss_has_a_class_that_names_it(name):
    loss = get_loss(name, 2)
    assert isinstance(loss, Loss) and type(loss) is loss_class(name)
    assert loss.name == loss.compiled.name == name


def test_an_unknown_loss_is_refused_by_compiled_code_too():
    with pytest.raises(ValueError, match="unknown loss"):
        core.Loss("hinge", 0, 0.0, np.empty((0, 0)))


@every_loss
def test_a_loss_is_a_value(name):
    loss = get_loss(name, 2)
    assert loss == get_loss(name, 2) and hash(loss) == hash(get_loss(name, 2))
    assert loss == pickle.loads(pickle.dumps(loss)) == copy.deepcopy(loss)
    assert all(loss != get_loss(other, 2) for other in LOSSES if other != name)
    if "smoothing" in loss.parameters:
        assert loss != get_loss(name, 2, 0.1) and loss.flat and not get_loss(name, 2, 0.1).flat
    if "top_k" in loss.parameters:
        assert loss != get_loss(name, 3)


@every_loss
def test_compiled_and_python_values_agree_at_zero(name):
    loss = get_loss(name, 2)
    assert loss.value_at_zero(5)[3] == loss.value(np.zeros((1, 5)), np.array([3]))[0]


@every_loss
def test_two_classes_are_folded_and_unfolded(name):
    loss = get_loss(name, 1)
    W = np.array([[-1.0, 2.0], [1.0, -2.0]])
    folded = loss.fold(W)
    assert folded.shape == (1, 2)
    np.testing.assert_array_equal(loss.unfold(folded), W)
    three = np.zeros((3, 2))
    assert loss.fold(three) is three
