"""A fitted model as its users see it: the displays, the report, the exports, the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from polymargin.arrays import Floats
from polymargin.estimators import LinearMulticlassSVC, LinearMulticlassSVCCV
from polymargin.storage import Array

if TYPE_CHECKING:
    import pyarrow

Linear: TypeAlias = LinearMulticlassSVC | LinearMulticlassSVCCV
Features: TypeAlias = Array | sparse.csr_array
Examples: TypeAlias = "Features | Sequence[str] | pyarrow.Table"


class Classifier(Protocol):
    """A fitted classifier, or a pipeline that ends in one."""

    classes_: Array
    n_features_in_: int

    def decision_function(self, X: Examples) -> Floats:
        """Scores: a column per class, or for two classes a vector, positive for the second."""

    def predict(self, X: Examples) -> Array:
        """The best label of each example."""


def split_pipeline(model: Classifier) -> tuple[Pipeline | None, Classifier]:
    """The steps before the classifier, if any, and the classifier."""
    if not isinstance(model, Pipeline):
        return None, model
    return (model[:-1] if len(model.steps) > 1 else None), model.steps[-1][1]


def per_class(rows: Features) -> Floats:
    """Weights or constants with a row per class, where two classes may share the second one's."""
    dense: Floats = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return np.concatenate([-dense, dense]) if len(dense) == 1 else dense
