"""Pipelines in ONNX, through skl2onnx and a converter for our linear classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polymargin.export._onnx_graph import (
    NODES,
    OPSET,
    Linear,
    constants_of,
    finish,
    label_tensor,
    require_onnx,
)
from polymargin.models import ModelFileError

try:
    import skl2onnx
    from skl2onnx.common import data_types as types
    from skl2onnx.common import exceptions
except ImportError as error:
    raise ImportError("ONNX needs packages: pip install 'polymargin[onnx]'.") from error
if TYPE_CHECKING:
    from onnx import ModelProto
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope, Variable

_WORD = r"[\p{L}\p{N}_]"  # what \w is in Python; in RE2, which ONNX runtimes use, \w is ASCII
_TOKENS = {
    r"(?u)\b\w\w+\b": f"{_WORD}{_WORD}+",
    r"(?u)\b\w+\b": f"{_WORD}+",
}


def convert_pipeline(pipeline: Pipeline, dtype: np.dtype, locale: str | None) -> ModelProto:
    """The ONNX model of a pipeline that ends in a LinearMulticlassSVC."""
    last = pipeline.steps[-1][1]
    if not isinstance(last, Linear):
        raise ModelFileError(
            f"only pipelines that end in LinearMulticlassSVC can be converted to ONNX, not in "
            f"{type(last).__name__}."
        )
    check_is_fitted(pipeline)
    label_tensor(last.classes_)
    _register()
    if isinstance(pipeline.steps[0][1], CountVectorizer):
        inputs = [("text", types.StringTensorType([None, 1]))]
    else:
        kind = types.FloatTensorType if dtype == np.float32 else types.DoubleTensorType
        inputs = [("X", kind([None, _n_features(pipeline)]))]
    try:
        proto = skl2onnx.convert_sklearn(
            pipeline,
            name="polymargin",
            initial_types=inputs,
            target_opset={"": OPSET, "ai.onnx.ml": 3},
            options=_text_options(pipeline.steps[0][1], locale),
        )
    except (
        exceptions.MissingConverter,
        exceptions.MissingShapeCalculator,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        first_line = str(error).strip().splitlines()[0]
        raise ModelFileError(f"skl2onnx cannot convert this pipeline: {first_line}") from error
    proto.producer_name = "polymargin"
    return finish(proto, last)


def _text_options(
    vectorizer: BaseEstimator, locale: str | None
) -> dict[int, dict[str, str | None]] | None:
    """What skl2onnx is to do about words, so that they come out as in scikit-learn."""
    if not isinstance(vectorizer, CountVectorizer):
        return None
    differences = {
        "analyzer='char'": vectorizer.analyzer != "word",
        "sublinear_tf=True": getattr(vectorizer, "sublinear_tf", False),
        "stop_words with ngram_range": vectorizer.stop_words and vectorizer.ngram_range[1] > 1,
    }
    for setting, used in differences.items():
        if used:
            raise ModelFileError(
                f"skl2onnx does not do what scikit-learn does for {setting}: the scores would "
                "differ. Train without it to export to ONNX."
            )
    pattern = _TOKENS.get(vectorizer.token_pattern, vectorizer.token_pattern)
    return {id(vectorizer): {"locale": locale, "tokenexp": pattern}}


def _n_features(pipeline: Pipeline) -> int:
    for _, step in pipeline.steps:
        if hasattr(step, "n_features_in_"):
            return int(step.n_features_in_)
    raise ModelFileError("the number of features of this pipeline is not known.")


def _register() -> None:
    """Tell skl2onnx about our classifiers."""
    for cls in get_args(Linear):
        skl2onnx.update_registered_converter(
            cls,
            f"Polymargin{cls.__name__}",
            _set_shapes,
            _add_nodes,
            parser=_declare_outputs,
            options={"zipmap": [False, True]},  # set for classifiers; our scores are a matrix
        )


def _declare_outputs(
    scope: Scope, model: Linear, inputs: list[Variable], custom_parsers: object = None
) -> list[Variable]:
    operator = scope.declare_local_operator(f"Polymargin{type(model).__name__}", model)
    operator.inputs = inputs
    words = label_tensor(model.classes_).dtype == object
    label = types.StringTensorType() if words else types.Int64TensorType()
    operator.outputs.append(scope.declare_local_variable("label", label))
    operator.outputs.append(scope.declare_local_variable("scores", _number_type(operator)()))
    return operator.outputs


def _number_type(operator: Operator) -> type:
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    return types.DoubleTensorType if double else types.FloatTensorType


def _set_shapes(operator: Operator) -> None:
    n, k = operator.inputs[0].get_first_dimension(), len(operator.raw_operator.classes_)
    operator.outputs[0].type.shape = [n]
    operator.outputs[1].type = _number_type(operator)([n, k])


def _add_nodes(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    tensor = require_onnx().TensorProto
    kinds = {"f4": tensor.FLOAT, "f8": tensor.DOUBLE, "i8": tensor.INT64}
    label, scores = operator.outputs
    double = _number_type(operator) is types.DoubleTensorType
    names = {
        "X": operator.inputs[0].full_name,
        "scores": scores.full_name,
        "label": label.full_name,
    }
    names |= {name: scope.get_unique_variable_name(name) for name in ("products", "best")}
    for name, values in constants_of(operator.raw_operator, "f8" if double else "f4").items():
        names[name] = scope.get_unique_variable_name(name)
        kind = kinds.get(values.dtype.str[1:], tensor.STRING)
        container.add_initializer(names[name], kind, list(values.shape), values.ravel().tolist())
    for node, inputs, output, options in NODES:
        name = scope.get_unique_operator_name(node)
        given = [names[one] for one in inputs]
        container.add_node(node, given, [names[output]], op_version=OPSET, name=name, **options)
