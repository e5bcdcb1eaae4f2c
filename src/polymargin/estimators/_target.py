"""Labels and weights of the examples, encoded as a problem's ``y`` and ``c``.

``c_i = C * sample_weight_i * class_weight_{y_i}``. An example with ``c_i = 0`` counts as absent,
and so does a class that is left without examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from polymargin.arrays import Label

ClassWeight: TypeAlias = Mapping[Any, float] | str | None  # by label; of any type


@dataclass(frozen=True)
class EncodedTarget:
    """What the examples of a fit are to the solver."""

    classes: np.ndarray  # the sorted labels that have an example of positive weight
    codes: np.ndarray  # int32: the position of each label in `classes`; 0 for absent examples
    c: np.ndarray  # the weight of each example's loss; 0 for absent examples


def encode_target(
    y: np.ndarray,
    *,
    C: float,
    sample_weight: np.ndarray,
    class_weight: ClassWeight,
) -> EncodedTarget:
    """Encode labels of any sortable type, and weigh the examples."""
    labels, label_codes = np.unique(y, return_inverse=True)
    weights = class_weights(class_weight, labels, label_codes, sample_weight)
    c = costs(C, sample_weight, weights[label_codes])
    present = c > 0
    kept = np.unique(label_codes[present])
    if kept.size < 2:
        raise ValueError(too_few_classes(labels, kept))
    codes = np.where(present, np.searchsorted(kept, label_codes), 0)
    return EncodedTarget(labels[kept], codes.astype(np.int32), c)


def class_weights(
    class_weight: ClassWeight,
    labels: np.ndarray,
    label_codes: np.ndarray,
    sample_weight: np.ndarray,
) -> np.ndarray:
    """Give the weight of every label.

    ``"balanced"`` divides the mean weight of a class by the class's own, counting every example
    with its `sample_weight`, so that an example of weight zero does not count.
    """
    if class_weight is None:
        return np.ones(labels.size)
    if isinstance(class_weight, str):
        totals = np.bincount(label_codes, weights=sample_weight, minlength=labels.size)
        weights, occurs = np.zeros(labels.size), totals > 0
        weights[occurs] = totals.sum() / np.count_nonzero(totals) / totals[occurs]
        return weights
    _check_keys(class_weight, labels)
    return weights_by_label(class_weight, labels)


def weights_by_label(class_weight: Mapping[Label, float], labels: np.ndarray) -> np.ndarray:
    """Look the labels up; one that is not listed weighs 1."""
    weights = np.array([class_weight.get(label, 1.0) for label in labels.tolist()], np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"class_weight must be finite and not negative, got {dict(class_weight)}.")
    return weights


def costs(C: float, sample_weight: np.ndarray, class_weight: np.ndarray) -> np.ndarray:
    """``C * sample_weight * class_weight`` of every example."""
    with np.errstate(over="ignore"):
        c: np.ndarray = C * (sample_weight * class_weight)
    if not np.isfinite(c).all():
        raise ValueError("C * sample_weight * class_weight overflows: use smaller ones.")
    return c


def _check_keys(class_weight: Mapping[Label, float], labels: np.ndarray) -> None:
    """Raise ``ValueError`` where keys and labels seem to be of different kinds."""
    listed = [label in class_weight for label in labels]
    unknown = len(class_weight) - sum(listed)
    if unknown and not all(listed):
        missing = [label for label, known in zip(labels.tolist(), listed, strict=True) if not known]
        raise ValueError(
            f"class_weight has {unknown} key(s) that are no class of y, while the classes {missing}"
            " are not in class_weight: its keys must be labels as they appear in y."
        )


def too_few_classes(labels: np.ndarray, kept: np.ndarray) -> str:
    seen = "no class" if kept.size == 0 else f"only one class: {labels[kept[0]]!r}"
    dropped = " once examples of weight zero are left out" if kept.size < labels.size else ""
    return f"This classifier needs at least 2 classes, but the data contains {seen}{dropped}."
