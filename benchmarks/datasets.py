"""Load the benchmark data, prepared the way the papers prepare it, or generate some.

``NAME.npz`` is looked for in the folder the environment variable ``POLYMARGIN_DATA`` names, then in
``../shared/data`` beside the project root; where neither has it, the public original is fetched
through scikit-learn (`originals`). Every preparation is fitted on the training part alone and
computed in float64; the result is cast last.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from benchmarks import originals

Layout = Literal["native", "csr", "dense"]
Matrix = Any  # ndarray or csr_array
Preparation = Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]

PROJECT_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Dataset:
    """One prepared data set.

    Attributes
    ----------
    name : str
        Name of the file it came from.
    X_train, X_test : ndarray or csr_array
        Features, C-contiguous or canonical CSR.
    y_train, y_test : ndarray of int32
        Class codes 0..K-1.
    """

    name: str
    X_train: Matrix
    y_train: np.ndarray
    X_test: Matrix
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of classes in the training part."""
        return int(self.y_train.max()) + 1


def data_folders() -> list[Path]:
    """Return the folders that may hold the ``NAME.npz`` files, in the order of looking."""
    default = PROJECT_ROOT.parent / "shared" / "data"
    named = os.environ.get("POLYMARGIN_DATA")
    return [Path(named), default] if named else [default]


def data_folder() -> Path:
    """Return the first folder to look in."""
    return data_folders()[0]


def source(name: str) -> str:
    """Say where `load` takes a data set from: the size of its file, or "original"."""
    for place in data_folders():
        path = place / f"{name}.npz"
        if path.is_file():
            return f"file of {path.stat().st_size} bytes"
    return "original"


def load(
    name: str,
    dtype: Any = np.float64,
    layout: Layout = "native",
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Dataset:
    """Load and prepare one data set.

    Parameters
    ----------
    name : str
        A key of ``PREPARATIONS``.
    dtype : dtype, default=float64
        Type of the features.
    layout : {"native", "csr", "dense"}, default="native"
        Keep the layout of the file, or convert both parts.
    folder : path, default=None
        Look for the file there only; by default in `data_folders()`, then the public original.
    download : bool, default=True
        Whether the public original may be fetched from the internet where no folder has the file.

    Returns
    -------
    Dataset
        The prepared training and test parts.

    Raises
    ------
    ValueError
        For a name without a preparation or an unknown layout.
    FileNotFoundError
        When the file is absent and no public original could be had.
    """
    if name not in PREPARATIONS:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(sorted(PREPARATIONS))}")
    return _prepared(name, _raw(name, folder, download), dtype, layout, name)


def load_published(name: str, dtype: Any = np.float64, layout: Layout = "native") -> Dataset:
    """Load the rows the papers had where scikit-learn has them on this machine, else as `load`.

    Those are news20, all 18,846 documents with their 130,107 features, called "news20_18846", and
    covtype. Nothing is downloaded for it.
    """
    raw = originals.on_this_machine(name) if name in PUBLISHED else None
    if raw is None:
        return load(name, dtype=dtype, layout=layout)
    return _prepared(name, raw, dtype, layout, PUBLISHED[name])


def is_here(name: str) -> bool:
    """Whether `load` needs no download for a data set."""
    return any((place / f"{name}.npz").is_file() for place in data_folders()) or (
        name in originals.BUNDLED or originals.on_this_machine(name) is not None
    )


def _prepared(name: str, raw: originals.Raw, dtype: Any, layout: Layout, title: str) -> Dataset:
    X_train, y_train, X_test, y_test = raw
    X_train, X_test = PREPARATIONS[name](X_train, X_test)
    return Dataset(
        title, _finish(X_train, dtype, layout), y_train, _finish(X_test, dtype, layout), y_test
    )


def _raw(name: str, folder: str | os.PathLike[str] | None, download: bool) -> originals.Raw:
    """Read the raw arrays from the first folder that has them, else from the public original."""
    folders = data_folders() if folder is None else [Path(folder)]
    for place in folders:
        path = place / f"{name}.npz"
        if path.is_file():
            with np.load(path) as arrays:
                return tuple(
                    value
                    for part in ("train", "test")
                    for value in (_read_part(arrays, part), arrays[f"{part}_y"].astype(np.int32))
                )
    wanted = f"{name}.npz is not in {' or '.join(map(str, folders))}"
    advice = "set POLYMARGIN_DATA to the folder that holds it"
    if folder is not None or name not in originals.ORIGINALS:
        raise FileNotFoundError(f"{wanted}: {advice}")
    if not (download or name in originals.BUNDLED):
        raise FileNotFoundError(f"{wanted} and nothing may be downloaded: {advice}")
    try:
        return originals.fetch(name)
    except OSError as error:  # what urllib raises without a network
        raise FileNotFoundError(
            f"{wanted} and its public original could not be fetched ({error}): {advice}"
        ) from error


def _read_part(arrays: Any, part: str) -> Matrix:
    """Read one part in float64, dense or CSR as the file has it."""
    if f"{part}_X" in arrays.files:
        return arrays[f"{part}_X"].astype(np.float64)
    data, indices, indptr = (arrays[f"{part}_{field}"] for field in ("data", "indices", "indptr"))
    return sparse.csr_array(
        (data.astype(np.float64), indices, indptr), shape=tuple(arrays[f"{part}_shape"])
    )


def _finish(X: Matrix, dtype: Any, layout: Layout) -> Matrix:
    """Cast and lay out: C-contiguous, or CSR sorted, without duplicates or explicit zeros."""
    if layout not in ("native", "csr", "dense"):
        raise ValueError(f"layout must be 'native', 'csr' or 'dense', got {layout!r}")
    is_sparse = sparse.issparse(X)
    if layout == "dense" or (layout == "native" and not is_sparse):
        return np.ascontiguousarray(X.toarray() if is_sparse else X, dtype=dtype)
    X = sparse.csr_array(X, dtype=dtype)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _as_is(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    return train, test


def _unit_rows(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    return normalize(train), normalize(test)


def _tfidf(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    transformer = TfidfTransformer().fit(train)
    return transformer.transform(train), transformer.transform(test)


def _affine(scale: float, shift: float = 0.0) -> Preparation:
    """Return x -> x / scale + shift (a shift only for dense parts)."""

    def prepare(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
        if shift == 0.0:
            return train / scale, test / scale
        return train / scale + shift, test / scale + shift

    return prepare


def _min_max(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    """Map each feature's training range to [-1, 1]; a constant feature becomes -1."""
    low, span = train.min(axis=0), np.ptp(train, axis=0)
    span = np.where(span > 0, span, 1.0)
    return 2 * (train - low) / span - 1, 2 * (test - low) / span - 1


PREPARATIONS: dict[str, Preparation] = {
    "aloi": _affine(9),
    "banking77": _tfidf,
    "banking77_minilm": _as_is,
    "clinc150": _tfidf,
    "clinc150_minilm": _as_is,
    "covtype": _min_max,
    "digits": _affine(16),
    "dna": _as_is,
    "letter": _affine(7.5, -1.0),
    "mnist": _affine(255),
    "news20": _unit_rows,
    "quickdraw345": _affine(1000),
    "rcv1_multiclass_sub": _unit_rows,
    "satimage": _min_max,
    "usps": _as_is,
}


PUBLISHED = {"covtype": "covtype", "news20": "news20_18846"}  # what `load_published` calls them


def generate_sparse(
    n: int,
    n_features: int,
    n_classes: int,
    nonzeros: int = 20,
    dtype: Any = np.float32,
    seed: int = 0,
) -> tuple[sparse.csr_array, np.ndarray]:
    """Generate unit rows of exactly `nonzeros` entries whose features tell the class.

    The features are cut into `nonzeros` ranges of equal length and a row takes one feature of
    each, so that indices come out sorted and distinct. Half the time it is one of the class's
    five favourites in that range, otherwise any; one label in ten is replaced at random.
    Filled in place by chunks: little memory is needed beyond the result.

    Parameters
    ----------
    n, n_features, n_classes, nonzeros : int
        Sizes; `nonzeros` is per row.
    dtype : dtype, default=float32
        Type of the values.
    seed : int, default=0
        Seed of the generator.

    Returns
    -------
    X : csr_array of shape (n, n_features)
        Canonical, int32 indices while they suffice.
    y : ndarray of int32 of shape (n,)
        Class codes; every class occurs when ``n >= n_classes``.
    """
    rng = np.random.default_rng(seed)
    width = n_features // nonzeros
    first = width * np.arange(nonzeros, dtype=np.int32)
    favourites = rng.integers(0, width, (n_classes, nonzeros, 5), dtype=np.int32)
    y = (np.arange(n) % n_classes).astype(np.int32)
    indices = np.empty((n, nonzeros), dtype=np.int32)
    data = np.empty((n, nonzeros), dtype=dtype)
    for start in range(0, n, 20_000):
        codes = y[start : start + 20_000]
        shape = (codes.size, nonzeros)
        favourite = favourites[codes[:, None], np.arange(nonzeros), rng.integers(0, 5, shape)]
        anything = rng.integers(0, width, shape, dtype=np.int32)
        chunk = slice(start, start + codes.size)
        indices[chunk] = first + np.where(rng.random(shape) < 0.5, favourite, anything)
        values = rng.uniform(0.5, 1.5, shape)
        data[chunk] = values / np.linalg.norm(values, axis=1, keepdims=True)
    noisy = np.flatnonzero(rng.random(n) < 0.1)
    noisy = noisy[noisy >= n_classes]
    y[noisy] = rng.integers(0, n_classes, noisy.size)
    index_type = np.int32 if indices.size < 2**31 else np.int64
    indptr = np.arange(0, n * nonzeros + 1, nonzeros, dtype=index_type)
    X = sparse.csr_array((data.ravel(), indices.ravel(), indptr), shape=(n, n_features))
    return X, y


def generate_dense(
    n: int, n_features: int, n_classes: int, dtype: Any = np.float32, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Generate unit rows scattered around one random centre per class.

    Parameters
    ----------
    n, n_features, n_classes : int
        Sizes.
    dtype : dtype, default=float32
        Type of the values.
    seed : int, default=0
        Seed of the generator.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        C-contiguous.
    y : ndarray of int32 of shape (n,)
        Class codes; every class occurs when ``n >= n_classes``.
    """
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % n_classes).astype(np.int32)
    centres = rng.standard_normal((n_classes, n_features), dtype=np.float32)
    X = 0.3 * centres[y] + rng.standard_normal((n, n_features), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return np.ascontiguousarray(X, dtype=dtype), y
