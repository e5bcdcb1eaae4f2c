"""From files to examples: reading, choosing parts, and making data fit a model."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from polymargin.cli._command import setting
from polymargin.cli._errors import CommandError, Exit, reading
from polymargin.cli._output import Output
from polymargin.fitted import Features
from polymargin.io import FORMATS, Dataset, detect_format, read_data

if TYPE_CHECKING:
    import pyarrow

TABLES = ("csv", "tsv", "jsonl", "parquet")
SPLIT_FIELD = "split"
LABEL_HELP = (
    "Column of the labels, by name or number. [label, y, target or class; else of a CSV the last]"
)
WHERE = "[FIELD=]VALUE,..."
SPLIT_HELP = "Only rows with this value. [FIELD: split]"
TEXT_HELP = "Column that holds text; may be repeated. [text, if any]"
BASE_HELP = "Number of the first feature in svmlight files; auto: 0 if it occurs."


@dataclass(frozen=True)
class DataOptions:
    """How to read the files of a command."""

    format: str | None = setting(
        "Data", "--format", type=click.Choice(FORMATS), help="[by the name or content]"
    )
    label: str | None = setting("Data", "--label", metavar="COLUMN", help=LABEL_HELP)
    text: tuple[str, ...] = setting(
        "Data", "--text", multiple=True, metavar="COLUMN", help=TEXT_HELP
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


@dataclass(frozen=True)
class Columns:
    """What to read of tables, beside what the options of a command say.

    With `table`, columns of all kinds are read: those of `features` or all. `strings` are read as
    they are written, `text` is the one that holds text, and `label` that of the labels, if it is
    there.
    """

    features: Sequence[str] | None = None
    table: bool = False
    strings: Sequence[str] = ()
    text: str | None = None
    label: str | None = None


EVERYTHING = Columns()


def read_examples(
    path: str,
    options: DataOptions,
    columns: Columns = EVERYTHING,
    *,
    dtype: DTypeLike = np.float64,
    output: Output | None = None,
    kind: str | None = None,
) -> tuple[Dataset, str]:
    """Read a file ("-": standard input) and say its format; errors carry its name.

    `output` prints the reader's warnings. Features of svmlight files keep their numbers: see
    `number_features`. `kind` is the format where it is known.
    """
    with reading(path), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        kind = options.format or kind or detect_format(path)
        arguments: dict[str, Any] = {"format": kind, "dtype": dtype}
        if kind in TABLES:
            label = options.label_column
            arguments |= {"label": columns.label if label is None else label}
            arguments |= {"need_label": label is not None, "text": columns.text}
            arguments |= {"features": columns.features, "table": columns.table}
            arguments |= {"strings": columns.strings}
        elif options.text or options.label is not None:
            given = "--text" if options.text else "--label"
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


def expanded(paths: Sequence[str]) -> list[str]:
    """The files that are meant: patterns that the shell has left alone are looked up."""
    found: list[str] = []
    for path in paths:
        if path == "-" or os.path.exists(path) or not glob.has_magic(path):
            found.append(path)
            continue
        alike = sorted(glob.glob(path, recursive=True))
        if not alike:
            raise CommandError(f"{path}: no file has such a name")
        found += alike
    if found.count("-") > 1:
        raise CommandError("standard input can be read only once", Exit.USAGE)
    return found


def named(paths: Sequence[str]) -> str:
    """Files as messages say them."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Examples of several files, one after the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        if holds(part) != holds(first):
            raise CommandError(f"{part.source} holds {holds(part)}, {first.source} {holds(first)}")
        if (part.y is None) != (first.y is None):
            without = part if part.y is None else first
            raise CommandError(f"{without.source} has no labels, other files have")
    starts = np.cumsum([0, *(part.n_examples for part in parts)])

    def place_of(row: int) -> str:
        i = int(np.searchsorted(starts, row, side="right")) - 1
        part, row = parts[i], row - int(starts[i])
        return f"{part.source}, row {row + 1}" if part.place_of is None else part.place_of(row)

    y = None if first.y is None else _joined_labels([need_labels(part) for part in parts])
    text = None if first.text is None else [one for part in parts for one in part.text or ()]
    return replace(
        first,
        X=None if first.X is None else _joined_rows(parts),
        y=y,
        text=text,
        table=None if first.table is None else _joined_tables(parts),
        weight=None,
        source=named([part.source for part in parts]),
        place_of=place_of,
    )


def holds(data: Dataset) -> str:
    """What the examples are."""
    if data.X is None:
        return "text" if data.table is None else "a table"
    return "numbers" if isinstance(data.X, np.ndarray) else "sparse numbers"


def _joined_labels(parts: Sequence[NDArray]) -> NDArray:
    """Labels of one type: that of the first file, or strings."""
    kinds = {"number" if part.dtype.kind in "iuf" else part.dtype.kind for part in parts}
    if len(kinds) == 1:
        return np.concatenate(parts)
    return np.concatenate([np.array([_written(one) for one in part.tolist()]) for part in parts])


def _joined_rows(parts: Sequence[Dataset]) -> Features:
    widths = {part.X.shape[1] for part in parts}
    if not isinstance(parts[0].X, np.ndarray):
        for part in parts:
            part.X.resize((part.X.shape[0], max(widths)))
        return sparse.csr_array(sparse.vstack([part.X for part in parts]))
    if len(widths) > 1:
        raise CommandError(f"{named([p.source for p in parts])}: the files differ in their columns")
    return np.concatenate([part.X for part in parts])


def _joined_tables(parts: Sequence[Dataset]) -> pyarrow.Table:
    import pyarrow

    names = parts[0].table.column_names
    for part in parts[1:]:
        others = part.table.column_names
        if set(others) != set(names):
            odd = min(set(others) ^ set(names))
            has, lacks = (part, parts[0]) if odd in others else (parts[0], part)
            raise CommandError(f"{has.source} has a column {odd!r}, {lacks.source} has none")
    tables = [part.table.select(names) for part in parts]
    for name in names:  # a column of numbers in one file may be one of strings in the next
        kinds = [table.schema.field(name).type for table in tables]
        is_text = [pyarrow.types.is_string(kind) for kind in kinds]
        if any(is_text) and not all(is_text):
            tables = [
                table.set_column(
                    table.column_names.index(name), name, table.column(name).cast(pyarrow.string())
                )
                for table in tables
            ]
    return pyarrow.concat_tables(tables, promote_options="permissive")


def describe_data(data: Dataset) -> str:
    """How many examples of what, and how many classes."""
    what = "texts" if data.text is not None else "rows"
    if data.X is not None:
        what = f"examples of {data.X.shape[1]:,} features"
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
    if classes.dtype.kind == "b" and y.dtype.kind in "OUS":
        words = {"true": True, "false": False}
        return np.array([words.get(label.lower(), label) for label in y.tolist()], dtype=object)
    if classes.dtype.kind in "OUS" and y.dtype.kind == "b":  # True of JSON, "true" of CSV
        known = {label.lower(): label for label in map(str, classes.tolist())}
        written = [known.get(str(label).lower(), str(label)) for label in y.tolist()]
        return np.array(written, dtype=object)
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
