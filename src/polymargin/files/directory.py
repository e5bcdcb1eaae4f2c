"""A directory of .npy files that opens instantly, whatever its size: arrays are memory-mapped.

``meta.json`` says what there is; ``X.npy``, or ``data.npy``, ``indices.npy`` and ``indptr.npy``,
hold the features; ``y.npy`` the labels, or for words their positions in ``classes`` of
``meta.json``; ``text.bin`` with ``text_offsets.npy`` the texts in UTF-8. A directory is written
under another name and then renamed, so that there never is half of one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from polymargin.files.dataset import Dataset
from polymargin.files.errors import DataFileError
from polymargin.files.streams import name_of
from polymargin.files.svmlight import ZeroBased, raw_chunks, whole_labels
from polymargin.storage import fresh_name, sync

FORMAT = "polymargin-data"
VERSION = 1
META = "meta.json"


class MappedText(Sequence[str]):
    """Texts in a file, decoded when they are asked for."""

    def __init__(self, content: Any, offsets: NDArray[np.int64]) -> None:
        self._content, self._offsets = content, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        return bytes(self._content[self._offsets[i] : self._offsets[i + 1]]).decode()


def write_directory(dataset: Dataset, path: Any, *, overwrite: bool = False) -> Path:
    """Write a data set as a directory that :func:`open_directory` maps into memory.

    Parameters
    ----------
    dataset : Dataset
        The data.
    path : path
        The directory, which must not exist.
    overwrite : bool, default=False
        Whether to replace such a directory if it exists.

    Returns
    -------
    Path
        The directory.
    """
    with _new_directory(path, overwrite) as folder:
        meta: dict[str, Any] = {"n_examples": dataset.n_examples, "source": dataset.source}
        if dataset.X is not None:
            meta.update(_write_features(folder, dataset.X))
        if dataset.text is not None:
            _write_text(folder, dataset.text)
        if dataset.y is not None:
            meta.update(_write_labels(folder, dataset.y))
        meta["label_name"] = dataset.label_name
        meta["feature_names"] = dataset.feature_names
        _write_meta(folder, meta)
    return Path(path)


def _write_features(folder: Path, X: Any) -> dict[str, Any]:
    if not sparse.issparse(X):
        _save(folder / "X.npy", np.ascontiguousarray(X))
        return {"layout": "dense", "shape": list(X.shape)}
    X = sparse.csr_array(X)
    X.sum_duplicates()
    for part in ("data", "indices", "indptr"):
        _save(folder / f"{part}.npy", getattr(X, part))
    return {"layout": "csr", "shape": list(X.shape)}


def _write_text(folder: Path, text: Sequence[str]) -> None:
    offsets = np.zeros(len(text) + 1, np.int64)
    with open(folder / "text.bin", "wb") as file:
        for i, one in enumerate(text):
            offsets[i + 1] = offsets[i] + file.write(one.encode())
        sync(file)
    _save(folder / "text_offsets.npy", offsets)


def _write_labels(folder: Path, y: NDArray) -> dict[str, Any]:
    if y.dtype.kind in "biuf":
        _save(folder / "y.npy", y)
        return {}
    classes, codes = np.unique(y, return_inverse=True)
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise ValueError("Labels must be numbers or strings to be written.")
    _save(folder / "y.npy", codes.astype(np.int32))
    return {"classes": classes.tolist()}


def convert_svmlight(
    path: Any,
    out: Any,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: Any = np.float64,
    rows: int = 100_000,
    overwrite: bool = False,
) -> Path:
    """Convert an svmlight file of any size to such a directory, in one pass and bounded memory.

    Parameters
    ----------
    path : path or "-"
        The file, which may be compressed; "-" is standard input.
    out : path
        The directory to write.
    n_features, zero_based, dtype :
        As in :func:`polymargin.io.read_data`.
    rows : int, default=100_000
        Examples that are in memory at a time.
    overwrite : bool, default=False
        Whether to replace such a directory if it exists.

    Returns
    -------
    Path
        The directory.
    """
    with _new_directory(out, overwrite) as folder:
        with (
            _NpyWriter(folder / "data.npy", dtype) as data,
            _NpyWriter(folder / "indices.npy", np.int32) as indices,
            _NpyWriter(folder / "indptr.npy", np.int64) as indptr,
            _NpyWriter(folder / "y.npy", np.float64) as y,
        ):
            smallest, largest = _stream(
                raw_chunks(path, rows, dtype, zero_based), data, indices, indptr, y
            )
        if y.length == 0:
            raise DataFileError("the file holds no examples", path=name_of(path))
        first = (0 if smallest == 0 else 1) if zero_based == "auto" else int(not zero_based)
        found = max(largest + 1 - first, 0)
        if n_features is not None and found > n_features:
            raise DataFileError(
                f"{found} features, where n_features={n_features}", path=name_of(path)
            )
        width = found if n_features is None else n_features
        index_type = np.int64 if max(width, data.length) >= 2**31 else np.int32
        _rewrite(folder / "indices.npy", index_type, lambda part: part - first)
        _rewrite(folder / "indptr.npy", index_type, lambda part: part)
        labels = np.load(folder / "y.npy", mmap_mode="r")
        chunks = (labels[i : i + rows] for i in range(0, len(labels), rows))
        if all(whole_labels(chunk).dtype == np.int64 for chunk in chunks):
            _rewrite(folder / "y.npy", np.int64, lambda part: part)
        meta = {"layout": "csr", "shape": [y.length, width], "n_examples": y.length}
        _write_meta(folder, {**meta, "source": name_of(path)})
    return Path(out)


def _stream(chunks: Any, data: Any, indices: Any, indptr: Any, y: Any) -> tuple[int, int]:
    """Append the chunks to the files; return the smallest and the largest index."""
    smallest, largest = 2**63 - 1, -1
    indptr.append(np.zeros(1, np.int64))
    for labels, pointers, columns, values in chunks:
        if len(columns):
            smallest = min(smallest, int(columns.min()))
            largest = max(largest, int(columns.max()))
        if columns.dtype == np.int64:
            indices.widen()
        indptr.append(pointers[1:] + data.length)
        indices.append(columns)
        data.append(values)
        y.append(labels)
    return smallest, largest


class _NpyWriter:
    """A vector in a .npy file that grows: the header is written last, in room left for it."""

    HEADER = 128

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0

    def __enter__(self) -> _NpyWriter:
        self._file = open(self.path, "w+b")
        self._file.write(b"\0" * self.HEADER)
        return self

    def append(self, values: NDArray) -> None:
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)
        self.length += len(values)

    def widen(self) -> None:
        """Make it a vector of 64-bit integers."""
        if self.dtype == np.int64:
            return
        self._finish()
        _rewrite(self.path, np.int64, lambda part: part)
        self.dtype = np.dtype(np.int64)
        self._file = open(self.path, "r+b")  # noqa: SIM115
        self._file.seek(0, os.SEEK_END)

    def _finish(self) -> None:
        self._file.seek(0)
        self._file.write(_npy_header(self.dtype, self.length))
        sync(self._file)
        self._file.close()

    def __exit__(self, *error: Any) -> None:
        self._finish()


def _npy_header(dtype: np.dtype, length: int) -> bytes:
    """A header of exactly `_NpyWriter.HEADER` bytes."""
    fields = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (length,)}
    text = repr(fields).encode("latin1")
    room = _NpyWriter.HEADER - npy.MAGIC_LEN - 2
    text = text.ljust(room - 1) + b"\n"
    return npy.magic(1, 0) + room.to_bytes(2, "little") + text


def _rewrite(path: Path, dtype: Any, change: Any) -> None:
    """Replace a vector by one of another type, piece by piece."""
    old = np.load(path, mmap_mode="r")
    fresh = path.with_suffix(".new")
    with _NpyWriter(fresh, dtype) as new:
        for start in range(0, len(old), 1 << 20):
            new.append(change(old[start : start + (1 << 20)]))
    del old
    os.replace(fresh, path)


# --- opening -------------------------------------------------------------------------------------


def open_directory(path: Any) -> Dataset:
    """Open a directory that :func:`write_directory` or :func:`convert_svmlight` wrote.

    Parameters
    ----------
    path : path
        The directory.

    Returns
    -------
    Dataset
        Read-only arrays that are mapped into memory: nothing is read before it is used.

    Raises
    ------
    DataFileError
        If it is not such a directory, or damaged.
    """
    folder, name = Path(path), name_of(path)
    meta = _read_meta(folder, name)
    try:
        X = _open_features(folder, meta)
        text = _open_text(folder, meta)
        y = _open_labels(folder, meta)
        return Dataset(
            X=X,
            y=y,
            text=text,
            feature_names=meta.get("feature_names"),
            source=name,
            label_name=meta.get("label_name"),
        )
    except (ValueError, KeyError, TypeError, IndexError, EOFError, FileNotFoundError) as error:
        raise DataFileError(f"the directory is damaged: {error}", path=name) from error


def _read_meta(folder: Path, name: str) -> dict[str, Any]:
    if not folder.exists():
        raise FileNotFoundError(f"{name} does not exist.")
    if not (folder / META).is_file():
        raise DataFileError(
            f"not a data directory: it has no {META}, which convert and write_directory write",
            path=name,
        )
    try:
        meta = json.loads((folder / META).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{META} is damaged: {error}", path=name) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise DataFileError(f"{META} does not describe a data directory", path=name)
    if meta.get("version") != VERSION:
        raise DataFileError(
            f"version {meta.get('version')} of the format, where this polymargin reads {VERSION}: "
            "update polymargin",
            path=name,
        )
    return meta


def _open_features(folder: Path, meta: dict[str, Any]) -> Any:
    if "layout" not in meta:
        return None
    shape = tuple(meta["shape"])
    if meta["layout"] == "dense":
        X = _map(folder / "X.npy")
        if X.shape != shape or X.dtype.kind != "f":
            raise ValueError("X.npy is not the matrix that it should be")
        return X
    data, indices, indptr = (_map(folder / f"{n}.npy") for n in ("data", "indices", "indptr"))
    if data.dtype.kind != "f" or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError("the parts of the sparse matrix have the wrong types")
    return sparse.csr_array((data, indices, indptr), shape=shape)


def _open_text(folder: Path, meta: dict[str, Any]) -> MappedText | None:
    if not (folder / "text_offsets.npy").exists():
        return None
    offsets = _map(folder / "text_offsets.npy")
    size = (folder / "text.bin").stat().st_size
    if len(offsets) != meta["n_examples"] + 1 or offsets[-1] != size:
        raise ValueError("text.bin and text_offsets.npy do not go together")
    content = np.memmap(folder / "text.bin", np.uint8, "r") if size else np.empty(0, np.uint8)
    return MappedText(content, offsets)


def _open_labels(folder: Path, meta: dict[str, Any]) -> NDArray | None:
    if not (folder / "y.npy").exists():
        return None
    y = _map(folder / "y.npy")
    return np.array(meta["classes"])[y] if "classes" in meta else y


def _map(path: Path) -> NDArray:
    array: NDArray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


# --- writing safely ------------------------------------------------------------------------------


@contextmanager
def _new_directory(path: Any, overwrite: bool) -> Iterator[Path]:
    """A directory to fill, which gets its name when all went well."""
    target = Path(path)
    if target.exists():
        if not overwrite:
            raise FileExistsError(f"{target} exists: choose another name, or overwrite=True.")
        if not (target / META).is_file():
            raise FileExistsError(f"{target} exists and is not a data directory: left alone.")
    folder = fresh_name(target)
    folder.mkdir()
    try:
        yield folder
        if target.exists():
            old = fresh_name(target)  # Windows renames to no existing name
            os.replace(target, old)
            os.replace(folder, target)
            shutil.rmtree(old)
        else:
            os.replace(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_meta(folder: Path, meta: dict[str, Any]) -> None:
    with open(folder / META, "w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, "version": VERSION, **meta}, file, indent=1)
        sync(file)


def _save(path: Path, array: NDArray) -> None:
    with open(path, "wb") as file:
        np.save(file, array, allow_pickle=False)
        sync(file)
