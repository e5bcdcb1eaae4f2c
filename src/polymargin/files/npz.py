"""Reading NumPy archives: X and y, a SciPy sparse matrix and y, or such in parts."""

from __future__ import annotations

import io
import zipfile
import zlib

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.files.dataset import DataFileError, Dataset, Matrix
from polymargin.files.streams import name_of, open_bytes
from polymargin.storage import StrPath, checked_sparse

_SPARSE = ("data", "indices", "indptr", "shape")


def read_npz(
    path: StrPath, *, part: str | None, n_features: int | None, dtype: DTypeLike
) -> Dataset:
    """Read an archive; with `part`, the arrays whose names start with it and an underscore."""
    try:
        with open_bytes(path) as stream:
            source = stream if stream.seekable() else io.BytesIO(stream.read())
            with np.load(source, allow_pickle=False) as archive:
                prefix = _prefix(archive.files, part)
                X = _features(archive, prefix)
                y = archive[prefix + "y"] if prefix + "y" in archive.files else None
    except DataFileError:
        raise
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, TypeError) as error:
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


def _features(archive: NpzFile, prefix: str) -> Matrix:
    names = archive.files
    if prefix + "X" in names:
        return archive[prefix + "X"]
    absent = [prefix + key for key in _SPARSE if prefix + key not in names]
    if absent:
        raise DataFileError(
            f"expected X, or {', '.join(_SPARSE)} of a sparse matrix; {absent[0]} is missing. "
            f"The file holds {', '.join(names) or 'nothing'}"
        )
    kind = archive["format"].item() if prefix + "format" in names else b"csr"
    makers = {"csr": sparse.csr_array, "csc": sparse.csc_array}
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in makers:
        raise DataFileError(f"a sparse matrix in the format {kind!r}; expected csr or csc")
    data, indices, indptr, shape = (archive[prefix + key] for key in _SPARSE)
    return checked_sparse(makers[kind], data, indices, indptr, shape.tolist()).tocsr()


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
