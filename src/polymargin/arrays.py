"""Names of types that many signatures use, of arrays above all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Floats: TypeAlias = NDArray[np.floating]  # float32 or float64, whichever the data are
Doubles: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]  # positions, numbers of examples
Codes: TypeAlias = NDArray[np.int32]  # of classes
Mask: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = Floats | sparse.csr_array  # rows of data
Sparse: TypeAlias = sparse.sparray | sparse.spmatrix  # of any format
MatrixLike: TypeAlias = ArrayLike | Sparse  # what users give, frames too
Label: TypeAlias = Hashable  # of a class
Attributes: TypeAlias = dict[str, Any]  # of an object, by name


def precisions(X: object) -> list[type[np.floating[Any]]]:
    """The types that data may have in a fit, the one that others become first."""
    dtype = getattr(X, "dtype", None)
    dtypes = [dtype] if dtype is not None else list(getattr(X, "dtypes", ()))  # of a frame
    if dtypes and all(str(one) == "float16" for one in dtypes):  # float64 would be four times it
        return [np.float32]
    return [np.float64, np.float32]
