"""A hundred random problems, checked by NumPy and by relations; the command hunts further."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimators import hunt


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_no_model_is_wrong(first):
    """Objectives, gaps, duals, scores and labels; then the same problem in other words."""
    for seed in range(first, first + 10):
        try:
            hunt.hunt(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize("seed", [1_000_476, 1_000_489, 1_001_899])
def test_what_is_left_of_large_numbers(seed):
    """In float32 margins may cancel so far that rounding a model after its certificate shows."""
    hunt.hunt(seed)


def test_the_hunt_draws_everything():
    """Every loss, type, layout, start and kind of weights is among the problems."""
    cases = [hunt.draw(seed) for seed in range(100)]
    assert len({case.params["loss"] for case in cases}) == 8
    assert len({case.layout for case in cases}) == 6
    assert {case.dtype for case in cases} == {np.float32, np.float64}
    assert {case.before is None for case in cases} == {True, False}
    assert {case.weight is None for case in cases} == {True, False}
    assert any(case.params["cost_matrix"] is not None for case in cases)
    assert any(case.solver.get("schedule") == "sdm" for case in cases)


def test_the_hunt_sees_what_is_wrong():
    """A model that is off by a little in any respect is noticed."""
    case = hunt.draw(3)
    clf = case.fit()
    hunt.check(case, clf)
    for name, factor in (("objective_", 1.01), ("dual_objective_", 1.01), ("coef_", 1.2)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clf, name, factor * getattr(clf, name))
            with pytest.raises(AssertionError):
                hunt.check(case, clf)
