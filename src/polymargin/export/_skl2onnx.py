"""Pipelines in ONNX, through skl2onnx and a converter for our linear classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polymargin.export._onnx import (
    LINEAR,
    OPSET,
    finish,
    label_tensor,
    require_onnx,
    score_weights,
)
from polymargin.models import ModelFileError

_WORD = r"[\p{L}\p{N}_]"  # what \w is in Python; in RE2, which ONNX runtimes use, \w is ASCII
_TOKENS = {
    r"(?u)\b\w\w+\b": f"{_WORD}{_WORD}+",
    r"(?u)\b\w+\b": f"{_WORD}+",
}


def convert_pipeline(pipeline: Pipeline, dtype: np.dtype, locale: str | None) -> Any:
    """The ONNX model of a pipeline that ends in a LinearMulticlassSVC."""
    require_onnx()
    try:
        import skl2onnx
        from skl2onnx.common import exceptions
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
    except ImportError as error:
        raise ImportError("ONNX needs packages: pip install 'polymargin[onnx]'.") from error
    last = pipeline.steps[-1][1]
    if not isinstance(last, LINEAR):
        raise ModelFileError(
            f"only pipelines that end in LinearMulticlassSVC can be converted to ONNX, not in "
            f"{type(last).__name__}."
        )
    check_is_fitted(pipeline)
    label_tensor(last.classes_)
    _register()
    if isinstance(pipeline.steps[0][1], CountVectorizer):
        inputs = [("text", StringTensorType([None, 1]))]
    else:
        kind = FloatTensorType if dtype == np.float32 else DoubleTensorType
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


def _text_options(vectorizer: Any, locale: str | None) -> dict[int, dict[str, Any]] | None:
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
    from skl2onnx import update_registered_converter

    for cls in LINEAR:
        update_registered_converter(
            cls,
            f"Polymargin{cls.__name__}",
            _set_shapes,
            _add_nodes,
            parser=_declare_outputs,
            options={"zipmap": [False, True]},  # set for classifiers; our scores are a matrix
        )


def _declare_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    operator = scope.declare_local_operator(f"Polymargin{type(model).__name__}", model)
    operator.inputs = inputs
    words = label_tensor(model.classes_).dtype == object
    label = StringTensorType() if words else Int64TensorType()
    operator.outputs.append(scope.declare_local_variable("label", label))
    operator.outputs.append(scope.declare_local_variable("scores", _number_type(operator)()))
    return operator.outputs


def _number_type(operator: Any) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return DoubleTensorType if double else FloatTensorType


def _set_shapes(operator: Any) -> None:
    n, k = operator.inputs[0].get_first_dimension(), len(operator.raw_operator.classes_)
    operator.outputs[0].type.shape = [n]
    operator.outputs[1].type = _number_type(operator)([n, k])


def _add_nodes(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    tensor = require_onnx().TensorProto
    model, (label, scores) = operator.raw_operator, operator.outputs
    double = _number_type(operator) is DoubleTensorType
    weights, constants = score_weights(model, np.float64 if double else np.float32)
    labels = label_tensor(model.classes_)
    number = tensor.DOUBLE if double else tensor.FLOAT
    label_kind = tensor.STRING if labels.dtype == object else tensor.INT64
    names = {}
    for name, kind, values in (
        ("weights", number, weights),
        ("constants", number, constants),
        ("labels", label_kind, labels),
    ):
        names[name] = scope.get_unique_variable_name(name)
        container.add_initializer(names[name], kind, list(values.shape), values.ravel().tolist())
    products = scope.get_unique_variable_name("products")
    best = scope.get_unique_variable_name("best")
    for node, inputs, output, options in (
        ("MatMul", [operator.inputs[0].full_name, names["weights"]], products, {}),
        ("Add", [products, names["constants"]], scores.full_name, {}),
        ("ArgMax", [scores.full_name], best, {"axis": 1, "keepdims": 0}),
        ("Gather", [names["labels"], best], label.full_name, {"axis": 0}),
    ):
        name = scope.get_unique_operator_name(node)
        container.add_node(node, inputs, [output], op_version=OPSET, name=name, **options)
