"""The estimator keeps scikit-learn's contract: its own checks, for every loss."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from polymargin import LinearMulticlassSVC
from tests.estimators import LOSS_PARAMS

WANTS_MORE_DIGITS = (
    "compares decision functions to 1e-7, which the default tolerance does not promise; "
    "passes at tol=1e-10"
)


def checks_beyond_the_default_tolerance(estimator: Any) -> dict[str, str]:
    """List the checks that need more digits than ``tol=1e-3`` gives."""
    del estimator
    return {
        "check_sample_weight_equivalence_on_dense_data": WANTS_MORE_DIGITS,
        "check_sample_weight_equivalence_on_sparse_data": WANTS_MORE_DIGITS,
    }


@parametrize_with_checks([LinearMulticlassSVC(**params, tol=1e-10) for params in LOSS_PARAMS])
def test_every_check_passes_at_a_tight_tolerance(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_checks(
    [LinearMulticlassSVC(**params) for params in LOSS_PARAMS],
    expected_failed_checks=checks_beyond_the_default_tolerance,
    xfail_strict=False,
)
def test_checks_pass_at_the_default_tolerance(estimator: Any, check: Any) -> None:
    check(estimator)
