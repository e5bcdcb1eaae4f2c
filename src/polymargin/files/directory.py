"""A directory of .npy files that opens instantly, whatever its size: arrays are memory-mapped.

``meta.json`` says what there is; ``X.npy``, or ``data.npy``, ``indices.npy`` and ``indptr.npy``,
hold the features; ``y.npy`` the labels, or for words their positions in ``classes`` of
``meta.json``; ``weight.npy`` their weights, if they have any; ``text.bin`` with
``text_offsets.npy`` the texts in UTF-8. A directory is written under another name and then renamed,
so that there never is half of one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import overload

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.files.dataset import DataFileError, Dataset, Matrix
from polymargin.files.npz import UNSOUND
from polymargin.files.streams import errors_in, name_of
from polymargin.files.svmlight import ZeroBased, extent, filled, new_parser, whole_labels
from polymargin.storage import (
    Json,
    StrPath,
    check_expansion,
    fresh_name,
    naming,
    remove_folder,
    sync,
)

FORMAT = "polymargin-data"
VERSION = 1
META = "meta.json"
_KEPT = ("n_examples", "source", "label_name", "feature_names")
_PARTS = ("data", "indices", "indptr")


class MappedText(Sequence[str]):
    """Texts in a file, decoded when they are asked for."""

    def __init__(self, content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._content, self._offsets = content, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        return bytes(self._content[self._offsets[i] : self._offsets[i + 1]]).decode()


def write_directory(dataset: Dataset, path: StrPath, *, overwrite: bool = False) -> Path:
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

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from polymargin.io import Dataset, write_directory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "eye.data")
    ...     _ = write_directory(Dataset(X=np.eye(3), y=np.arange(3)), path)
    ...     print(sorted(os.listdir(path)))
    ['X.npy', 'meta.json', 'y.npy']
    """
    with new_directory(path, overwrite) as folder:
        meta = {name: getattr(dataset, name) for name in _KEPT}
        if dataset.X is not None:
            meta |= _write_features(folder, dataset.X)
        if dataset.text is not None:
            _write_text(folder, dataset.text)
        if dataset.y is not None:
            meta |= _write_labels(folder, dataset.y)
        if dataset.weight is not None:
            _save(folder / "weight.npy", np.asarray(dataset.weight, np.float64))
        write_meta(folder, meta)
    return Path(path)


def _write_features(folder: Path, X: Matrix) -> dict[str, Json]:
    if not sparse.issparse(X):
        _save(folder / "X.npy", np.ascontiguousarray(X))
        return {"layout": "dense", "shape": list(X.shape)}
    X = sparse.csr_array(X)
    X.sum_duplicates()
    for part in _PARTS:
        _save(folder / f"{part}.npy", getattr(X, part))
    return {"layout": "csr", "shape": list(X.shape)}


def _write_text(folder: Path, text: Sequence[str]) -> None:
    offsets = np.zeros(len(text) + 1, np.int64)
    with open(folder / "text.bin", "wb") as file:
        for i, one in enumerate(text):
            offsets[i + 1] = offsets[i] + file.write(one.encode())
        sync(file)
    _save(folder / "text_offsets.npy", offsets)


def _write_labels(folder: Path, y: NDArray) -> dict[str, Json]:
    if y.dtype.kind in "biuf":
        _save(folder / "y.npy", y)
        return {}
    classes, codes = np.unique(y, return_inverse=True)
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise ValueError("Labels must be numbers or strings to be written.")
    _save(folder / "y.npy", codes.astype(np.int32))
    return {"classes": classes.tolist()}


def convert_svmlight(
    path: StrPath,
    out: StrPath,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    rows: int = 100_000,
    overwrite: bool = False,
) -> Path:
    r"""Convert an svmlight file of any size to such a directory, in one pass and bounded memory.

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

    Examples
    --------
    >>> import os, tempfile
    >>> from polymargin.io import convert_svmlight, open_directory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.svm")
    ...     _ = open(path, "w").write("1 1:0.5 3:2\n2 2:1\n")
    ...     _ = convert_svmlight(path, os.path.join(folder, "small.data"))
    ...     print(open_directory(os.path.join(folder, "small.data")).X.shape)
    (2, 3)
    """
    with errors_in(path), new_directory(out, overwrite) as folder:
        parser = new_parser(dtype, n_features, zero_based)
        with (
            Vector(folder / "data.npy", dtype) as data,
            Vector(folder / "indices.npy", np.int64) as indices,
            Vector(folder / "indptr.npy", np.int64) as indptr,
            Vector(folder / "y.npy", np.float64) as y,
        ):
            indptr.append(np.zeros(1, np.int64))
            for _ in filled(parser, path, rows):
                labels, pointers, columns, values = parser.take()
                indptr.append(pointers[1:] + data.length)
                indices.append(columns)
                data.append(values)
                y.append(labels)
        if y.length == 0:
            raise DataFileError("the file holds no examples")
        first, width = extent(parser, zero_based, n_features)
        index_type = np.int64 if max(width, data.length) >= 2**31 else np.int32
        rewrite(indices.path, index_type, minus=first)
        rewrite(indptr.path, index_type)
        if all(whole_labels(part).dtype == np.int64 for part in _pieces(y.path)):
            rewrite(y.path, np.int64)
        meta = {"layout": "csr", "shape": [y.length, width], "n_examples": y.length}
        meta["index_base"] = first
        write_meta(folder, {**meta, "source": name_of(path)})
    return Path(out)


class Vector:
    """A vector, or rows of so many columns, in a .npy file that grows.

    Its header, of one size always, is written twice; `last` is the last number so far.
    """

    def __init__(self, path: Path, dtype: DTypeLike, columns: int | None = None) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0
        self._rest = () if columns is None else (columns,)
        self.last = 0

    def __enter__(self) -> Vector:
        self._file = open(self.path, "wb")
        self._write_header()
        return self

    def append(self, values: NDArray) -> None:
        """Add entries."""
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)
        self.length += len(values)
        if values.ndim == 1 and len(values):
            self.last = values[-1]

    def _write_header(self) -> None:
        shape, descr = (self.length, *self._rest), npy.dtype_to_descr(self.dtype)
        fields = {"descr": descr, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._file, fields)

    def __exit__(self, *error: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()
            sync(self._file)


def rewrite(path: Path, dtype: DTypeLike, minus: int = 0) -> None:
    """Replace a vector by one of another type, piece by piece."""
    fresh = path.with_suffix(".new")
    with Vector(fresh, dtype) as new:
        for part in _pieces(path):
            new.append(part - minus)
    os.replace(fresh, path)


def _pieces(path: Path) -> Iterator[NDArray]:
    """The vector in a .npy file, a million numbers at a time."""
    with open(path, "rb") as file:
        npy.read_magic(file)
        _, _, dtype = npy.read_array_header_1_0(file)
        while part := file.read(dtype.itemsize << 20):  # fromfile makes a TypeError of Ctrl-C
            yield np.frombuffer(part, dtype)


# --- opening -------------------------------------------------------------------------------------


def open_directory(path: StrPath) -> Dataset:
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

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from polymargin.io import Dataset, open_directory, write_directory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "eye.data")
    ...     _ = write_directory(Dataset(X=np.eye(3), y=np.arange(3)), path)
    ...     print(open_directory(path).y.tolist())
    [0, 1, 2]
    """
    folder = Path(path)
    with errors_in(path):
        meta = _read_meta(folder)
        try:
            return Dataset(
                X=_open_features(folder, meta),
                y=_open_labels(folder, meta),
                weight=_map(folder / "weight.npy") if (folder / "weight.npy").exists() else None,
                text=_open_text(folder, meta),
                feature_names=meta.get("feature_names"),
                source=name_of(path),
                label_name=meta.get("label_name"),
            )
        except (*UNSOUND, IndexError, FileNotFoundError) as error:
            raise DataFileError(f"the directory is damaged: {error}") from error


def _read_meta(folder: Path) -> dict[str, Json]:
    if not folder.exists():
        raise FileNotFoundError(f"{folder} does not exist.")
    if not (folder / META).is_file():
        raise DataFileError(
            f"not a data directory: it has no {META}, which convert and write_directory write"
        )
    try:
        meta = json.loads((folder / META).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{META} is damaged: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise DataFileError(f"{META} does not describe a data directory")
    if meta.get("version") != VERSION:
        raise DataFileError(
            f"version {meta.get('version')} of the format, where this polymargin reads {VERSION}: "
            "update polymargin"
        )
    return meta


def _open_features(folder: Path, meta: dict[str, Json]) -> Matrix:
    if "layout" not in meta:
        return None
    shape = tuple(meta["shape"])
    if meta["layout"] == "dense":
        X = _map(folder / "X.npy")
        if X.shape != shape or X.dtype.kind != "f":
            raise ValueError("X.npy is not the matrix that it should be")
        return X
    data, indices, indptr = (_map(folder / f"{part}.npy") for part in _PARTS)
    if data.dtype.kind != "f" or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError("the parts of the sparse matrix have the wrong types")
    return sparse.csr_array((data, indices, indptr), shape=shape)


def _open_text(folder: Path, meta: dict[str, Json]) -> MappedText | None:
    if not (folder / "text_offsets.npy").exists():
        return None
    offsets = _map(folder / "text_offsets.npy")
    size = (folder / "text.bin").stat().st_size
    if len(offsets) != meta["n_examples"] + 1 or offsets[-1] != size:
        raise ValueError("text.bin and text_offsets.npy do not go together")
    content = np.memmap(folder / "text.bin", np.uint8, "r") if size else np.empty(0, np.uint8)
    return MappedText(content, offsets)


def _open_labels(folder: Path, meta: dict[str, Json]) -> NDArray | None:
    if not (folder / "y.npy").exists():
        return None
    y = _map(folder / "y.npy")
    if "classes" not in meta:
        return y
    classes = meta["classes"]
    if not isinstance(classes, list) or not all(type(label) is str for label in classes):
        raise ValueError("classes is not a list of words")
    if y.ndim != 1 or y.dtype.kind not in "iu" or not ((y >= 0) & (y < len(classes))).all():
        raise ValueError("y.npy has numbers that are none of the classes")
    longest = max(map(len, classes), default=0)  # which every label is padded to
    size = sum((folder / name).stat().st_size for name in ("y.npy", META))
    check_expansion("the labels", 4 * longest * (len(y) + len(classes)), size)
    return np.array(classes, dtype=np.str_)[y]


def _map(path: Path) -> NDArray:
    array: NDArray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


# --- writing safely ------------------------------------------------------------------------------


@contextmanager
def new_directory(path: StrPath, overwrite: bool) -> Iterator[Path]:
    """A directory to fill, which gets its name when all went well."""
    target = Path(path)
    if target.exists():
        if not overwrite:
            raise FileExistsError(f"{target} exists: choose another name, or overwrite=True.")
        if not (target / META).is_file():
            raise FileExistsError(f"{target} exists and is not a data directory: left alone.")
    folder, old = fresh_name(target), fresh_name(target)
    try:
        with naming(target, folder):
            folder.mkdir()
            yield folder
            _move(folder, target, old)
            remove_folder(old)
    finally:  # whatever Ctrl-C came into, the removal above included
        remove_folder(folder)
        remove_folder(old)


def _move(folder: Path, target: Path, old: Path) -> None:
    """Let a folder take the name of another, which comes back if that cannot be."""
    try:
        if target.exists():
            os.replace(target, old)  # Windows renames to no existing name
        os.replace(folder, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.replace(old, target)
        raise


def write_meta(folder: Path, meta: dict[str, Json]) -> None:
    """Say what there is."""
    with open(folder / META, "w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, "version": VERSION, **meta}, file, indent=1)
        sync(file)


def _save(path: Path, array: NDArray) -> None:
    values = np.ascontiguousarray(array)
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(values))
        file.write(values.reshape(-1).view(np.uint8).data)  # np.save does not say why it failed
        sync(file)
