"""Models in ONNX, through skl2onnx.

The graph has the outputs ``label`` (int64 or strings) and ``scores`` (a column per class, in the
order of ``classes_``; for two classes, the score and its negative), and ``probabilities`` where the
model has them. The labels are also in the model's metadata, as JSON under "classes".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike
from sklearn.pipeline import Pipeline

from polymargin.fitted import Linear
from polymargin.models import ModelFileError
from polymargin.storage import replacing

if TYPE_CHECKING:
    from onnx import ModelProto

_LARGEST_BYTES = 2**31 - 2**20  # a protocol buffer ends there


def to_onnx(
    model: Linear | Pipeline,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: DTypeLike = np.float32,
    locale: str | None = "C.UTF-8",
) -> ModelProto:
    """Convert a model to ONNX.

    Parameters
    ----------
    model : LinearMulticlassSVC, LinearMulticlassSVCCV or Pipeline
        Fitted. A pipeline ends in one of these; its other steps must be ones that skl2onnx
        converts, among them the scalers, Normalizer and TfidfVectorizer.
    path : path, default=None
        A file to write it to.
    dtype : {float32, float64}, default=float32
        Type of the input ``X`` and of the computation. Pipelines that start from text or from
        tables are float32.
    locale : str, default="C.UTF-8"
        Text: the locale whose rules turn letters to lower case. It must exist where the model
        runs, as this one does on Linux; None leaves it to the runtime.

    Returns
    -------
    onnx.ModelProto
        The model. Its input is ``X``, of shape (n, n_features), or ``text``, of shape (n, 1); its
        outputs are ``label`` and ``scores``, and ``probabilities`` of a model that has them.

    Raises
    ------
    ModelFileError
        For a model that cannot be converted.
    ImportError
        Without the packages of ``polymargin[onnx]``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.export import to_onnx
    >>> clf = LinearMulticlassSVC(random_state=0).fit(*load_iris(return_X_y=True))
    >>> [output.name for output in to_onnx(clf).graph.output]
    ['label', 'scores']
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    from polymargin.export._skl2onnx import convert  # an extra, which takes time to import

    proto = convert(model, dtype, locale)
    if path is not None:
        if proto.ByteSize() > _LARGEST_BYTES:
            raise ModelFileError("the model is larger than the 2 GB that an ONNX file can be.")
        with replacing(os.fspath(path)) as file:
            file.write(proto.SerializeToString())
    return proto
