"""The reported duality gap is true: recomputed from the fitted attributes it is the same number.

And it is small: every loss reaches 1e-6 in float64 and 1e-4 in float32 on the data sets of the
papers, and the certified values agree with the optima other systems found.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import data_folder
from polymargin import LinearMulticlassSVC
from tests.reference.objective import Spec, dual, dual_infeasibility, primal

LOSSES = (
    "crammer_singer",
    "weston_watkins",
    "top_k_alpha",
    "top_k_beta",
    "one_vs_rest",
    "one_vs_rest_squared",
    "softmax",
    "top_k_entropy",
)
DATA = ("news20", "letter", "satimage", "usps", "dna", "clinc150")
TOL = {np.float64: 1e-6, np.float32: 1e-4}
AGREEMENT = {np.float64: 1e-9, np.float32: 1e-6}
INFEASIBILITY = {np.float64: 1e-12, np.float32: 1e-6}
SIX_DIGITS = 5e-6

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])


def top_k_for(loss: str, n_classes: int) -> int | None:
    return min(3, n_classes - 1) if loss.startswith("top_k") else None


def certified_fit(X, y, loss, C, fit_intercept=False, **options):
    """Fit to the tolerance the dtype deserves; return the model and its problem."""
    K = int(y.max()) + 1
    options = {"top_k": top_k_for(loss, K), "tol": TOL[X.dtype.type], "max_iter": 200_000} | options
    model = LinearMulticlassSVC(
        loss=loss, C=C, fit_intercept=fit_intercept, store_dual=True, random_state=0, **options
    ).fit(X, y)
    scaling = model.intercept_scaling if fit_intercept else 0.0
    return model, Spec(X, y, np.full(len(y), float(C)), loss, model.top_k, scaling)


def assert_certificate_is_true(model, spec):
    """The gap was reached, and gap, objective and feasibility stand up to recomputation."""
    dtype = spec.X.dtype.type
    a = model.dual_coef_.T
    P, D = primal(spec, model.coef_, model.intercept_), dual(spec, a)
    assert model.coef_.dtype == dtype
    assert model.dual_gap_ <= TOL[dtype]
    assert abs((P - D) / P - model.dual_gap_) <= AGREEMENT[dtype]
    assert abs(P - model.objective_) <= AGREEMENT[dtype] * P
    assert dual_infeasibility(spec, a) <= INFEASIBILITY[dtype]


def part(data, n):
    """Return n training examples drawn at random, the labels renumbered where a class is absent."""
    X, y = data[:2]
    chosen = np.sort(np.random.default_rng(0).choice(len(y), size=n, replace=False))
    return X[chosen], np.unique(y[chosen], return_inverse=True)[1].astype(np.int32)


# --- quick: small data, or parts of the larger sets ----------------------------------------------


@every_loss
@every_dtype
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["linear", "intercept"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_dna(load_data, loss, dtype, C, fit_intercept):
    X, y = load_data("dna", dtype)[:2]
    assert_certificate_is_true(*certified_fit(X, y, loss, C, fit_intercept))


@every_loss
@every_dtype
@pytest.mark.parametrize("name", ["news20", "clinc150", "satimage", "letter", "usps"])
def test_parts_of_the_larger_sets(load_data, loss, dtype, name):
    X, y = part(load_data(name, dtype), 1000)
    assert_certificate_is_true(*certified_fit(X, y, loss, 0.1, fit_intercept=True))


@every_loss
def test_a_fit_that_ran_out_of_passes_reports_its_gap_truly(load_data, loss):
    X, y = part(load_data("satimage"), 1000)
    with pytest.warns(UserWarning, match="gap"):
        model, spec = certified_fit(X, y, loss, 1.0, max_iter=5)
    P = primal(spec, model.coef_, model.intercept_)
    D = dual(spec, model.dual_coef_.T)
    assert model.dual_gap_ > TOL[np.float64]
    assert abs((P - D) / P - model.dual_gap_) <= 1e-9


@every_loss
def test_weights_are_part_of_the_certificate(load_data, loss):
    X, y = part(load_data("dna"), 500)
    weight = np.random.default_rng(0).uniform(0, 2, size=len(y))
    weight[::9] = 0.0
    model = LinearMulticlassSVC(
        loss=loss,
        top_k=top_k_for(loss, 3),
        C=0.5,
        class_weight={0: 2.0, 1: 1.0, 2: 0.5},
        intercept_scaling=2.0,
        tol=1e-6,
        max_iter=100_000,
        store_dual=True,
        random_state=0,
    ).fit(X, y, sample_weight=weight)
    c = 0.5 * weight * np.array([2.0, 1.0, 0.5])[y]
    assert_certificate_is_true(model, Spec(X, y, c, loss, model.top_k, 2.0))


# --- the whole grid ------------------------------------------------------------------------------


@pytest.mark.slow
@every_loss
@every_dtype
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_whole_sets(load_data, loss, dtype, C, name):
    X, y = load_data(name, dtype)[:2]
    assert_certificate_is_true(*certified_fit(X, y, loss, C))


# --- optima other systems found ------------------------------------------------------------------

QUICK = {
    ("satimage", 0.1),
    ("satimage", 1.0),
    ("letter", 0.1),
    ("banking77", 0.1),
    ("banking77", 1.0),
}


def reference_optima():
    """Return the rows of optima.csv as parameters, all but the quick ones marked slow."""
    path = Path(data_folder()).parent / "reference" / "optima.csv"
    if not path.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{path.name} is absent"))]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        pytest.param(
            row,
            id="-".join([row["data"], row["loss"], f"C{row['C']}"]),
            marks=[] if (row["data"], float(row["C"])) in QUICK else [pytest.mark.slow],
        )
        for row in rows
    ]


@pytest.mark.parametrize("row", reference_optima())
def test_optima_found_by_other_systems(load_data, row):
    X, y = load_data(row["data"])[:2]
    tol, listed = 1e-5, float(row["primal"])
    top_k = int(row["top_k"]) if row["top_k"] else None
    model, spec = certified_fit(X, y, row["loss"], float(row["C"]), tol=tol, top_k=top_k)
    P, D = primal(spec, model.coef_, model.intercept_), dual(spec, model.dual_coef_.T)
    assert listed * (1 + SIX_DIGITS) >= D
    assert listed * (1 + tol + SIX_DIGITS) >= P


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "top_k_alpha"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_costs_below_all_rounding_close_the_gap(loss, dtype):
    """With C this small nobody's margin moves, and all dual variables end at their bounds.

    Not so for top-k alpha: from equal margins its threshold lies less than a rounding below them.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=200)
    X = (0.1 * rng.normal(size=(200, 8))).astype(dtype)
    top_k = 2 if loss.startswith("top_k") else None
    model = LinearMulticlassSVC(loss=loss, top_k=top_k, C=1e-20, random_state=0, max_iter=50)
    assert model.fit(X, y).dual_gap_ <= model.tol
