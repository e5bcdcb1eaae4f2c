"""Who comes from LinearSVC is told what its parameters are called here."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from polymargin import (
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    get_loss,
)

X, Y = np.eye(4), np.array([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"multi_class": "crammer_singer"}, "has no multi_class=: the problem of all classes at "),
        ({"penalty": "l2"}, "has no penalty=: the penalty is the squared L2 norm always."),
        ({"dual": True}, "has no dual=: the dual is solved always, which gives the certificate."),
        ({"C": 2.0, "dual": True, "penalty": "l2"}, "; and no penalty=: the penalty is"),
    ],
)
@pytest.mark.parametrize("make", [LinearMulticlassSVC, LinearMulticlassSVCCV, KernelMulticlassSVC])
def test_parameters_of_linear_svc_have_hints(make, given, said):
    if make is LinearMulticlassSVCCV:
        given = {name: value for name, value in given.items() if name != "C"}
    with pytest.raises(TypeError, match=f"^{make.__name__} has no ") as raised:
        make(**given)
    assert said in str(raised.value)


def test_other_mistakes_are_python_s_own():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        LinearMulticlassSVC(nothing=1)
    with pytest.raises(TypeError, match="positional argument"):
        LinearMulticlassSVC(1.0)


def test_the_constructor_still_shows_its_parameters():
    names = list(inspect.signature(LinearMulticlassSVC).parameters)
    assert {"loss", "C", "tol"} <= set(names) and "args" not in names and "kwargs" not in names
    assert set(names) == set(LinearMulticlassSVC().get_params())
    assert clone(LinearMulticlassSVC(C=3.0)).C == 3.0


@pytest.mark.parametrize(
    ("loss", "ours"),
    [
        ("hinge", "one_vs_rest"),
        ("squared_hinge", "one_vs_rest_squared"),
        ("log_loss", "softmax"),
        ("multinomial", "softmax"),
        ("ovr", "one_vs_rest"),
    ],
)
def test_losses_of_other_programs_have_hints(loss, ours):
    with pytest.raises(ValueError, match=f'There is no loss {loss!r}: .*is "{ours}" here'):
        LinearMulticlassSVC(loss=loss).fit(X, Y)
    with pytest.raises(ValueError, match=f'Unknown loss {loss!r}: .*is "{ours}" here'):
        get_loss(loss)
    with pytest.raises(ValueError, match="must be a str among"):
        LinearMulticlassSVC(loss="nothing").fit(X, Y)
