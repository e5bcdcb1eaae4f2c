"""Transformers of scikit-learn whose state is more than public arrays: what belongs to it.

Private attributes are named here, once; values that a file has no word for (an array of objects, a
slice, a type) are wrapped into something that it has one for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier, _SigmoidCalibration
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from polymargin.storage import Decoder, Encoder, Json

PRIVATE: dict[type, tuple[str, ...]] = {
    TfidfVectorizer: ("_tfidf",),
    OneHotEncoder: (
        "_infrequent_enabled",
        "_infrequent_indices",
        "_default_to_infrequent_mappings",
        "_drop_idx_after_grouping",
        "_n_features_outs",
    ),
    ColumnTransformer: (
        "_columns",
        "_transformer_to_input_indices",
        "_n_features",
        "_remainder",
        "_name_to_fitted_passthrough",
    ),
    SimpleImputer: ("_fit_dtype", "_fill_dtype"),
    MissingIndicator: ("_n_features", "_precomputed"),
}
_REBUILT = {IsotonicRegression: ("f_",)}  # functions, made again from the rest
_PLAIN = (bool, int, float, str, type(None))
_TYPES = {"object": object, "float64": np.float64, "float32": np.float32, "int64": np.int64}


class Wrapped:
    """A value that a file has no word for."""

    def __init__(self, kind: str, value: object) -> None:
        self.kind, self.value = kind, value


def portable(value: Any) -> Any:
    """The value, with what a file has no word for wrapped."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        values = [one.item() if isinstance(one, np.generic) else one for one in value.tolist()]
        if value.ndim == 1 and not all(type(one) is str for one in values):
            return Wrapped("objects", values)
    if isinstance(value, np.dtype):
        return Wrapped("type", value.name)
    if type(value) is slice:
        return Wrapped("slice", [value.start, value.stop, value.step])
    if type(value) is list:
        return [portable(one) for one in value]
    if type(value) is tuple:
        return tuple(portable(one) for one in value)
    if type(value) is dict:
        return {key: portable(one) for key, one in value.items()}
    return value


def encode_wrapped(value: Wrapped, where: str, encoder: Encoder) -> Json:
    """The JSON of such a value."""
    return {"$object": value.kind, "value": encoder.encode(value.value, where)}


def decode_wrapped(encoded: dict[str, Json], decoder: Decoder) -> Any:
    """What was wrapped."""
    kind, value = encoded["$object"], decoder.decode(encoded["value"])
    if kind == "type":
        return np.dtype(_TYPES[value])
    if not isinstance(value, list) or not all(isinstance(one, _PLAIN) for one in value):
        raise ValueError(f"{kind} of values that are none")
    if kind == "slice":
        return slice(*value)
    found = np.empty(len(value), dtype=object)
    found[:] = value
    return found


WRAPPED = ("objects", "type", "slice")


def rebuilt(cls: type) -> tuple[str, ...]:
    """Attributes that are not kept, for they follow from others."""
    return _REBUILT.get(cls, ())


def rebuild(value: object) -> None:
    """Make them again."""
    if isinstance(value, IsotonicRegression) and hasattr(value, "X_thresholds_"):
        value._build_f(value.X_thresholds_, value.y_thresholds_)


# --- checks --------------------------------------------------------------------------------------


def _require(ok: object, what: str) -> None:
    if not ok:
        raise ValueError(what)


def _are_places(values: object, n: int) -> bool:
    """Whether these are positions among n."""
    numbers = np.asarray(values)
    if numbers.size == 0:
        return True
    return bool(numbers.dtype.kind in "iu" and (numbers >= 0).all() and (numbers < n).all())


def check_encoder(encoder: OneHotEncoder) -> None:
    """Check that every category leads to a feature that there is."""
    lists = encoder.categories_
    _require(isinstance(lists, list), "categories_ is not a list")
    _require(len(lists) == encoder.n_features_in_, "categories_ has the wrong length")
    for one in lists:
        _require(isinstance(one, np.ndarray) and one.ndim == 1, "categories_ are no vectors")
    dropped = encoder._drop_idx_after_grouping
    _require(dropped is None or len(dropped) == len(lists), "drop_idx_ has the wrong length")
    enabled = encoder._infrequent_enabled
    _require(type(enabled) is bool, "_infrequent_enabled is no truth value")
    for i, one in enumerate(lists):
        n = len(one)
        rare = encoder._infrequent_indices[i] if enabled else None
        mapping = encoder._default_to_infrequent_mappings[i] if enabled else None
        _require((rare is None) == (mapping is None), "rare categories without a place")
        if rare is not None and mapping is not None:
            _require(len(rare) > 0 and _are_places(rare, n), "rare categories that are none")
            n -= len(rare) - 1
            right = len(mapping) in (len(one), len(one) - 1) and _are_places(mapping, n)
            _require(right and mapping.dtype.kind == "i", "categories without a feature")
        if dropped is not None and dropped[i] is not None:
            _require(_are_places(dropped[i], n), "a category is dropped that is none")
    _require(encoder._n_features_outs == encoder._compute_n_features_outs(), "wrong counts")


def check_imputer(imputer: SimpleImputer) -> None:
    """Check that there is a value for every column."""
    n = imputer.n_features_in_
    _require(np.shape(imputer.statistics_) == (n,), "statistics_ has the wrong length")
    if imputer.indicator_ is not None:
        _require(type(imputer.indicator_) is MissingIndicator, "indicator_ is none")


def check_indicator(indicator: MissingIndicator) -> None:
    """Check that it looks at columns that there are."""
    _require(_are_places(indicator.features_, indicator._n_features), "features_ are no columns")


def check_calibrated(model: CalibratedClassifierCV) -> None:
    """Check that it is made of calibrated classifiers."""
    _require(
        isinstance(model.calibrated_classifiers_, list)
        and len(model.calibrated_classifiers_) > 0
        and all(type(one) is _CalibratedClassifier for one in model.calibrated_classifiers_),
        "calibrated_classifiers_ is no list of such",
    )
    _require(isinstance(model.classes_, np.ndarray), "classes_ is no array")


def check_isotonic(model: IsotonicRegression) -> None:
    """Check that its steps go up in X."""
    X, y = model.X_thresholds_, model.y_thresholds_
    _require(X.ndim == 1 and X.shape == y.shape and len(X) > 0, "thresholds are no vectors")
    _require(np.isfinite(X).all() and np.isfinite(y).all(), "thresholds are not finite")
    _require((np.diff(X) >= 0).all(), "thresholds are not sorted")


def check_function(transformer: FunctionTransformer) -> None:
    """Check that it has none: columns that pass through."""
    _require(transformer.func is None and transformer.inverse_func is None, "it has a function")


PARTS: dict[type, Callable[[Any], object]] = {  # found inside of others only
    MissingIndicator: check_indicator,
    IsotonicRegression: check_isotonic,
    _SigmoidCalibration: lambda value: None,
}
try:  # from scikit-learn 1.8 on
    from sklearn.calibration import _TemperatureScaling
except ImportError:
    pass
else:
    PARTS[_TemperatureScaling] = lambda value: None
