"""A model as the commands use it: a classifier, and what comes before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from polymargin.cli._data import DataOptions, fit_width, number_features, read_examples
from polymargin.cli._errors import CommandError, reading
from polymargin.cli._output import Output
from polymargin.fitted import Classifier, Examples, Features, split_pipeline
from polymargin.io import Dataset, inspect_model, load

BASE = "svmlight_base"  # a note in a model file: the number of the first feature in its data


class Model:
    """A fitted estimator or pipeline that predicts from data files.

    `base` is the number of the first feature in the svmlight file that it was trained on, if any.
    """

    def __init__(self, estimator: Classifier, base: object = None) -> None:
        self.estimator, self._base = estimator, base
        self.before, self.classifier = split_pipeline(estimator)
        self._first = self.classifier if self.before is None else self.before.steps[0][1]
        self.reads_text = hasattr(self._first, "vocabulary_") or isinstance(
            self._first, HashingVectorizer
        )

    @classmethod
    def load(cls, path: str) -> Model:
        """Read a model file."""
        with reading(path):
            estimator, notes = load(path), inspect_model(path).notes
        old = getattr(split_pipeline(estimator)[1], f"{BASE}_", None)  # where 0.1.0 kept it
        return cls(estimator, notes.get(BASE, old))

    @property
    def classes(self) -> NDArray:
        """The labels."""
        return self.classifier.classes_

    def read(self, path: str, options: DataOptions, output: Output) -> Dataset:
        """Read a file for this model; columns of tables are matched by name."""
        names = getattr(self._first, "feature_names_in_", None)
        columns = None if names is None or self.reads_text else [str(name) for name in names]
        data, kind = read_examples(path, options, features=columns, output=output)
        if kind == "svmlight":
            base = options.index_base
            if base == "auto" and self._base in (0, 1):
                base = "0" if self._base == 0 else "1"
            data = number_features([data], base)[0][0]
        return data

    def features(self, data: Dataset, output: Output) -> Features:
        """What the classifier takes, a row per example; says what is unusual about the data."""
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

    def _transform(self, X: Examples) -> Features:
        return X if self.before is None else self.before.transform(X)
