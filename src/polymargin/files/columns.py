"""Tables: which column is the label, which the text, which are features, and labels as arrays."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polymargin.files.dataset import DataFileError

LABEL_NAMES = ("label", "y", "target", "class")
TEXT_NAME = "text"
MISSING = (  # what other programs write where there is no value
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None"),
)
_INDEX = re.compile(r"__index_level_[0-9]+__")  # where pandas keeps the index of a frame
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Label = str | int | Literal[False] | None
Where = Mapping[str, object] | None


@dataclass(frozen=True)
class Wanted:
    """What the caller asked for; see :func:`polymargin.io.read_data`.

    `strings` are columns that are to be read as they are written, where the format leaves a choice.
    """

    label: Label = None
    text: str | None = None
    features: Sequence[str] | None = None
    where: Where = None
    source: str = ""
    table: bool = False
    strings: Collection[str] = ()
    need_label: bool = True


@dataclass(frozen=True)
class Choice:
    """The columns of a table by their use."""

    label: str | None
    text: str | None
    features: list[str]
    where: dict[str, frozenset[str]] = field(default_factory=dict)
    is_table: bool = False  # features are columns of any kind, not numbers

    @property
    def is_text(self) -> bool:
        """Whether the examples are texts."""
        return self.text is not None

    @property
    def is_numeric(self) -> bool:
        """Whether the examples are rows of numbers."""
        return not self.is_text and not self.is_table

    @property
    def all(self) -> list[str]:
        """Every column that has to be read."""
        names = [*self.where, *self.features]
        return names + [name for name in (self.label, self.text) if name is not None]


def choose(names: Sequence[str], wanted: Wanted, *, last_column: bool) -> Choice:
    """Decide what each column is for.

    With `last_column`, the last one is the label when no name says so.
    """
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise DataFileError(f"several columns are named {repeated[0]!r}")
    where = {name: _values(values) for name, values in (wanted.where or {}).items()}
    text = wanted.text
    if text is None and wanted.features is None and TEXT_NAME in names and not wanted.table:
        text = TEXT_NAME
    label = _label_column(names, wanted, text, last_column)
    if text is not None:
        features = []
    elif wanted.features is not None:
        features = list(wanted.features)
    else:
        index = index_columns(names)
        features = [name for name in names if name not in (label, *where, *index)]
        if index:
            warnings.warn(
                f"{wanted.source}: {_index_words(index)}, where pandas writes the index of a "
                "frame, is left out",
                UserWarning,
                stacklevel=2,
            )
    choice = Choice(label, text, features, where, wanted.table)
    missing = [name for name in choice.all if name not in names]
    if missing:
        raise DataFileError(f"there is no column {missing[0]!r}; the columns are {_listed(names)}")
    if text is None and not features:
        raise DataFileError("no column is left for the features")
    return choice


def _label_column(
    names: Sequence[str], wanted: Wanted, text: str | None, last_column: bool
) -> str | None:
    if wanted.label is False:
        return None
    if isinstance(wanted.label, int):
        if not -len(names) <= wanted.label < len(names):
            raise DataFileError(f"label={wanted.label}, but there are {len(names)} columns")
        return names[wanted.label]
    if wanted.label is not None:
        return wanted.label if wanted.need_label or wanted.label in names else None
    by_lower = {name.lower(): name for name in reversed(names)}
    for name in LABEL_NAMES:
        if name in by_lower and by_lower[name] not in (text, *(wanted.features or ())):
            return by_lower[name]
    if not last_column or text is not None or names[-1] in (wanted.features or ()):
        return None
    warnings.warn(
        f"{wanted.source}: no column is named {', '.join(LABEL_NAMES[:-1])} or {LABEL_NAMES[-1]}; "
        f"the last one, {names[-1]!r}, is taken as the label. Give label= to choose, label=False "
        "for none.",
        UserWarning,
        stacklevel=2,
    )
    return names[-1]


def index_columns(names: Sequence[str]) -> list[str]:
    """The columns in which pandas writes the index of a frame."""
    return [
        name
        for i, name in enumerate(names)
        if _INDEX.fullmatch(name) or (i == 0 and name in ("", "Unnamed: 0"))
    ]


def _index_words(index: Sequence[str]) -> str:
    first, *_ = index
    return f"the column {first!r}" if first else "the first column, which has no name"


def _values(values: object) -> frozenset[str]:
    if isinstance(values, str) or not isinstance(values, Collection):
        values = [values]
    return frozenset(map(str, values))


def _listed(names: Iterable[str], most: int = 20) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def no_rows(choice: Choice, seen: Mapping[str, Collection[str]]) -> DataFileError:
    """The error for a file that has no example, or none that was asked for."""
    if not choice.where:
        return DataFileError("the file holds no examples")
    parts = [f"{name} has the values {_listed(sorted(values))}" for name, values in seen.items()]
    return DataFileError(
        f"no row has the values asked for ({'; '.join(parts) or 'the file is empty'})"
    )


def labels_from_text(labels: Sequence[str], source: str) -> NDArray:
    """Integers if all are written as such, floats if all have a decimal point, else strings."""
    labels = _stripped(labels, source)
    if all(map(_INTEGER.fullmatch, labels)):
        return np.array([int(label) for label in labels], dtype=np.int64)
    if all(map(_DECIMAL.fullmatch, labels)):
        return np.array([float(label) for label in labels])
    return np.array(labels, dtype=np.str_)


def labels_from_values(
    labels: Sequence[object], lines: Sequence[int | None], source: str
) -> NDArray:
    """Labels that have types already (of JSON or Parquet), which must be the same for all."""
    kinds = {bool: "truth values", int: "numbers", float: "numbers", str: "strings"}
    first = kinds.get(type(labels[0])) if len(labels) else "strings"
    for label, line in zip(labels, lines, strict=True):
        kind = kinds.get(type(label))
        if kind is None:
            raise DataFileError(f"the label is {label!r}; expected a string or a number", line=line)
        if kind == "strings" and not str(label).strip():
            raise DataFileError("the label is empty", line=line)
        if kind != first:
            reason = f"the label {label!r} is not of the kind of the labels before ({first})"
            raise DataFileError(reason, line=line)
    if first == "strings":
        return np.array(_stripped([str(label) for label in labels], source), dtype=np.str_)
    y = np.array(labels)
    if y.dtype.kind not in "biuf" or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        raise DataFileError("there are labels too large for a number, or not finite")
    return y


def _stripped(labels: Sequence[str], source: str) -> list[str]:
    """Labels without the spaces around them."""
    spaced = [label for label in labels if label != label.strip()]
    if spaced:
        warnings.warn(
            f"{source}: labels are taken without the spaces around them: {spaced[0]!r} is "
            f"{spaced[0].strip()!r}",
            UserWarning,
            stacklevel=2,
        )
    return [label.strip() for label in labels]
