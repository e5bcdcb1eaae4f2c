"""From files to examples: reading, choosing parts, and making data fit a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polymargin.cli._command import option
from polymargin.cli._errors import CommandError, Exit, reading
from polymargin.cli._output import Output
from polymargin.io import FORMATS, Dataset, detect_format, read_data

TABLES = ("csv", "tsv", "jsonl", "parquet")
SPLIT_FIELD = "split"


@dataclass(frozen=True)
class DataOptions:
    """How to read the files of a command; see :func:`data_options`."""

    format: str | None = None
    label: str | None = None
    text: str | None = None
    index_base: str = "auto"
    dtype: Any = np.float64

    @property
    def label_column(self) -> str | int | None:
        """The label column; a number is a position, counted from 1, or from the end if negative."""
        if self.label is None or not self.label.removeprefix("-").isdigit():
            return self.label
        position = int(self.label)
        return position - 1 if position > 0 else position


def data_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that reads data."""
    for decorator in (
        option("Data", "--format", type=click.Choice(FORMATS), help="[by the name or content]"),
        option(
            "Data",
            "--label",
            metavar="COLUMN",
            help="Column of the labels, by name or number. [label, y, target or class; else of a "
            "CSV the last]",
        ),
        option("Data", "--text", metavar="COLUMN", help="Column that holds text. [text, if any]"),
        option(
            "Data",
            "--index-base",
            type=click.Choice(["auto", "0", "1"]),
            default="auto",
            help="Number of the first feature in svmlight files; auto: 0 if it occurs.",
        ),
    )[::-1]:
        function = decorator(function)
    return function


def parse_split(split: str | None) -> tuple[str, list[str]] | None:
    """``FIELD=VALUE,VALUE`` or ``VALUE`` as a field and values."""
    if split is None:
        return None
    field, equals, values = split.rpartition("=")
    if equals and not field:
        raise CommandError(f"--split {split}: the field before = is missing", Exit.USAGE)
    return (field or SPLIT_FIELD), values.split(",")


def read_examples(
    path: str,
    options: DataOptions,
    *,
    split: str | None = None,
    features: list[str] | None = None,
    output: Output | None = None,
) -> tuple[Dataset, str]:
    """Read a file; errors carry its name, warnings are printed.

    Parameters
    ----------
    path : str
        The file, or "-".
    options : DataOptions
    split : str, optional
        The part to read, as `parse_split` takes it.
    features : list of str, optional
        For tables: the columns to take as features.
    output : Output, optional
        Prints the warnings of the reader.

    Returns
    -------
    data : Dataset
        The examples. Features of svmlight files keep their numbers: see `number_features`.
    kind : str
        The format of the file.
    """
    with reading(path), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        kind = options.format or detect_format(path)
        arguments: dict[str, Any] = {"format": kind, "dtype": options.dtype}
        if kind in TABLES:
            arguments |= {"label": options.label_column, "text": options.text}
            arguments["features"] = features
        elif options.text is not None or options.label is not None:
            given = "--text" if options.text is not None else "--label"
            raise CommandError(
                f"{given} names a column, but {path} in {kind} format has none", Exit.USAGE
            )
        if kind == "svmlight":
            arguments["zero_based"] = True  # indices as they are; see number_features
        arguments |= _selection(split, kind, path)
        data = read_data(path, **arguments)
    for warning in caught:
        if output is not None:
            output.warn(_as_option(str(warning.message)))
    return data, kind


def _selection(split: str | None, kind: str, path: str) -> dict[str, Any]:
    chosen = parse_split(split)
    if chosen is None:
        return {}
    field, values = chosen
    if kind in TABLES:
        return {"where": {field: values}}
    if kind == "npz" and field in (SPLIT_FIELD, "part") and len(values) == 1:
        return {"part": values[0]}
    raise CommandError(
        f"--split {split}: {path} in {kind} format has no field {field!r} to choose by", Exit.USAGE
    )


def _as_option(message: str) -> str:
    """The reader's advice, in terms of the command line."""
    return message.replace("Give label= to choose, label=False for none.", "Choose with --label.")


def number_features(parts: list[Dataset], base: int | str) -> tuple[list[Dataset], int]:
    """Let the first feature be column 0 in svmlight data read with the indices as they are.

    Parameters
    ----------
    parts : list of Dataset
        Data of one numbering: training and test files.
    base : {0, 1, "0", "1", "auto"}
        The number of the first feature. "auto": 0 if it occurs in any part.

    Returns
    -------
    parts : list of Dataset
        The data, renumbered.
    base : int
        The number of the first feature.
    """
    begins_at_zero = [part for part in parts if (part.X.indices == 0).any()]
    if base == "auto":
        base = 0 if begins_at_zero else 1
    if int(base) == 0:
        return parts, 0
    if begins_at_zero:
        raise CommandError(
            f"{begins_at_zero[0].source}: there is a feature 0, but features are numbered from 1 "
            "(as in the training file, or by --index-base)"
        )
    return [_from_one(part) for part in parts], 1


def _from_one(part: Dataset) -> Dataset:
    X = part.X
    shape = (X.shape[0], max(0, X.shape[1] - 1))
    return replace(part, X=sparse.csr_array((X.data, X.indices - 1, X.indptr), shape=shape))


def need_labels(data: Dataset) -> NDArray:
    """The labels of a data set that must have some."""
    if data.y is None:
        raise CommandError(f"{data.source} has no labels: name their column with --label")
    return data.y


def like_labels(y: NDArray, classes: NDArray) -> NDArray:
    """Labels in the type of a model's classes, where they can be read as such.

    The label 3 of one file and "3" of another are the same class.
    """
    if classes.dtype.kind in "OUS" and y.dtype.kind not in "OUS":
        return np.array([_written(label) for label in y.tolist()], dtype=object)
    if classes.dtype.kind in "iufb" and y.dtype.kind in "OUS":
        return np.array([_number_or_word(label) for label in y.tolist()], dtype=object)
    return y


def _number_or_word(label: Any) -> Any:
    try:
        number = float(label)
    except ValueError:
        return label
    return int(number) if number.is_integer() else number


def _written(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def fit_width(X: Any, n_features: int, source: str, output: Output) -> Any:
    """X with the model's number of features.

    Sparse data may have fewer (the others are zero) or more (the model never saw them, so they say
    nothing); a dense table of another width is most likely another table.
    """
    width = X.shape[1]
    if width == n_features:
        return X
    if not sparse.issparse(X):
        raise CommandError(
            f"{source} has {width:,} features, the model was trained on {n_features:,}"
        )
    if width < n_features:
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    known = X[:, :n_features]
    lost = X.nnz - known.nnz
    if lost:
        output.warn(
            f"{source}: {lost:,} values of features beyond the model's {n_features:,} are ignored: "
            "it never saw them in training"
        )
    return known
