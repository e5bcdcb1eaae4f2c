"""A linear classifier as an ONNX graph."""

from __future__ import annotations

import json
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from polymargin.estimators import LinearMulticlassSVC, LinearMulticlassSVCCV
from polymargin.fitted import per_class
from polymargin.io import ModelFileError

if TYPE_CHECKING:
    from onnx import ModelProto

Linear = LinearMulticlassSVC | LinearMulticlassSVCCV
OPSET = 17
# from X, weights, constants and labels to label and scores: kind, inputs, output, options
NODES: tuple[tuple[str, list[str], str, dict[str, int]], ...] = (
    ("MatMul", ["X", "weights"], "products", {}),
    ("Add", ["products", "constants"], "scores", {}),
    ("ArgMax", ["scores"], "best", {"axis": 1, "keepdims": 0}),
    ("Gather", ["labels", "best"], "label", {"axis": 0}),
)
IR_VERSION = 8


def require_onnx() -> ModuleType:
    """The package onnx, or an error that says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX needs packages: pip install 'polymargin[onnx]'.") from error
    return onnx


def constants_of(model: Linear, dtype: DTypeLike) -> dict[str, NDArray]:
    """Weights (n_features, n_classes) and constants with a column per class, and the labels."""
    return {
        "weights": np.ascontiguousarray(per_class(model.coef_).T, dtype=dtype),
        "constants": np.asarray(per_class(model.intercept_), dtype=dtype),
        "labels": label_tensor(model.classes_),
    }


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


def convert_linear(model: Linear, dtype: np.dtype) -> ModelProto:
    """The ONNX model of a linear classifier."""
    onnx = require_onnx()
    check_is_fitted(model)
    helper = onnx.helper
    constants = constants_of(model, dtype)
    n_features, n_classes = constants["weights"].shape
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    words = constants["labels"].dtype == object
    label_kind = onnx.TensorProto.STRING if words else onnx.TensorProto.INT64
    graph = helper.make_graph(
        [
            helper.make_node(node, inputs, [output], **options)
            for node, inputs, output, options in NODES
        ],
        "polymargin",
        [helper.make_tensor_value_info("X", kind, ["n", n_features])],
        [
            helper.make_tensor_value_info("label", label_kind, ["n"]),
            helper.make_tensor_value_info("scores", kind, ["n", n_classes]),
        ],
        [onnx.numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    opset = [helper.make_opsetid("", OPSET)]
    proto = helper.make_model(
        graph, producer_name="polymargin", opset_imports=opset, ir_version=IR_VERSION
    )
    return finish(proto, model)


def finish(proto: ModelProto, model: Linear) -> ModelProto:
    """Add the labels to the metadata, and check the whole."""
    onnx = require_onnx()
    classes = json.dumps(label_tensor(model.classes_).tolist())
    onnx.helper.set_model_props(proto, {"classes": classes})
    onnx.checker.check_model(proto)
    return proto
