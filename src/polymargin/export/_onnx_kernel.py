"""Kernel values in ONNX graphs: of examples and the support vectors of a machine."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.estimators import KernelMulticlassSVC, KernelMulticlassSVCCV
from polymargin.models import ModelFileError

KernelMachine: TypeAlias = KernelMulticlassSVC | KernelMulticlassSVCCV
Node = tuple[str, list[str], str, dict[str, int]]  # kind, inputs, output, options

_INNER: tuple[Node, ...] = (
    ("MatMul", ["X", "vectors"], "scaled", {}),  # gamma is in the vectors
    ("Add", ["scaled", "coef0"], "shifted", {}),
)
# from X, the transposed support vectors and the parameters to "similarities"
NODES: dict[str, tuple[Node, ...]] = {
    "linear": (("MatMul", ["X", "vectors"], "similarities", {}),),
    "poly": (*_INNER, ("Pow", ["shifted", "degree"], "similarities", {})),
    "sigmoid": (*_INNER, ("Tanh", ["shifted"], "similarities", {})),
    # ||x - z||^2 as ||x||^2 - 2 x.z + ||z||^2, about the mean of the support vectors: far from the
    # origin the difference would lose its digits
    "rbf": (
        ("Sub", ["X", "centre"], "moved", {}),
        ("MatMul", ["moved", "vectors"], "inner", {}),
        ("Mul", ["inner", "minus_two"], "twice", {}),
        ("Mul", ["moved", "moved"], "squares", {}),
        ("ReduceSum", ["squares", "last_axis"], "lengths", {"keepdims": 1}),
        ("Add", ["twice", "lengths"], "partly", {}),
        ("Add", ["partly", "norms"], "rounded", {}),
        ("Max", ["rounded", "zero"], "distances", {}),
        ("Mul", ["distances", "minus_gamma"], "exponents", {}),
        ("Exp", ["exponents"], "similarities", {}),
    ),
}


def constants_of(model: KernelMachine, dtype: np.dtype) -> dict[str, NDArray[Any]]:
    """What the nodes of a machine's kernel take."""
    vectors = model.support_vectors_
    Z = np.asarray(vectors.toarray() if sparse.issparse(vectors) else vectors, np.float64)
    if model.kernel == "linear":
        return {"vectors": Z.T.astype(dtype)}
    gamma = float(model.gamma_)
    if model.kernel == "rbf":
        centre = Z.mean(axis=0)
        moved = (Z - centre).astype(dtype)
        norms = np.square(moved, dtype=np.float64).sum(axis=1)
        numbers = {"minus_two": -2.0, "minus_gamma": -gamma, "zero": 0.0}
        return {
            "centre": centre.astype(dtype),
            "vectors": np.ascontiguousarray(moved.T),
            "norms": norms.astype(dtype),
            "last_axis": np.array([1], np.int64),
            **{name: np.asarray(value, dtype) for name, value in numbers.items()},
        }
    # a factor behind the product would be taken for one of single precision by onnxruntime
    found = {"vectors": (gamma * Z.T).astype(dtype), "coef0": np.asarray(model.coef0, dtype)}
    if model.kernel == "poly":
        found["degree"] = np.asarray(model.degree, dtype)
    return found


def check_kernel(model: KernelMachine) -> None:
    """Raise `ModelFileError` for a kernel that only Python knows."""
    if model.kernel not in NODES:
        name = model.kernel if isinstance(model.kernel, str) else "a function of yours"
        raise ModelFileError(
            f"a machine whose kernel is {name} cannot be converted to ONNX: the kernels "
            f"{', '.join(NODES)} can."
        )
