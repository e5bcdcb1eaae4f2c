"""A model as the commands use it: a classifier, and what comes before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import Pipeline

from polymargin.cli._data import (
    DataOptions,
    fit_width,
    number_features,
    read_examples,
)
from polymargin.cli._errors import CommandError, reading
from polymargin.cli._output import Output
from polymargin.evaluation import BLOCK, score_matrix
from polymargin.fitted import split_pipeline
from polymargin.io import Dataset

BASE_ATTRIBUTE = "svmlight_base_"  # of a classifier: the number of the first feature in its file


class Model:
    """A fitted estimator or pipeline that predicts from data files.

    Attributes
    ----------
    estimator : estimator
        What `polymargin.load` gives.
    classifier : estimator
        Its last step.
    reads_text : bool
        Whether its first step takes text.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.before, self.classifier = split_pipeline(estimator)
        first = estimator.steps[0][1] if isinstance(estimator, Pipeline) else estimator
        self.reads_text = hasattr(first, "vocabulary_") or isinstance(first, HashingVectorizer)
        self._first = first

    @classmethod
    def load(cls, path: str) -> Model:
        """Read a model file."""
        import polymargin

        with reading(path):
            return cls(polymargin.load(path))

    @property
    def classes(self) -> NDArray:
        """The labels."""
        classes: NDArray = self.classifier.classes_
        return classes

    def read(self, path: str, options: DataOptions, split: str | None, output: Output) -> Dataset:
        """Read a file for this model; columns of tables are matched by name."""
        names = getattr(self._first, "feature_names_in_", None)
        columns = None if names is None or self.reads_text else [str(name) for name in names]
        data, kind = read_examples(path, options, split=split, features=columns, output=output)
        if kind == "svmlight":
            base = options.index_base
            if base == "auto":
                base = getattr(self.classifier, BASE_ATTRIBUTE, base)
            data = number_features([data], base)[0][0]
        return data

    def features(self, data: Dataset, output: Output) -> Any:
        """What the classifier takes, a row per example; says what is unusual about the data."""
        if self.reads_text:
            if data.text is None:
                raise CommandError(
                    f"the model reads text, but {data.source} holds numbers; name the column of "
                    "the text with --text"
                )
            X = self._transform(list(data.text))
            empty = int(np.count_nonzero(np.diff(X.indptr) == 0))
            if empty:
                output.warn(
                    f"{empty:,} of {data.n_examples:,} texts have no word that the model knows; "
                    "their predictions say nothing about them"
                )
            return X
        if data.X is None:
            raise CommandError(
                f"the model reads numbers, but {data.source} holds text; train with --text for a "
                "model that reads text"
            )
        X = fit_width(data.X, int(self._first.n_features_in_), data.source, output)
        return self._transform(X)

    def _transform(self, X: Any) -> Any:
        return X if self.before is None else self.before.transform(X)

    def scores(self, X: Any) -> Iterator[NDArray]:
        """Scores of the classes, block after block of examples."""
        rows = max(1, BLOCK // len(self.classes))
        for first in range(0, X.shape[0], rows):
            yield score_matrix(self.classifier, X[first : first + rows])
