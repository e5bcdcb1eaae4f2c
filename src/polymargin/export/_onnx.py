"""Models in ONNX: a linear classifier by hand, pipelines through skl2onnx.

The graph has the outputs ``label`` (int64 or strings) and ``scores`` (a column per class, in the
order of ``classes_``; for two classes, the score and its negative). The labels are also in the
model's metadata, as JSON under "classes".
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polymargin.estimators import LinearMulticlassSVC, LinearMulticlassSVCCV
from polymargin.models import ModelFileError
from polymargin.storage import replacing

LINEAR = (LinearMulticlassSVC, LinearMulticlassSVCCV)
OPSET = 17
IR_VERSION = 8
_LARGEST_BYTES = 2**31 - 2**20  # a protocol buffer ends there


def to_onnx(
    model: Any, path: Any = None, *, dtype: Any = np.float32, locale: str | None = "C.UTF-8"
) -> Any:
    """Convert a model to ONNX.

    Parameters
    ----------
    model : LinearMulticlassSVC, LinearMulticlassSVCCV or Pipeline
        Fitted. A pipeline ends in one of these; its other steps must be ones that skl2onnx
        converts, among them the scalers, Normalizer and TfidfVectorizer.
    path : path, default=None
        A file to write it to.
    dtype : {float32, float64}, default=float32
        Type of the input ``X`` and of the computation. Pipelines that start from text are float32.
    locale : str, default="C.UTF-8"
        Text: the locale whose rules turn letters to lower case. It must exist where the model
        runs, as this one does on Linux; None leaves it to the runtime.

    Returns
    -------
    onnx.ModelProto
        The model. Its input is ``X``, of shape (n, n_features), or ``text``, of shape (n, 1); its
        outputs are ``label`` and ``scores``.

    Raises
    ------
    ModelFileError
        For a model that cannot be converted.
    ImportError
        Without the packages of ``polymargin[onnx]``.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    if isinstance(model, Pipeline):
        from polymargin.export._skl2onnx import convert_pipeline

        proto = convert_pipeline(model, dtype, locale)
    elif isinstance(model, LINEAR):
        proto = _linear(model, dtype)
    else:
        raise ModelFileError(
            f"only LinearMulticlassSVC, alone or in a Pipeline, can be converted to ONNX, not "
            f"{type(model).__name__}."
        )
    if path is not None:
        if proto.ByteSize() > _LARGEST_BYTES:
            raise ModelFileError("the model is larger than the 2 GB that an ONNX file can be.")
        with replacing(os.fspath(path)) as file:
            file.write(proto.SerializeToString())
    return proto


def require_onnx() -> Any:
    """The package onnx, or an error that says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX needs packages: pip install 'polymargin[onnx]'.") from error
    return onnx


def score_weights(model: LinearMulticlassSVC, dtype: Any) -> tuple[NDArray, NDArray]:
    """Weights (n_features, n_classes) and constants (n_classes,) with a column per class."""
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    intercept = model.intercept_
    if len(model.classes_) == 2:
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
    return np.ascontiguousarray(coef.T, dtype=dtype), np.asarray(intercept, dtype=dtype)


def label_tensor(classes: NDArray) -> NDArray:
    """The labels in a type that ONNX has: int64, or strings."""
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    labels = classes.tolist()
    if not all(type(label) is str for label in labels):
        raise ModelFileError(
            f"labels in ONNX are integers or strings; these are of type {classes.dtype}. Train "
            "with such labels."
        )
    return np.array(labels, dtype=object)


def _linear(model: LinearMulticlassSVC, dtype: np.dtype) -> Any:
    onnx = require_onnx()
    check_is_fitted(model)
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights, constants = score_weights(model, dtype)
    labels = label_tensor(model.classes_)
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    label_kind = onnx.TensorProto.STRING if labels.dtype == object else onnx.TensorProto.INT64
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["X", "weights"], ["products"]),
            helper.make_node("Add", ["products", "constants"], ["scores"]),
            helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
            helper.make_node("Gather", ["labels", "best"], ["label"], axis=0),
        ],
        "polymargin",
        [helper.make_tensor_value_info("X", kind, ["n", weights.shape[0]])],
        [
            helper.make_tensor_value_info("label", label_kind, ["n"]),
            helper.make_tensor_value_info("scores", kind, ["n", weights.shape[1]]),
        ],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(constants, "constants"),
            numpy_helper.from_array(labels, "labels"),
        ],
    )
    proto = helper.make_model(
        graph,
        producer_name="polymargin",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    return finish(proto, model)


def finish(proto: Any, model: LinearMulticlassSVC) -> Any:
    """Add the labels to the metadata, and check the whole."""
    onnx = require_onnx()
    classes = json.dumps(label_tensor(model.classes_).tolist())
    onnx.helper.set_model_props(proto, {"classes": classes})
    onnx.checker.check_model(proto)
    return proto
