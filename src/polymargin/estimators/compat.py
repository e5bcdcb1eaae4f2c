"""The differences between the versions of scikit-learn, from 1.6 on; nothing else knows them.

Each part says which version made it superfluous: it goes when that is the oldest one supported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "OF_A_RUNNING_FIT",
    "CallbackContext",
    "CallbackSupportMixin",
    "ReprHTMLMixin",
    "check_sample_weight",
    "has_callbacks",
    "labelled_block",
    "takes_weights",
]


class _NoContext:
    """The task of a fit that nobody watches."""

    def subcontext(self, *arguments: object, **settings: object) -> _NoContext:
        """Give the task of a part: this one serves for all."""
        return self

    def propagate_callback_context(self, sub_estimator: object) -> AbstractContextManager[None]:
        """Hand no callbacks on."""
        return nullcontext()

    def call_on_fit_task_begin(self, **arguments: object) -> _NoContext:
        """Call nobody."""
        return self

    def call_on_fit_task_end(self, **arguments: object) -> bool:
        """Call nobody, who thus does not ask to stop."""
        return False


class _NoCallbacks:
    """An estimator without `set_callbacks`."""

    def _init_callback_context(self, **settings: object) -> _NoContext:
        return _NoContext()


class _ReprHTMLMixin:
    """Shows what `_html_repr` gives, in both of the ways in which notebooks ask."""

    _html_repr: Callable[[], str]

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **settings: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**settings)  # type: ignore[misc]
        return bundle | ({"text/html": self._html_repr()} if "text/html" in bundle else {})


try:  # scikit-learn 1.9
    from sklearn.callback import CallbackContext, CallbackSupportMixin
except ImportError:
    CallbackContext, CallbackSupportMixin = _NoContext, _NoCallbacks

try:  # scikit-learn 1.7
    from sklearn.utils._repr_html.base import ReprHTMLMixin
except ImportError:
    ReprHTMLMixin = _ReprHTMLMixin

try:  # scikit-learn 1.7
    from sklearn.utils._repr_html.estimator import _VisualBlock
except ImportError:
    from sklearn.utils._estimator_html_repr import _VisualBlock

# scikit-learn 1.9: what it keeps in an estimator while that is fitted
OF_A_RUNNING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")

_REFUSES_ZEROS = "allow_all_zero_weights" in inspect.signature(_check_sample_weight).parameters


def labelled_block(estimator: object, caption: str) -> object:
    """The block of an estimator in scikit-learn's diagram, with a caption under its name."""
    name = type(estimator).__name__
    if "name_caption" not in inspect.signature(_VisualBlock).parameters:  # scikit-learn 1.7
        name, captions = f"{name}: {caption}", {}
    else:
        captions = {"name_caption": caption, "doc_link_label": name}
    return _VisualBlock("single", estimator, names=name, name_details=str(estimator), **captions)


def has_callbacks(estimator: object) -> bool:
    """Whether anybody watches the fits of an estimator."""
    return hasattr(estimator, "_skl_callbacks")


def check_sample_weight(
    sample_weight: ArrayLike | None, X: object, *, allow_all_zero_weights: bool = False
) -> NDArray[np.float64]:
    """Give the weights of the rows of X, finite and not negative; ones for None."""
    if sample_weight is None and hasattr(X, "shape"):  # at a tenth of the time, for small batches
        return np.ones(X.shape[0])
    # scikit-learn 1.9: refuses weights that are all zero, unless it is told
    zeros = {"allow_all_zero_weights": True} if _REFUSES_ZEROS else {}
    weight: NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True, **zeros
    )
    if not allow_all_zero_weights and not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def takes_weights(scorer: Callable[..., float]) -> bool:
    """Whether a scorer can be given a `sample_weight`."""
    if hasattr(scorer, "_accept_sample_weight"):  # scikit-learn 1.7
        return bool(scorer._accept_sample_weight())
    function = getattr(scorer, "_score_func", scorer)  # what `make_scorer` was given
    return "sample_weight" in inspect.signature(function).parameters
