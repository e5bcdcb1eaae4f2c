"""Classifiers and pipelines as ONNX graphs: a converter of ours for skl2onnx."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polymargin.estimators.probabilities import temperature_of
from polymargin.fitted import Linear, per_class
from polymargin.models import ModelFileError
from polymargin.storage import Array
from polymargin.tables import TableColumns

try:
    import onnx
    import skl2onnx
    from skl2onnx.common import data_types as types
except ImportError as error:
    raise ImportError("ONNX needs packages: pip install 'polymargin[onnx]'.") from error
from polymargin.export._onnx_kernel import NODES as KERNEL_NODES
from polymargin.export._onnx_kernel import KernelMachine, Node, check_kernel, constants_of
from polymargin.export._onnx_tables import CONVERTERS, SHAPES, inputs_of

if TYPE_CHECKING:
    from onnx import ModelProto
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope, Variable

OPSET = 17
Options = dict[str, str | None]
OUTPUTS = ("label", "scores", "probabilities")
# from features, weights and constants to scores
OF_FEATURES: tuple[Node, ...] = (
    ("MatMul", ["X", "weights"], "products", {}),
    ("Add", ["products", "constants"], "scores", {}),
)
OF_SIMILARITIES: tuple[Node, ...] = (("MatMul", ["similarities", "weights"], "scores", {}),)
# from scores and labels to the label
LABEL_NODES: tuple[Node, ...] = (
    ("ArgMax", ["scores"], "best", {"axis": 1, "keepdims": 0}),
    ("Gather", ["labels", "best"], "label", {"axis": 0}),
)
# and where the model has a temperature
PROBABILITY_NODES: tuple[Node, ...] = (
    ("Div", ["scores", "temperature"], "cooled", {}),
    ("Softmax", ["cooled"], "probabilities", {"axis": 1}),
)
_WORD = r"[\p{L}\p{N}_]"  # what \w is in Python; in RE2, which ONNX runtimes use, \w is ASCII
_TOKENS = {
    r"(?u)\b\w\w+\b": f"{_WORD}{_WORD}+",
    r"(?u)\b\w+\b": f"{_WORD}+",
}


def convert(model: Linear | Pipeline, dtype: np.dtype, locale: str | None) -> ModelProto:
    """The ONNX model of a linear classifier or of a pipeline that ends in one."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    first, last = steps[0], steps[-1]
    if not isinstance(last, Linear | KernelMachine):
        raise ModelFileError(
            "only LinearMulticlassSVC, KernelMulticlassSVC, their cross-validated forms and "
            f"pipelines that end in one can be converted to ONNX, not {type(last).__name__}."
        )
    check_is_fitted(model)
    if isinstance(last, KernelMachine):
        check_kernel(last)
    labels = _label_tensor(last.classes_)
    _register()
    special: dict[str, object] = {}
    if isinstance(first, TableColumns):  # what it does is for the program that gives the columns
        inputs = inputs_of(first, types.FloatTensorType)
        model = Pipeline(model.steps[1:])
        special = {
            "custom_conversion_functions": CONVERTERS,
            "custom_shape_calculators": SHAPES,
        }
    elif isinstance(first, CountVectorizer):
        inputs = [("text", types.StringTensorType([None, 1]))]
    else:
        kind = types.FloatTensorType if dtype == np.float32 else types.DoubleTensorType
        width = next(one.n_features_in_ for one in steps if hasattr(one, "n_features_in_"))
        inputs = [("X", kind([None, width]))]
    try:
        proto: ModelProto = skl2onnx.convert_sklearn(
            model,
            name="polymargin",
            initial_types=inputs,
            target_opset={"": OPSET, "ai.onnx.ml": 3},
            options=_options(steps, locale),
            **special,
        )
    except (RuntimeError, ValueError) as error:  # a step or a setting that it does not know
        first_line = str(error).strip().splitlines()[0]
        raise ModelFileError(f"skl2onnx cannot convert this pipeline: {first_line}") from error
    proto.producer_name = "polymargin"
    about = {"classes": json.dumps(labels.tolist())}
    if isinstance(first, TableColumns):  # the inputs' names have letters, digits and _ only
        about["columns"] = json.dumps(first.get_feature_names_out().tolist(), ensure_ascii=False)
    names = getattr(first, "feature_names_in_", None)
    if names is not None and "columns" not in about:
        about["feature_names"] = json.dumps(np.asarray(names).tolist(), ensure_ascii=False)
    onnx.helper.set_model_props(proto, about)
    onnx.checker.check_model(proto)
    return proto


def _label_tensor(classes: Array) -> Array:
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


def _options(steps: list[BaseEstimator], locale: str | None) -> dict[int, Options] | None:
    """What skl2onnx is to do about the columns of text."""
    found = list(steps)
    for step in steps:
        if isinstance(step, ColumnTransformer):
            found += [one for _, one, _ in step.transformers_]
    words = [one for one in found if isinstance(one, CountVectorizer)]
    return {id(one): _text_options(one, locale) for one in words} or None


def _text_options(vectorizer: CountVectorizer, locale: str | None) -> Options:
    """What skl2onnx is to do about words, so that they come out as in scikit-learn."""
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
    return {"locale": locale, "tokenexp": pattern}


def _register() -> None:
    """Tell skl2onnx about our classifiers."""
    for cls in (*get_args(Linear), *get_args(KernelMachine)):
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
    words = _label_tensor(model.classes_).dtype == object
    label = types.StringTensorType() if words else types.Int64TensorType()
    operator.outputs.append(scope.declare_local_variable("label", label))
    names = ["scores"] if temperature_of(model) is None else ["scores", "probabilities"]
    for name in names:
        operator.outputs.append(scope.declare_local_variable(name, _number_type(operator)()))
    outputs: list[Variable] = operator.outputs
    return outputs


def _number_type(operator: Operator) -> type:
    double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    kind: type = types.DoubleTensorType if double else types.FloatTensorType
    return kind


def _set_shapes(operator: Operator) -> None:
    n, k = operator.inputs[0].get_first_dimension(), len(operator.raw_operator.classes_)
    operator.outputs[0].type.shape = [n]
    for output in operator.outputs[1:]:
        output.type = _number_type(operator)([n, k])


def _add_nodes(scope: Scope, operator: Operator, container: ModelComponentContainer) -> None:
    model = operator.raw_operator
    dtype = np.float64 if _number_type(operator) is types.DoubleTensorType else np.float32
    kernel = isinstance(model, KernelMachine)
    weights = per_class(model.dual_coef_ if kernel else model.coef_)
    constants = {
        "weights": np.ascontiguousarray(weights.T, dtype=dtype),
        "labels": _label_tensor(model.classes_),
    }
    if kernel:
        constants |= constants_of(model, np.dtype(dtype))
    else:
        constants["constants"] = np.asarray(per_class(model.intercept_), dtype=dtype)
    names = {"X": operator.inputs[0].full_name}
    for name, output in zip(OUTPUTS, operator.outputs, strict=False):
        names[name] = output.full_name
    scores = (*KERNEL_NODES[model.kernel], *OF_SIMILARITIES) if kernel else OF_FEATURES
    nodes, temperature = (*scores, *LABEL_NODES), temperature_of(model)
    if temperature is not None:  # the scores of two classes are opposite: twice their difference
        half = 2 if len(model.classes_) == 2 else 1
        constants["temperature"] = np.asarray(half * temperature, dtype=dtype)
        nodes += PROBABILITY_NODES
    for name in (*constants, *(node[2] for node in nodes)):
        names.setdefault(name, scope.get_unique_variable_name(name))
    for name, values in constants.items():
        if values.dtype == object:
            content = [label.encode() for label in values.tolist()]
        else:  # a list of all weights would take much memory
            content = onnx.numpy_helper.from_array(values)
        container.add_initializer(names[name], onnx.TensorProto.STRING, values.shape, content)
    for node, inputs, made, options in nodes:
        name = scope.get_unique_operator_name(node)
        given = [names[one] for one in inputs]
        container.add_node(node, given, [names[made]], op_version=OPSET, name=name, **options)
