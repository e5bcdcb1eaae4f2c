"""The classes that a model file may hold, how their state is taken and given back, and checks.

An object is its constructor's parameters and its fitted attributes (public names that end in an
underscore). What comes from a file is validated like what comes from a user: parameters by the
class itself, arrays by the checks here, so that a file made with ill intent can give an error but
neither run code nor make a prediction read outside of an array.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from polymargin.costs import costs_for, without_types
from polymargin.estimators import (
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
)
from polymargin.models import larank, prepared
from polymargin.solvers import DualSolver, KernelSolver, StreamSolver
from polymargin.storage import Decoder, Encoder, Json
from polymargin.tables import TableColumns
from polymargin.tables.columns import check_kinds

_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")
_CALIBRATED = ("estimator", "calibrators", "classes", "method")


class ModelFileError(ValueError):
    """A model that cannot be written to a file, or a file that is not a sound model.

    Examples
    --------
    >>> import os, tempfile
    >>> import polymargin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bad.pmz")
    ...     _ = open(path, "w").write("something else")
    ...     try:
    ...         polymargin.load(path)
    ...     except polymargin.io.ModelFileError:
    ...         print("not a model file")
    not a model file
    """


# --- to and from JSON ----------------------------------------------------------------------------


def encode_object(value: Any, where: str, encoder: Encoder) -> Json:
    """The JSON of a known object; None for anything else."""
    if isinstance(value, prepared.Wrapped):
        return prepared.encode_wrapped(value, where, encoder)
    name = NAMES.get(type(value))
    if name is None:
        return None
    where = f"{where}.{type(value).__name__}" if where else type(value).__name__
    learning = isinstance(value, LaRankClassifier) or (
        isinstance(value, LinearMulticlassSVC) and "coef_" not in vars(value)
    )
    # what it is at one moment: another thread may train it
    value = copy.deepcopy(value) if learning else copy.copy(value)
    if isinstance(value, _CalibratedClassifier):  # a plain object
        params = {key: getattr(value, key) for key in _CALIBRATED}
    else:
        params = value.get_params(deep=False)
    fitted = hasattr(value, "classes_")
    if isinstance(value, Pipeline):
        _check_pipeline(value)
        params["steps"] = [list(step) for step in value.steps]
    if isinstance(value, ColumnTransformer):
        _check_parts(value)
    if "checkpoint" in params:  # a place on the machine that trained the model
        params["checkpoint"] = None
    if params.get("cost_matrix") is not None and fitted:  # a mapping or a DataFrame of any kind
        params["cost_matrix"] = without_types(params["cost_matrix"], value.classes_)
    _refuse_what_reads_files(params)
    private, left = prepared.PRIVATE.get(type(value), ()), prepared.rebuilt(type(value))
    state = {
        key: prepared.portable(one)
        for key, one in dict(vars(value)).items()  # others may be fitting it
        if key in private or (_ATTRIBUTE.fullmatch(key) and key not in (*params, *left))
    }
    if isinstance(value, LinearMulticlassSVC) and fitted:  # computed on demand along a stream
        state |= {"coef_": value.coef_, "intercept_": value.intercept_}
    encoded: dict[str, Json] = {
        "$object": name,
        "params": {
            key: encoder.encode(prepared.portable(one), f"{where}.{key}")
            for key, one in params.items()
        },
        "state": {key: encoder.encode(one, f"{where}.{key}") for key, one in state.items()},
    }
    if isinstance(value, LaRankClassifier) and fitted:
        encoded["machine"] = encoder.encode(larank.state_of(value), f"{where}.machine")
    return encoded


def decode_object(encoded: dict[str, Json], decoder: Decoder) -> object:
    """The object that the JSON describes, checked."""
    if encoded["$object"] in prepared.WRAPPED:
        return prepared.decode_wrapped(encoded, decoder)
    cls = CLASSES.get(encoded["$object"])
    if cls is None:
        raise ModelFileError(
            f"it holds an object of the class {encoded['$object']!r}, which model files may not"
        )
    params = {key: decoder.decode(one) for key, one in encoded["params"].items()}
    if cls is Pipeline:
        params["steps"] = [tuple(step) for step in params["steps"]]
    _refuse_what_reads_files(params)
    unknown = set(params) - set(inspect.signature(cls).parameters)
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {sorted(unknown)[0]!r}")
    value = cls(**params)
    if hasattr(value, "_parameter_constraints"):
        value._validate_params()
    private, left = prepared.PRIVATE.get(cls, ()), prepared.rebuilt(cls)
    for key, one in encoded["state"].items():
        public = _ATTRIBUTE.fullmatch(key) and not hasattr(cls, key) and key not in left
        if not public and key not in private:
            raise ValueError(f"{cls.__name__} has no state {key!r}")
        setattr(value, key, decoder.decode(one))
    if isinstance(value, LaRankClassifier) and encoded["state"]:
        larank.restore(value, decoder.decode(encoded["machine"]))
    if encoded["state"] or cls in WITHOUT_STATE:  # others are parameters that are not fitted
        CHECKS[cls](value)
    prepared.rebuild(value)
    return value


def _refuse_what_reads_files(params: Mapping[str, object]) -> None:
    if params.get("input", "content") != "content":
        raise ModelFileError(
            f"a vectoriser with input={params['input']!r} opens files; only input='content' is "
            "held by model files"
        )
    if params.get("checkpoint") is not None:
        raise ModelFileError("a model file must not say where to write checkpoints")
    if params.get("memory") is not None:
        raise ModelFileError("a Pipeline with memory= cannot be held by a model file")


# --- checks --------------------------------------------------------------------------------------


def _require(ok: object, what: str) -> None:
    if not ok:
        raise ValueError(what)


def _require_array(model: object, name: str, shape: tuple[int, ...], kinds: str = "f") -> None:
    """Raise unless an attribute is an array (a matrix may be sparse) of this shape, and finite."""
    value = getattr(model, name)
    values = value.data if sparse.issparse(value) else value
    right = isinstance(values, np.ndarray) and values.dtype.kind in kinds and value.shape == shape
    _require(right, f"{name} is not an array of the shape {shape} and of its type")
    _require(values.dtype.kind != "f" or np.isfinite(values).all(), f"{name} is not finite")


def _check_classes(model: Any) -> int:
    """Check the labels and the names of features; return the number of rows of scores."""
    classes, width = model.classes_, model.n_features_in_
    _require_array(model, "classes_", (len(classes),), "biufUO")
    _require(len(classes) >= 2, "classes_ has fewer than two labels")
    _require((classes[1:] > classes[:-1]).all(), "classes_ are not sorted")
    _require(type(width) is int and width >= 0, "n_features_in_ is not a count")
    if hasattr(model, "feature_names_in_"):
        _require_array(model, "feature_names_in_", (width,), "UO")
    if hasattr(model, "temperature_"):
        warm = type(model.temperature_) is float and 0 < model.temperature_ < np.inf
        _require(warm, "temperature_ is not a positive number")
    if model.cost_matrix is not None:
        costs_for(model.cost_matrix, classes)
    return 1 if len(classes) == 2 else len(classes)


def _check_linear(model: LinearMulticlassSVC | LinearMulticlassSVCCV) -> None:
    rows = _check_classes(model)
    _require_array(model, "coef_", (rows, model.n_features_in_))
    _require_array(model, "intercept_", (rows,))


def _check_kernel(model: KernelMulticlassSVC | KernelMulticlassSVCCV) -> None:
    rows, n = _check_classes(model), len(model.support_)
    _require_array(model, "dual_coef_", (rows, n))
    _require(isinstance(model.dual_coef_, np.ndarray), "dual_coef_ is sparse")
    _require_array(model, "support_", (n,), "i")
    _require(isinstance(model.gamma_, (int, float)), "gamma_ is not a number")
    if model.kernel == "precomputed":
        inside = (model.support_ >= 0) & (model.support_ < model.n_features_in_)
        _require(inside.all(), "support_ points outside of the kernel matrix")
        return
    _require_array(model, "support_vectors_", (n, model.n_features_in_))
    same = model.support_vectors_.dtype == model.dual_coef_.dtype
    _require(same, "support_vectors_ has the wrong type")


def _check_vocabulary(model: CountVectorizer) -> None:
    words = model.vocabulary_
    _require(isinstance(words, dict) and len(words) > 0, "vocabulary_ is not a vocabulary")
    _require(all(type(word) is str for word in words), "vocabulary_ has keys that are no words")
    numbers = np.array(list(words.values()))
    plain = numbers.ndim == 1 and numbers.dtype.kind == "i"
    _require(plain, "vocabulary_ has values that are no numbers")
    _require((np.sort(numbers) == np.arange(len(numbers))).all(), "vocabulary_ has wrong numbers")
    if isinstance(model, TfidfVectorizer):
        _require(type(model._tfidf) is TfidfTransformer, "a tf-idf vectoriser without its weights")
        if model._tfidf.use_idf:
            _require(len(model._tfidf.idf_) == len(words), "idf_ has the wrong length")


def _check_transformer(model: Any) -> None:
    """Check that fitted vectors have one finite number per feature."""
    width = getattr(model, "n_features_in_", None)
    for key, value in vars(model).items():
        if key.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            _require(value.ndim == 1 and np.isfinite(value).all(), f"{key} is not a finite vector")
            _require(width is None or len(value) == width, f"{key} has the wrong length")


def _check_pipeline(pipeline: Pipeline) -> None:
    """Check the steps; the last one is a classifier of ours or, inside of others, a transformer."""
    for name, step in pipeline.steps[:-1]:
        _check_step(name, step, "the pipeline")
    last = pipeline.steps[-1][1]
    if type(last) not in ESTIMATORS and not _is_known(last):
        raise ModelFileError(
            f"the last step of the pipeline is of type {type(last).__name__}, not one of "
            f"{', '.join(cls.__name__ for cls in ESTIMATORS)}"
        )


def _is_known(step: object) -> bool:
    return step in ("passthrough", "drop") if isinstance(step, str) else type(step) in HELD


def _check_step(name: object, step: object, place: str) -> None:
    _require(isinstance(name, str), f"a step of {place} has no name")
    if not _is_known(step):
        raise ModelFileError(
            f"the step {name!r} of {place} is of type {type(step).__name__}; model files "
            f"hold {', '.join(sorted(cls.__name__ for cls in HELD))}. Use joblib or skops to keep "
            "such a model"
        )


def _check_parts(transformer: ColumnTransformer) -> None:
    for steps in (transformer.transformers, getattr(transformer, "transformers_", [])):
        for name, step, _ in steps:
            _check_step(name, step, "the ColumnTransformer")


def _check_columns(transformer: ColumnTransformer) -> None:
    """Check that its parts are known, and that it looks at columns that there are."""
    _check_parts(transformer)
    for places in getattr(transformer, "_transformer_to_input_indices", {}).values():
        inside = all(type(i) is int and 0 <= i < transformer.n_features_in_ for i in places)
        _require(inside, "a ColumnTransformer of columns that there are not")


def _no_check(value: object) -> None:
    """For objects without state."""


Check = Callable[[Any], object]  # raises ``ValueError`` for a state that makes no sense
ESTIMATORS: dict[type, Check] = {
    LinearMulticlassSVC: _check_linear,
    LinearMulticlassSVCCV: _check_linear,
    KernelMulticlassSVC: _check_kernel,
    KernelMulticlassSVCCV: _check_kernel,
    LaRankClassifier: _check_classes,
    CalibratedClassifierCV: prepared.check_calibrated,
}
TRANSFORMERS: dict[type, Check] = {
    TfidfVectorizer: _check_vocabulary,
    CountVectorizer: _check_vocabulary,
    HashingVectorizer: _no_check,
    TfidfTransformer: _check_transformer,
    StandardScaler: _check_transformer,
    MaxAbsScaler: _check_transformer,
    MinMaxScaler: _check_transformer,
    Normalizer: _no_check,
    TableColumns: check_kinds,
    ColumnTransformer: _check_columns,
    OneHotEncoder: prepared.check_encoder,
    SimpleImputer: prepared.check_imputer,
    FunctionTransformer: prepared.check_function,
}
HELD = {*TRANSFORMERS, Pipeline}  # as steps
WITHOUT_STATE = {Pipeline, FunctionTransformer, TableColumns, ColumnTransformer}  # checked always
CHECKS: dict[type, Check] = {
    **ESTIMATORS,
    **TRANSFORMERS,
    DualSolver: _no_check,
    KernelSolver: _no_check,
    StreamSolver: StreamSolver.check,
    Pipeline: _check_pipeline,
    _CalibratedClassifier: _no_check,
    **prepared.PARTS,
}
NAMES = {cls: f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in CHECKS}
CLASSES = {name: cls for cls, name in NAMES.items()}


def check_can_be_saved(model: Any) -> None:
    """Raise for anything but a fitted estimator of ours, or a pipeline that ends in one."""
    if type(model) not in (*ESTIMATORS, Pipeline):
        hint = " Save its best_estimator_." if hasattr(model, "best_estimator_") else ""
        raise ModelFileError(
            f"a model file holds {', '.join(cls.__name__ for cls in ESTIMATORS)}, or a Pipeline "
            f"that ends in one of them, not an object of type {type(model).__name__}.{hint}"
        )
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if isinstance(model, Pipeline):
        _check_pipeline(model)
        if type(last) not in ESTIMATORS:
            raise ModelFileError(
                f"the last step of the pipeline is of type {type(last).__name__}, not one of "
                f"{', '.join(cls.__name__ for cls in ESTIMATORS)}"
            )
    check_is_fitted(model)
    last = copy.copy(last)  # as it is at one moment
    try:
        CHECKS[type(last)](last)
    except ValueError as error:
        raise ModelFileError(
            f"{type(last).__name__} is not a model of two classes or more: {error}."
        ) from error
