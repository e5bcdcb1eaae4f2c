"""Blocks of examples from anywhere, and a data directory made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.files.dataset import DataFileError, Matrix
from polymargin.files.directory import Vector, new_directory, rewrite, write_meta
from polymargin.storage import StrPath

Block = tuple[Matrix, NDArray, NDArray | None]


class BlockSource:
    """Blocks ``(X, y)`` or ``(X, y, weight)``, the same ones each time they are asked for.

    Parameters
    ----------
    blocks : iterable or callable
        Something that can be iterated more than once, such as a list or an object of a class with
        ``__iter__``; or a function that gives a new iterator each time, for Parquet row groups,
        Arrow batches, or a generator. X is dense or CSR, float32 or float64; type and width are
        those of the first block.

    Examples
    --------
    >>> import numpy as np
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.io import BlockSource
    >>> rng = np.random.default_rng(0)
    >>> source = BlockSource([(rng.normal(size=(50, 3)), np.arange(50) % 2) for _ in range(4)])
    >>> LinearMulticlassSVC(random_state=0).fit(source).coef_.shape
    (1, 3)
    """

    def __init__(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(blocks) and iter(blocks) is blocks:
            raise TypeError(
                f"A BlockSource is iterated more than once, which a {type(blocks).__name__} cannot "
                "be: give a list, or a function that makes a new one each time."
            )
        self._blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        blocks = self._blocks() if callable(self._blocks) else self._blocks
        alike: tuple[object, ...] | None = None
        for number, given in enumerate(blocks, start=1):
            try:
                block = _checked(given)
                X = block[0]
                kind = (sparse.issparse(X), X.dtype.name, X.shape[1])
                alike = alike or kind
                if kind != alike:
                    raise ValueError(f"{_kind(kind)}, where the first block is {_kind(alike)}.")
            except (ValueError, TypeError) as error:
                raise DataFileError(f"block {number}: {error}") from error
            yield block


def _kind(kind: tuple[Any, ...]) -> str:
    is_sparse, dtype, width = kind
    return f"{'sparse' if is_sparse else 'dense'} {dtype} with {width:,} columns"


def _checked(given: Any) -> Block:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise TypeError(f"expected (X, y) or (X, y, weight), got {type(given).__name__}.")
    X, y = given[0], np.asarray(given[1])
    weight = None if len(given) == 2 or given[2] is None else np.asarray(given[2], np.float64)
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=not X.has_canonical_format)
        X.sum_duplicates()
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X must be a matrix of float32 or float64, got {X.dtype}, {X.ndim}-D.")
    if y.shape != (X.shape[0],) or (weight is not None and weight.shape != y.shape):
        raise ValueError(f"X has {X.shape[0]:,} rows, but y or weight another length.")
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("X has values that are NaN or infinite.")
    return X, y, weight


def write_blocks(source: BlockSource, path: StrPath, *, overwrite: bool = False) -> Path:
    """Write all blocks of a source as a data directory, one block in memory at a time.

    Parameters
    ----------
    source : BlockSource
        The blocks.
    path, overwrite :
        As in :func:`polymargin.io.write_directory`.

    Returns
    -------
    Path
        The directory.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from polymargin.io import BlockSource, open_directory, write_blocks
    >>> source = BlockSource([(np.eye(3), np.arange(3))] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_blocks(source, os.path.join(folder, "eye.data"))
    ...     print(open_directory(path).X.shape)
    (12, 3)
    """
    with new_directory(path, overwrite) as folder:
        files: dict[str, Vector] = {}
        codes: dict[str, int] = {}
        n, width, dense = 0, 0, False
        with ExitStack() as stack:

            def append(name: str, values: NDArray, columns: int | None = None) -> None:
                if name not in files:
                    vector = Vector(folder / f"{name}.npy", values.dtype, columns)
                    files[name] = stack.enter_context(vector)
                if files[name].dtype != values.dtype:
                    raise DataFileError(
                        f"block {number}: {name} is {values.dtype}, {files[name].dtype} before"
                    )
                files[name].append(values)

            for number, (X, y, weight) in enumerate(source, start=1):
                dense, width = not sparse.issparse(X), X.shape[1]
                if dense:
                    append("X", X, width)
                else:
                    if not files:
                        append("indptr", np.zeros(1, np.int64))
                    append("indptr", X.indptr[1:].astype(np.int64) + files["indptr"].last)
                    append("indices", X.indices.astype(np.int64))
                    append("data", X.data)
                append("y", _label_codes(y, codes))
                if n > 0 and (weight is not None) != ("weight" in files):
                    raise DataFileError(f"block {number}: some blocks have weights, others none")
                if weight is not None:
                    append("weight", weight)
                n += len(y)
        if n == 0:
            raise DataFileError("the source has no examples")
        meta: dict[str, Any] = {"layout": "dense" if dense else "csr", "shape": [n, width]}
        if not dense and max(width, files["data"].length) < 2**31:
            rewrite(folder / "indices.npy", np.int32)
            rewrite(folder / "indptr.npy", np.int32)
        if codes:
            meta["classes"] = list(codes)
        write_meta(folder, {**meta, "n_examples": n, "source": "blocks"})
    return Path(path)


def _label_codes(y: NDArray, codes: dict[str, int]) -> NDArray:
    """Numbers as 64-bit ones; strings as positions in the table, which grows."""
    if y.dtype.kind in "biu":
        return y.astype(np.int64)
    if y.dtype.kind == "f":
        return y.astype(np.float64)
    values = y.tolist()
    if not all(isinstance(value, str) for value in values):
        raise DataFileError("labels must be numbers or strings.")
    return np.array([codes.setdefault(value, len(codes)) for value in values], np.int32)
