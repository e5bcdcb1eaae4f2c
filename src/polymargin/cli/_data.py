"""From files to examples: reading, choosing parts, and making data fit a model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.cli._command import setting
from polymargin.cli._errors import CommandError, Exit, reading
from polymargin.cli._output import Output
from polymargin.fitted import Features
from polymargin.io import FORMATS, Dataset, detect_format, read_data

TABLES = ("csv", "tsv", "jsonl", "parquet")
SPLIT_FIELD = "split"
LABEL_HELP = (
    "Column of the labels, by name or number. [label, y, target or class; else of a CSV the last]"
)
WHERE = "[FIELD=]VALUE,..."
SPLIT_HELP = "Only rows with this value. [FIELD: split]"
BASE_HELP = "Number of the first feature in svmlight files; auto: 0 if it occurs."


@dataclass(frozen=True)
class DataOptions:
    """How to read the files of a command."""

    format: str | None = setting(
        "Data", "--format", type=click.Choice(FORMATS), help="[by the name or content]"
    )
    label: str | None = setting("Data", "--label", metavar="COLUMN", help=LABEL_HELP)
    text: str | None = setting(
        "Data", "--text", metavar="COLUMN", help="Column that holds text. [text, if any]"
    )
    index_base: str = setting(
        "Data",
        "--index-base",
        type=click.Choice(["auto", "0", "1"]),
        default="auto",
        help=BASE_HELP,
    )
    split: str | None = setting("Data", "--split", metavar=WHERE, help=SPLIT_HELP)

    @property
    def label_column(self) -> str | int | None:
        """The label column; a number is a position, counted from 1, or from the end if negative."""
        if self.label is None or not self.label.removeprefix("-").isdigit():
            return self.label
        position = int(self.label)
        return position - 1 if position > 0 else position


def read_examples(
    path: str,
    options: DataOptions,
    *,
    features: list[str] | None = None,
    dtype: DTypeLike = np.float64,
    output: Output | None = None,
) -> tuple[Dataset, str]:
    """Read a file ("-": standard input) and say its format; errors carry its name.

    `features` are the columns to take of a table; `output` prints the reader's warnings. Features
    of svmlight files keep their numbers: see `number_features`.
    """
    with reading(path), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        kind = options.format or detect_format(path)
        arguments: dict[str, Any] = {"format": kind, "dtype": dtype}
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
        if options.split is not None:
            arguments |= _selection(options.split, kind, path)
        data = read_data(path, **arguments)
    for warning in caught:
        if output is not None:  # the reader's advice, in terms of the command line
            advice = "Give label= to choose, label=False for none."
            output.warn(str(warning.message).replace(advice, "Choose with --label."))
    return data, kind


def _selection(split: str, kind: str, path: str) -> dict[str, object]:
    """What `read_data` takes to choose examples."""
    field, equals, chosen = split.rpartition("=")
    if equals and not field:
        raise CommandError(f"--split {split}: the field before = is missing", Exit.USAGE)
    field, values = field or SPLIT_FIELD, chosen.split(",")
    if kind in TABLES:
        return {"where": {field: values}}
    if kind == "npz" and field in (SPLIT_FIELD, "part") and len(values) == 1:
        return {"part": values[0]}
    raise CommandError(
        f"--split {split}: {path} in {kind} format has no field {field!r} to choose by", Exit.USAGE
    )


def number_features(parts: list[Dataset], base: str) -> tuple[list[Dataset], int]:
    """Let the first feature be column 0 in svmlight data read with the indices as they are.

    The parts are of one numbering. `base` is the number of the first feature, or "auto": 0 if that
    occurs in any part. Returns the parts, renumbered, and the base.
    """
    begins_at_zero = [part for part in parts if (part.X.indices == 0).any()]
    if base == "0" or (base == "auto" and begins_at_zero):
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


def describe_data(data: Dataset) -> str:
    """How many examples of what, and how many classes."""
    what = "texts" if data.X is None else f"examples of {data.X.shape[1]:,} features"
    classes = "no labels" if data.y is None else f"{len(np.unique(data.y)):,} classes"
    return f"{data.n_examples:,} {what}, {classes}"


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


def _number_or_word(label: str) -> str | float:
    try:
        number = float(label)
    except ValueError:
        return label
    return int(number) if number.is_integer() else number


def _written(label: object) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def fit_width(X: Features, n_features: int, source: str, output: Output) -> Features:
    """X with the model's number of features.

    Sparse data may have fewer (the others are zero) or more (the model never saw them, so they say
    nothing); a dense table of another width is most likely another table.
    """
    width = X.shape[1]
    if width == n_features:
        return X
    if isinstance(X, np.ndarray):
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
