"""One function that reads every kind of data file."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polymargin.files.columns import Label, Wanted, Where
from polymargin.files.dataset import DataFileError, Dataset
from polymargin.files.delimited import read_delimited
from polymargin.files.directory import open_directory
from polymargin.files.json_lines import read_json_lines
from polymargin.files.npz import read_npz, with_features
from polymargin.files.parquet import read_parquet
from polymargin.files.streams import FORMATS, detect_format, errors_in, name_of, open_bytes
from polymargin.files.svmlight import ZeroBased, read_svmlight
from polymargin.files.tables import Source, as_dataset
from polymargin.storage import StrPath


def read_data(
    path: StrPath,
    *,
    format: str | None = None,
    label: Label = None,
    text: str | None = None,
    features: Sequence[str] | None = None,
    where: Where = None,
    table: bool = False,
    strings: Collection[str] = (),
    need_label: bool = True,
    part: str | None = None,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    labels: Sequence[str] | StrPath | None = None,
    dtype: DTypeLike = np.float64,
) -> Dataset:
    """Read examples from a file.

    Parameters
    ----------
    path : path or "-"
        The file; "-" is standard input. Files compressed with gzip, bzip2, xz or zstd are
        recognised by their content. Tables and zstd need ``polymargin[tables]``.
    format : {"svmlight", "npz", "csv", "tsv", "parquet", "jsonl", "text", "directory"}, \
            default=None
        None: by the name of the file, or by its content where the name does not tell. "text" is a
        text on each line, without labels.
    label : str, int or False, default=None
        Tables: the column of the labels, by name or by position. None is the column named
        "label", "y", "target" or "class"; without such a one, the last column of CSV and TSV (with
        a warning that says so), and no labels otherwise. False: there are no labels.
    text : str, default=None
        Tables: the column that holds text, if the examples are texts. None: the column named
        "text", if there is one.
    features : sequence of str, default=None
        Tables: the columns that are features, in this order. None: all that remain.
    where : mapping, default=None
        Tables: keep only rows in which these columns have this value, or one of these values:
        ``where={"split": ["train", "val"]}``.
    table : bool, default=False
        Tables: give the features as `table`, with columns of all kinds, in place of `X` or `text`.
    strings : collection of str, default=()
        Tables: columns whose values are to be strings, as they are written in CSV: a code such as
        ``007`` is a number otherwise.
    need_label : bool, default=True
        Tables: False, if a file without the column `label` has no labels.
    part : str, default=None
        Archives: read ``part_X`` and ``part_y`` instead of ``X`` and ``y``, for files with parts
        such as "train" and "test".
    n_features : int, default=None
        The number of features; None is what the file shows. Missing ones are zero, more are an
        error.
    zero_based : bool or "auto", default="auto"
        svmlight: whether the first feature has index 0. "auto": if index 0 occurs in the file.
    labels : sequence of str, or path of a JSON file with such a list, default=None
        Names for labels that are numbers: the label i becomes ``labels[i]``.
    dtype : dtype, default=float64
        Type of the features, float32 or float64. (A directory keeps its own.)

    Returns
    -------
    Dataset
        With `X`, `text` or `table`, and `y` where there are labels.

    Raises
    ------
    DataFileError
        For a file that is not what it should be; with the place, as far as there is one.
    FileNotFoundError, PermissionError, ...
        What the system says about the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from polymargin.io import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.svm")
    ...     _ = open(path, "w").write("1 1:0.5 3:2")
    ...     data = read_data(path)
    >>> data.X.toarray().tolist(), data.y.tolist()
    ([[0.5, 0.0, 2.0]], [1])
    """
    kind = detect_format(path) if format is None else format
    wanted = Wanted(label, text, features, where, name_of(path), table, strings, need_label)
    _refuse_unused(kind, wanted, part)
    with errors_in(path):
        match kind:
            case "svmlight":
                data = read_svmlight(
                    path, n_features=n_features, zero_based=zero_based, dtype=dtype
                )
            case "npz":
                data = read_npz(path, part=part, n_features=n_features, dtype=dtype)
            case "csv" | "tsv" | "jsonl" | "parquet":
                data = _read_table(kind, path, wanted, dtype)
            case "text":
                data = Dataset(text=_read_lines(path), source=name_of(path))
            case "directory":
                data = open_directory(path)
            case _:
                raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
        if data.n_examples == 0:
            raise DataFileError("the file holds no examples")
        if data.X is not None and n_features is not None:
            X = with_features(data.X, n_features)
            data = data if X is data.X else replace(data, X=X, feature_names=None)
        if labels is not None:
            data = replace(data, y=_named(data.y, labels))
    if label is False and data.y is not None:
        data = replace(data, y=None, label_name=None)
    return data


def _read_table(kind: str, path: StrPath, wanted: Wanted, dtype: DTypeLike) -> Dataset:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}.")
    if wanted.table and wanted.text is not None:
        raise ValueError("With table=True, text is a column of the table: leave text= out.")
    source = Source(path)
    if kind == "jsonl":
        found = read_json_lines(source, wanted)
    elif kind == "parquet":
        found = read_parquet(source, wanted)
    else:
        found = read_delimited(source, wanted, "\t" if kind == "tsv" else None)
    return as_dataset(found, wanted, dtype)


def _read_lines(path: StrPath) -> list[str]:
    """A text per line; empty lines at the end are none."""
    with open_bytes(path) as stream:
        try:
            lines = stream.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise DataFileError(f"not UTF-8 text ({error.reason})") from error
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _refuse_unused(kind: str, wanted: Wanted, part: str | None) -> None:
    """Say so where an argument has no meaning for this format, rather than ignore it."""
    given = [name for name in ("text", "features", "where") if getattr(wanted, name) is not None]
    if wanted.label not in (None, False):
        given.append("label")
    if wanted.table:
        given.append("table")
    if given and kind in ("svmlight", "npz", "directory", "text"):
        raise ValueError(f"{given[0]}= chooses among columns; a file in {kind} format has none.")
    if part is not None and kind != "npz":
        raise ValueError("part= is for .npz files only.")


def _named(y: NDArray | None, labels: Sequence[str] | StrPath) -> NDArray:
    if isinstance(labels, (str, os.PathLike)):
        with open(labels, encoding="utf-8") as file:
            labels = json.load(file)
    names = np.asarray(labels)
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise ValueError("labels must be a list of names.")
    if y is None:
        raise DataFileError("the file has no labels to name")
    if y.dtype.kind not in "iu":
        raise DataFileError(f"labels= names the labels 0, 1, ..., but these are of type {y.dtype}")
    if y.min() < 0 or y.max() >= len(names):
        raise DataFileError(
            f"the labels go from {y.min()} to {y.max()}, but labels= has {len(names)} names, for "
            "0, 1, ..."
        )
    return names[y]
