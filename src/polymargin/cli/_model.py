"""A model as the commands use it: a classifier, and what comes before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from polymargin.cli._data import (
    Columns,
    DataOptions,
    expanded,
    fit_width,
    joined,
    number_features,
    read_examples,
)
from polymargin.cli._errors import CommandError, Exit, reading
from polymargin.cli._output import Output
from polymargin.cli._tables import RowsAsText, located, written_as_strings
from polymargin.fitted import Classifier, Examples, Features, split_pipeline
from polymargin.io import (
    DataFileError,
    Dataset,
    detect_format,
    detect_text_format,
    inspect_model,
    load,
)
from polymargin.tables import TableColumns

# notes in a model file: the number of the first feature in its data, and columns of its table
BASE, LABEL, TEXT = "svmlight_base", "label", "text"
SHOWN = 10  # columns in a message


class Model:
    """A fitted estimator or pipeline that predicts from data files.

    `notes` say what it remembers of the data that it was trained on.
    """

    def __init__(
        self, estimator: Classifier, notes: dict[str, str | int | float | None] | None = None
    ) -> None:
        self.estimator, self._notes = estimator, notes or {}
        self.before, self.classifier = split_pipeline(estimator)
        self._first = self.classifier if self.before is None else self.before.steps[0][1]
        self.reads_text = hasattr(self._first, "vocabulary_") or isinstance(
            self._first, HashingVectorizer
        )

    @property
    def table(self) -> TableColumns | None:
        """The step that reads tables, of a model that does."""
        return self._first if isinstance(self._first, TableColumns) else None

    @classmethod
    def load(cls, path: str) -> Model:
        """Read a model file."""
        with reading(path):
            estimator, notes = load(path), dict(inspect_model(path).notes)
        old = getattr(split_pipeline(estimator)[1], f"{BASE}_", None)  # where 0.1.0 kept it
        notes.setdefault(BASE, old)
        return cls(estimator, notes)

    @property
    def classes(self) -> NDArray:
        """The labels."""
        return self.classifier.classes_

    def read(self, paths: Sequence[str], options: DataOptions, output: Output) -> Dataset:
        """Read files for this model; columns of tables are matched by name."""
        return joined([self._read_one(path, options, output) for path in expanded(paths)])

    def _read_one(self, path: str, options: DataOptions, output: Output) -> Dataset:
        columns, kind = self._columns(options), None
        if self.reads_text and options.format is None:
            with reading(path):
                kind = detect_text_format(path, columns.text or TEXT)
        if self.table is not None and options.format is None:
            kind = self._format_of_table(path, list(self.table.kinds))
        data, kind = read_examples(path, options, columns, output=output, kind=kind)
        if kind == "svmlight":
            base = options.index_base
            if base == "auto" and self._notes.get(BASE) in (0, 1):
                base = "0" if self._notes[BASE] == 0 else "1"
            data = number_features([data], base)[0][0]
        return data

    def _format_of_table(self, path: str, names: list[str]) -> str:
        """The format of a file that must be a table."""
        try:
            with reading(path):
                kind = detect_format(path)
        except CommandError as error:
            if not isinstance(error.__cause__, DataFileError):
                raise
            kind = None
        if kind is not None and kind != "svmlight":
            return kind
        listed = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        raise CommandError(
            f"the model reads tables with the columns {listed}: CSV with a line of names, TSV, "
            f"JSON lines or Parquet; {'standard input' if path == '-' else path} is none of these"
        )

    def _columns(self, options: DataOptions) -> Columns:
        """What to read of tables: the columns that the model was trained on."""
        label = self._notes.get(LABEL)
        label = label if isinstance(label, str) else None
        if self.table is not None:
            if options.text:
                raise CommandError("--text: the model knows which columns hold text", Exit.USAGE)
            strings = written_as_strings(self.table)
            return Columns(list(self.table.kinds), True, strings, label=label)
        if len(options.text) > 1:
            raise CommandError("--text: the model reads one column of text", Exit.USAGE)
        text = self._notes.get(TEXT)
        text = options.text[0] if options.text else text if isinstance(text, str) else None
        names = getattr(self._first, "feature_names_in_", None)
        if names is None or self.reads_text:
            return Columns(text=text, label=label)
        return Columns([str(name) for name in names], text=text, label=label)

    def features(self, data: Dataset, output: Output) -> Features:
        """What the classifier takes, a row per example; says what is unusual about the data."""
        if self.table is not None:
            return self._of_table(data, self.table)
        if not self.reads_text:
            if data.X is None:
                raise CommandError(
                    f"the model reads numbers, but {data.source} holds text; train with --text for "
                    "a model that reads text"
                )
            n_features = int(self._first.n_features_in_)
            return self._transform(fit_width(data.X, n_features, data.source, output))
        if data.text is None:
            raise CommandError(
                f"the model reads text, but {data.source} holds numbers; name the column of the "
                "text with --text"
            )
        X = sparse.csr_array(self._transform(list(data.text)))
        empty = int(np.count_nonzero(np.diff(X.indptr) == 0))
        if empty:
            output.warn(
                f"{empty:,} of {data.n_examples:,} texts have no word that the model knows; their "
                "predictions say nothing about them"
            )
        return X

    def _of_table(self, data: Dataset, first: TableColumns) -> Features:
        if data.table is None and not isinstance(data.X, np.ndarray):
            what = "text" if data.text is not None else "sparse numbers"
            raise CommandError(
                f"the model reads tables with the columns {', '.join(list(first.kinds)[:10])}, but "
                f"{data.source} holds {what}"
            )
        with located(data):
            return self._transform(data.X if data.table is None else data.table)

    def _transform(self, X: Examples) -> Features:
        return X if self.before is None else self.before.transform(X)

    def readable(self, data: Dataset) -> Sequence[str] | None:
        """The examples as a person reads them, where there are words for them."""
        if self.table is None or data.table is None:
            return data.text
        return RowsAsText(data, list(self.table.kinds))
