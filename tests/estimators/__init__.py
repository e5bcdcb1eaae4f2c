"""Tests of the scikit-learn estimators, and the small problems that they share."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

from polymargin.losses import LOSSES

TOP_K_LOSSES = ("top_k_alpha", "top_k_beta", "top_k_entropy")
# A loss with a k that fits any number of classes.
LOSS_PARAMS = [{"loss": loss, **({"top_k": 1} if loss in TOP_K_LOSSES else {})} for loss in LOSSES]

needs_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="callbacks came with scikit-learn 1.9"
)


def loss_id(params: dict) -> str:
    """Name a parametrised test by its loss."""
    return params["loss"]


def make_problem(
    n_samples: int = 120, n_features: int = 8, n_classes: int = 4, *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Generate overlapping classes, so that the optimum has many kinds of examples."""
    return make_classification(
        n_samples=n_samples,
        n_features=n_features,
        n_informative=n_features // 2,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=seed,
    )


def make_sparse_problem(
    n_samples: int = 150, n_features: int = 60, n_classes: int = 5, *, seed: int = 0
) -> tuple[sparse.csr_array, np.ndarray]:
    """Generate short rows with labels from a random linear model."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_samples, n_features), density=0.1, format="csr", random_state=rng)
    y = np.argmax(X @ rng.standard_normal((n_features, n_classes)), axis=1)
    return X, y
