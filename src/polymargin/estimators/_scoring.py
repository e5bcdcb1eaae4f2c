"""Scorers: scikit-learn's, callables, and top-k accuracy by name."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from sklearn.metrics import get_scorer, make_scorer, top_k_accuracy_score

_TOP_K = re.compile(r"top_(\d+)_accuracy")


def resolve_scorer(
    scoring: str | Callable | None, classes: np.ndarray | None = None
) -> Callable[..., float]:
    """Give the scorer called `scoring`; None is accuracy, ``"top_5_accuracy"`` top-5 accuracy.

    Parameters
    ----------
    scoring : str, callable or None
        As in `LinearMulticlassSVCCV`.
    classes : ndarray or None
        The labels, for the top-k accuracy of examples that lack some.
    """
    named = _TOP_K.fullmatch(scoring) if isinstance(scoring, str) else None
    if named is None:
        scorer: Callable[..., float] = get_scorer("accuracy" if scoring is None else scoring)
        return scorer
    k = int(named[1])
    if k < 1 or (classes is not None and k >= len(classes)):
        most = "" if classes is None else f" and at most n_classes - 1 = {len(classes) - 1}"
        raise ValueError(f"scoring={scoring!r}: k must be at least 1{most}.")
    top_k: Callable[..., float] = make_scorer(
        top_k_accuracy_score, response_method="decision_function", k=k, labels=classes
    )
    return top_k
