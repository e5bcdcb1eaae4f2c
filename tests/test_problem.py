"""What a solver is given: any integer counts the classes, and bad input is refused in words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from polymargin import DualSolver, Problem, get_loss

X = np.random.default_rng(0).standard_normal((30, 4))
Y = np.arange(30, dtype=np.int32) % 3
C = np.ones(30)
LOSS = get_loss("crammer_singer")


@pytest.mark.parametrize("n_classes", [3, np.int64(3), Y.max() + 1], ids=["int", "int64", "max"])
def test_numpy_integers_count_classes(n_classes):
    found = DualSolver().solve(Problem(X, Y, C, LOSS, n_classes), tol=1e-3, random_state=0)
    assert found.status == "converged"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"X": X[0]}, "must be a matrix"),
        ({"X": X.astype(np.int64)}, "float32 or float64, got int64"),
        ({"X": sparse.csc_array(X)}, "must be CSR, got CSC"),
        ({"y": Y[:-1]}, "X has 30 rows"),
        ({"c": C[:-1]}, "X has 30 rows"),
        ({"n_classes": 1}, "at least 2 classes, got 1"),
        ({"c": -C}, "finite and non-negative"),
        ({"c": np.full(30, np.nan)}, "finite and non-negative"),
        ({"c": 0 * C}, "positive somewhere"),
        ({"loss": get_loss("top_k_alpha", 5)}, "top_k"),
    ],
)
def test_bad_input_is_refused(changes, words):
    given = {"X": X, "y": Y, "c": C, "loss": LOSS, "n_classes": 3} | changes
    with pytest.raises(ValueError, match=words):
        Problem(**given)


def test_a_fraction_of_a_class_is_refused():
    with pytest.raises(TypeError, match="float"):
        Problem(X, Y, C, LOSS, 2.5)
