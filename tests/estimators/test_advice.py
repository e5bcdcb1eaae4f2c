"""Warnings measure why a fit did not converge, and what they propose does converge."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import Normalizer, StandardScaler

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
    regularization_path,
)
from polymargin.estimators._advice import above_optimum, advice, rounded_up
from polymargin.solvers import Status


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def warning_of(model, X, y):
    """The text of the one warning of a fit; none: it converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(one.category is ConvergenceWarning for one in caught) and len(caught) <= 1
    return str(caught[0].message) if caught else None


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_large_rows_are_measured_and_both_proposals_converge(digits, layout):
    X, y = layout(digits[0]), digits[1]
    settings = {"max_iter": 60, "random_state": 0}
    said = warning_of(LinearMulticlassSVC(C=1.0, **settings), X, y)
    norms = np.square(digits[0]).sum(axis=1).mean()
    assert f"{norms:.2g}" == "3.8e+03"
    assert (
        "The mean of ||x||^2 is 3,800 at C = 1: normalise the rows "
        "(sklearn.preprocessing.Normalizer) or scale the features, or try a smaller C, such as "
        "C=0.0003."
    ) in said
    assert warning_of(LinearMulticlassSVC(C=0.0003, **settings), X, y) is None
    assert warning_of(LinearMulticlassSVC(**settings), Normalizer().fit_transform(X), y) is None


def test_uneven_features_are_measured_and_both_proposals_converge():
    X, y = load_wine(return_X_y=True)
    settings = {"max_iter": 60, "random_state": 0}
    said = warning_of(LinearMulticlassSVC(C=1.0, **settings), X, y)
    size = np.sqrt(np.square(X).sum(axis=0))
    assert f"the largest feature is {float(f'{size.max() / np.median(size):.2g}'):g} times" in said
    assert "scale the features (sklearn.preprocessing.StandardScaler or MaxAbsScaler)" in said
    C = float(re.search(r"such as C=(\S+\d)\.", said)[1])
    assert warning_of(LinearMulticlassSVC(C=C, **settings), X, y) is None
    scaled = StandardScaler().fit_transform(X)
    assert warning_of(LinearMulticlassSVC(C=1.0, **settings), scaled, y) is None


def test_weights_of_the_examples_count_for_the_proposal(digits):
    X, y = digits
    clf = LinearMulticlassSVC(C=1.0, max_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match=re.escape("such as C=3e-06.")):
        clf.fit(X, y, sample_weight=np.full(len(y), 100.0))


@pytest.mark.parametrize(
    ("data", "C", "made"),
    [("digits", 0.01, 10), ("digits", 0.01, 40), ("digits/16", 1.0, 10), ("iris", 1.0, 40)],
)
def test_the_number_of_passes_that_is_proposed_is_enough(data, C, made, digits):
    X, y = load_iris(return_X_y=True) if data == "iris" else digits
    X = X / 16 if data.endswith("16") else X
    said = warning_of(LinearMulticlassSVC(C=C, max_iter=made, random_state=0), X, y)
    assert "||x||^2" not in said  # there is nothing wrong with their scale
    found = re.search(r"As the gap fell so far, max_iter=(\d+) may do; or raise tol\.$", said)
    proposed = LinearMulticlassSVC(C=C, max_iter=int(found[1]), random_state=0)
    assert warning_of(proposed, X, y) is None
    assert made < proposed.n_iter_


def test_a_time_limit_is_no_reason_for_more_passes(digits):
    X, y = digits
    solver = DualSolver(time_limit=1e-9)
    said = warning_of(LinearMulticlassSVC(C=0.01, solver=solver, random_state=0), X, y)
    assert "stopped at its time_limit" in said
    assert said.endswith("Raise time_limit or tol.")
    assert "max_iter" not in said
    kernel = KernelMulticlassSVC(tol=1e-9, solver=KernelSolver(time_limit=1e-9))
    said = warning_of(kernel, X, y)
    assert "time_limit" in said and "max_iter" not in said


def test_the_time_that_is_proposed_follows_the_fall_of_the_gap():
    # a gap that falls by a factor of 10 each second has 3 seconds to go after its 4th
    times = np.linspace(0.1, 4, 40)
    history = {"time": times, "gap": np.full(40, np.nan), "estimated_gap": 10.0 ** (2 - times)}
    said = advice(
        Status.TIME_LIMIT, None, C=1.0, limit="max_iter", tol=1e-5, history=history, time_limit=4.0
    )
    assert said == "As the gap fell so far, time_limit=34 may do; or raise tol."
    still = history | {"estimated_gap": np.full(40, 0.5)}
    said = advice(Status.TIME_LIMIT, None, C=1.0, limit="max_iter", tol=1e-5, history=still)
    assert said == "Raise time_limit or tol."


def test_kernels_are_measured_by_their_diagonal(digits):
    X, y = digits
    clf = KernelMulticlassSVC(kernel="linear", C=1.0, tol=1e-6, max_iter=1, random_state=0)
    assert "The mean of k(x, x) is 3,800 at C = 1: try a smaller C, such as C=0.0003." in (
        warning_of(clf, X, y)
    )
    clf.set_params(C=0.0003, tol=1e-3, max_iter=30)
    assert warning_of(clf, X, y) is None


def test_a_gap_beyond_the_precision_asks_for_float64():
    X, y = load_iris(return_X_y=True)
    said = warning_of(KernelMulticlassSVC(tol=1e-14, C=10), X.astype(np.float32), y)
    assert "The precision allows no smaller gap: try float64 data, or a larger tol." in said


def test_larank_speaks_of_its_own_limit():
    X, y = load_iris(return_X_y=True)
    said = warning_of(LaRankClassifier(tol=1e-12, n_epochs=2, random_state=0), X, y)
    assert "stopped at its n_epochs after 2 epochs" in said and "Raise n_epochs or tol." in said


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (0.001, "the objective is at most 0.1 % above the optimum"),
        (0.4, "the objective is at most 67 % above the optimum"),
        (0.5, "the objective is at most 2 times the optimum"),
        (0.96, "the objective is at most 25 times the optimum"),
        (1.0, "no bound on the distance to the optimum is known yet"),
        (np.nan, "no bound on the distance to the optimum is known yet"),
    ],
)
def test_percentages_above_100_are_words(gap, said):
    assert above_optimum(gap) == said


def test_limits_are_rounded_up_to_two_digits():
    assert [rounded_up(value) for value in (61.0, 101.0, 1999.0, 0.0312)] == [61, 110, 2000, 0.032]


def test_folds_and_paths_that_ran_out_of_time_ask_for_time(digits):
    X, y = digits
    solver = DualSolver(time_limit=1e-9)
    model = LinearMulticlassSVCCV(Cs=[0.1, 1.0], cv=2, solver=solver, tol=1e-9, refit=False)
    with pytest.warns(ConvergenceWarning, match="Raise time_limit or tol, scale the features, or"):
        model.fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Raise time_limit or tol") as caught:
        regularization_path(X, y, Cs=[1.0], solver=solver, tol=1e-9)
    assert not any("max_iter" in str(one.message) for one in caught)


# --- the edge of a grid ---------------------------------------------------------------------------


def searched(Cs, best):
    """The warnings of a search whose score is best at a given C."""
    X, y = load_iris(return_X_y=True)
    model = LinearMulticlassSVCCV(
        Cs=Cs,
        cv=3,
        random_state=0,
        early_stopping=False,
        scoring=lambda model, X, y: -abs(np.log10(model.C / best)),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


def test_the_best_c_at_the_edge_of_the_grid_is_said():
    assert searched([0.01, 0.1], 0.1) == [
        "LinearMulticlassSVCCV: the best C, 0.1, is the largest of the grid, where a larger one "
        "may be better: let Cs go on to 1."
    ]
    assert searched([0.01, 0.1], 1e-3) == [
        "LinearMulticlassSVCCV: the best C, 0.01, is the smallest of the grid, where a smaller one "
        "may be better: let Cs go on to 0.001."
    ]


def test_the_best_c_within_the_grid_is_not():
    assert searched([0.001, 0.01, 0.1], 0.01) == []
    assert searched([0.01], 0.01) == []  # nothing was to be chosen


def test_a_grid_on_which_all_are_alike_has_no_edge():
    X, y = load_iris(return_X_y=True)
    model = LinearMulticlassSVCCV(Cs=[0.01, 0.1], cv=3, scoring=lambda *_: 1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, y).C_ == 0.01
