"""Tables in ONNX: what skl2onnx has no converter for, of the steps that models of tables have.

The graph has an input for each column that the first step of the pipeline gives, a float or a
string, NaN or the empty string where a value is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from skl2onnx.common import data_types as types
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from polymargin.models import ModelFileError
from polymargin.storage import Array
from polymargin.tables import TableColumns

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope


def inputs_of(first: TableColumns, kind: type) -> list[tuple[str, object]]:
    """Names and types of the columns; numbers are of this kind."""
    numbers = set(first.places("number", "date", "time"))
    return [
        (name, kind([None, 1]) if place in numbers else types.StringTensorType([None, 1]))
        for place, name in enumerate(first.get_feature_names_out().tolist())
    ]


class _Graph:
    """Nodes, constants and names of one operator."""

    def __init__(
        self, scope: Scope, operator: Operator, container: ModelComponentContainer
    ) -> None:
        self.scope, self.container = scope, container
        double = isinstance(operator.outputs[0].type, types.DoubleTensorType)
        self.dtype = np.float64 if double else np.float32
        self.type = onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT

    def constant(self, values: Array) -> str:
        name: str = self.scope.get_unique_variable_name("constant")
        content = onnx.numpy_helper.from_array(np.ascontiguousarray(values))
        self.container.add_initializer(name, content.data_type, values.shape, content)
        return name

    def node(
        self, kind: str, inputs: list[str], output: str | None = None, **options: object
    ) -> str:
        made = output or self.scope.get_unique_variable_name(kind.lower())
        name = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, inputs, [made], name=name, **options)
        return made


def _impute(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    imputer, graph = operator.raw_operator, _Graph(scope, operator, container)
    X, made = operator.inputs[0].full_name, operator.outputs[0].full_name
    missing = graph.node("IsNaN", [X])
    means = graph.constant(imputer.statistics_[None, :].astype(graph.dtype))
    indicator = imputer.indicator_
    if indicator is None or not len(indicator.features_):
        graph.node("Where", [missing, means, X], made)
        return
    filled = graph.node("Where", [missing, means, X])
    places = graph.constant(np.asarray(indicator.features_, np.int64))
    flags = graph.node("Cast", [missing], to=graph.type)
    flags = graph.node("Gather", [flags, places], axis=1)
    graph.node("Concat", [filled, flags], made, axis=1)


def _impute_shape(operator: Operator) -> None:
    imputer = operator.raw_operator
    if not np.isfinite(imputer.statistics_).all():
        raise ModelFileError("an imputer with an empty column cannot be converted to ONNX.")
    extra = 0 if imputer.indicator_ is None else len(imputer.indicator_.features_)
    width = imputer.n_features_in_ + extra
    operator.outputs[0].type = type(operator.inputs[0].type)([None, width])


def _encode(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    encoder, graph = operator.raw_operator, _Graph(scope, operator, container)
    parts = []
    for i, (column, values) in enumerate(zip(operator.inputs, encoder.categories_, strict=True)):
        one = graph.node(
            "OneHotEncoder",
            [column.full_name],
            op_domain="ai.onnx.ml",
            op_version=1,
            cats_strings=[str(value).encode() for value in values],
            zeros=1,
        )
        shape = graph.constant(np.array([-1, len(values)], np.int64))
        one = graph.node("Reshape", [one, shape])
        if graph.dtype == np.float64:
            one = graph.node("Cast", [one], to=graph.type)
        rare = encoder._infrequent_indices[i]
        if rare is not None:  # these and unknown ones share the last feature
            places = encoder._default_to_infrequent_mappings[i]
            shared = np.zeros(places.max() + 1, graph.dtype)
            shared[-1] = 1
            table = np.eye(len(shared), dtype=graph.dtype)[places] - shared
            one = graph.node("MatMul", [one, graph.constant(table)])
            one = graph.node("Add", [one, graph.constant(shared)])
        parts.append(one)
    graph.node("Concat", parts, operator.outputs[0].full_name, axis=1)


def _encode_shape(operator: Operator) -> None:
    width = sum(operator.raw_operator._n_features_outs)
    operator.outputs[0].type = types.FloatTensorType([None, width])


CONVERTERS = {SimpleImputer: _impute, OneHotEncoder: _encode}
SHAPES = {SimpleImputer: _impute_shape, OneHotEncoder: _encode_shape}
