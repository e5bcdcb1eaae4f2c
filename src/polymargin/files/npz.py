"""Reading NumPy archives: X and y, a SciPy sparse matrix and y, or such in parts.

Members may be compressed a thousand times. Their headers are read first, and what they ask for is
compared with the size of the file before there is memory for it.
"""

from __future__ import annotations

import io
import math
import os
import tokenize
import zipfile
import zlib

import numpy as np
from numpy.lib import format as npy
from numpy.lib.npyio import NpzFile
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.files.dataset import DataFileError, Dataset, Matrix
from polymargin.files.streams import is_stdin, name_of, open_bytes
from polymargin.storage import StrPath, check_expansion, checked_sparse

_SPARSE = ("data", "indices", "indptr", "shape")
# what damaged files lead NumPy to
UNSOUND = (
    *(ValueError, KeyError, EOFError, TypeError, AttributeError, OverflowError, RuntimeError),
    *(NotImplementedError, RecursionError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # NumPy's headers are Python literals
)


def _size(path: StrPath) -> int:
    return 0 if is_stdin(path) else os.stat(path).st_size


class _Arrays:
    """The arrays of an archive by name, as long as all that are read fit its size."""

    def __init__(self, archive: NpzFile, size: int, dtype: np.dtype) -> None:
        self.files = archive.files
        self._archive, self._size, self._dtype = archive, size, dtype
        self._taken = 0

    def __getitem__(self, name: str) -> NDArray:
        shape, dtype = self._header(name)
        converted = max(dtype.itemsize, self._dtype.itemsize if dtype.kind in "biuf" else 0)
        self.take(f"the array {name!r}", math.prod(shape) * converted)
        array: NDArray = self._archive[name]
        return array

    def take(self, what: str, n_bytes: int) -> None:
        """Count what will be in memory; raise where it is more than the file may ask for."""
        self._taken += n_bytes
        check_expansion(what, self._taken, self._size)

    def _header(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and type of an array, which the bytes that follow must fit."""
        zipped = self._archive.zip
        assert zipped is not None  # it is open
        info = zipped.getinfo(name if name in zipped.namelist() else f"{name}.npy")
        with zipped.open(info) as member:
            version = npy.read_magic(member)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(member)
            if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
                raise ValueError(f"the array {name!r} has a size that does not fit its shape")
        return shape, dtype


def read_npz(
    path: StrPath, *, part: str | None, n_features: int | None, dtype: DTypeLike
) -> Dataset:
    """Read an archive; with `part`, the arrays whose names start with it and an underscore."""
    try:
        with open_bytes(path) as stream:
            source = stream if stream.seekable() else io.BytesIO(stream.read())
            size = source.getbuffer().nbytes if isinstance(source, io.BytesIO) else _size(path)
            with np.load(source, allow_pickle=False) as loaded:
                archive = _Arrays(loaded, size, np.dtype(dtype))
                prefix = _prefix(archive.files, part)
                X = _features(archive, prefix)
                y = archive[prefix + "y"] if prefix + "y" in archive.files else None
    except DataFileError:
        raise
    except (*UNSOUND, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:  # the system's own
            raise
        raise DataFileError(f"not a sound NumPy archive: {error}") from error
    X = _checked(X, n_features, dtype)
    if y is not None and y.shape != (X.shape[0],):
        raise DataFileError(f"y has shape {y.shape}, where X has {X.shape[0]} rows")
    return Dataset(X=X, y=y, source=name_of(path))


def _prefix(names: list[str], part: str | None) -> str:
    parts = sorted(
        name.removesuffix(key)
        for name in names
        for key in ("_X", "_indptr")
        if name.endswith(key) and name != key
    )
    if part is not None:
        if part not in parts:
            raise DataFileError(
                f"there is no part {part!r}; the parts are {', '.join(parts) or 'none'}"
            )
        return part + "_"
    if parts and "X" not in names and "indptr" not in names:
        raise DataFileError(f"the file holds the parts {', '.join(parts)}: choose one with part=")
    return ""


def _features(archive: _Arrays, prefix: str) -> Matrix:
    names = archive.files
    if prefix + "X" in names:
        return archive[prefix + "X"]
    absent = [prefix + key for key in _SPARSE if prefix + key not in names]
    if absent:
        raise DataFileError(
            f"expected X, or {', '.join(_SPARSE)} of a sparse matrix; {absent[0]} is missing. "
            f"The file holds {', '.join(names) or 'nothing'}"
        )
    kind = archive[prefix + "format"].item() if prefix + "format" in names else b"csr"
    makers = {"csr": sparse.csr_array, "csc": sparse.csc_array}
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in makers:
        raise DataFileError(f"a sparse matrix in the format {kind!r}; expected csr or csc")
    data, indices, indptr, shape = (archive[prefix + key] for key in _SPARSE)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataFileError("the shape of the sparse matrix is not a pair of integers")
    X = checked_sparse(makers[kind], data, indices, indptr, shape.tolist())
    if kind == "csc":  # by rows, of which it may have as many as it says
        archive.take("the matrix by rows", 8 * (X.shape[0] + 2 * X.nnz))
    return X.tocsr()


def _checked(X: Matrix, n_features: int | None, dtype: DTypeLike) -> Matrix:
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataFileError(
            f"X must be a matrix of numbers, found shape {X.shape} and type {X.dtype}"
        )
    X = X.astype(dtype, copy=False)
    if sparse.issparse(X):
        X.sum_duplicates()
    values = X.data if sparse.issparse(X) else X
    if not np.isfinite(values).all():
        raise DataFileError("X has values that are NaN or infinite")
    return with_features(X, n_features)


def with_features(X: Matrix, n_features: int | None) -> Matrix:
    """X with empty columns added up to `n_features`; more columns are an error."""
    if n_features is None or X.shape[1] == n_features:
        return X
    if X.shape[1] > n_features:
        raise DataFileError(f"{X.shape[1]} features, where n_features={n_features}")
    if sparse.issparse(X):
        X = X.copy()
        X.resize((X.shape[0], n_features))
        return X
    wider: NDArray = np.zeros((X.shape[0], n_features), X.dtype)
    wider[:, : X.shape[1]] = X
    return wider
