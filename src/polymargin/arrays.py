"""Names of array types that many signatures use."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Floats: TypeAlias = NDArray[np.floating]  # float32 or float64, whichever the data are
Doubles: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]  # positions, numbers of examples
Codes: TypeAlias = NDArray[np.int32]  # of classes
Matrix: TypeAlias = Floats | sparse.csr_array  # rows of data
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix  # what users give, frames too
