"""Training for the command line: a classifier and a pipeline from options, and their fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from polymargin.cli._data import need_labels
from polymargin.cli._errors import CommandError, Exit, about
from polymargin.cli._output import Output
from polymargin.cli._tables import located
from polymargin.cli._train_options import TrainOptions
from polymargin.estimators import KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC
from polymargin.evaluation import Evaluation, compare, percent
from polymargin.fitted import Classifier, Examples
from polymargin.io import Dataset
from polymargin.solvers import DualSolver, KernelSolver
from polymargin.tables import Column, table_steps

Trained = LinearMulticlassSVC | KernelMulticlassSVC | LaRankClassifier
Steps = list[tuple[str, BaseEstimator]]


@dataclass
class Fit:
    """A trained model and how its training went."""

    model: Classifier  # the classifier, or a pipeline that ends in it
    classifier: Trained
    seconds: float = 0.0  # without reading and preparing the data
    interrupted: bool = False  # by Ctrl-C; the model is then the best certified one so far
    warning: str | None = None  # why it did not converge
    others: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """How it ended."""
        if self.interrupted:
            return "interrupted"
        return "converged" if self.warning is None else "not converged"


class Fold(NamedTuple):
    """What was found on a fold, and why the model that was tried there did not converge."""

    found: Evaluation
    warning: str | None


def make_classifier(o: TrainOptions) -> Trained:
    """A classifier from those options of `train` that are parameters of it."""
    kind: type[Trained] = LinearMulticlassSVC if o.linear else KernelMulticlassSVC
    others = {"checkpoint"}  # that comes later: not while cross-validating
    if o.online:
        kind, others = LaRankClassifier, {"tol"}  # --tol counts for the certified ones only
    names = kind().get_params(deep=False).keys() - others
    given = {name: value for name, value in vars(o).items() if name in names and value is not None}
    classifier = kind(**given)
    if o.time_limit is not None:
        solver = DualSolver if o.linear else KernelSolver
        classifier.set_params(solver=solver(time_limit=o.time_limit))
    return classifier


def preparation(
    data: Dataset, options: TrainOptions, dtype: DTypeLike, columns: Sequence[Column] = ()
) -> Steps:
    """Steps before the classifier; those for text already give unit rows.

    `columns` say what each column of a table is for.
    """
    scale = None if options.scale == "none" else options.scale
    if data.text is not None:
        if scale is not None:
            raise CommandError("--scale is for numeric features, not for text", Exit.USAGE)
        return _text_steps(options, dtype)
    steps: Steps = []
    dense = not sparse.issparse(data.X)
    if scale == "minmax" and not dense:
        raise CommandError("--scale minmax would fill sparse data; use maxabs", Exit.USAGE)
    scaler = None
    if scale is not None:
        scalers = {"standard": StandardScaler(with_mean=dense), "minmax": MinMaxScaler()}
        scaler = scalers.get(scale, MaxAbsScaler())
    if data.table is not None:
        steps += table_steps(
            columns,
            scaler=StandardScaler() if options.scale is None else scaler,
            words=lambda: _words(options, dtype),
            dtype=dtype,
        )
    elif scaler is not None:
        steps.append(("scale", scaler))
    if options.normalize:
        steps.append(("normalize", Normalizer()))
    return steps


def _text_steps(o: TrainOptions, dtype: DTypeLike) -> Steps:
    words = {"ngram_range": o.ngrams, "analyzer": o.analyzer, "dtype": dtype}
    weights = {"sublinear_tf": o.sublinear}
    if o.features == "hash":
        bins = 2**o.hash_bits
        hashing = HashingVectorizer(n_features=bins, alternate_sign=False, norm=None, **words)
        return [("hash", hashing), ("tfidf", TfidfTransformer(**weights))]
    counted = {"min_df": o.min_df, "max_features": o.max_features}
    return [("tfidf", TfidfVectorizer(**counted, **words, **weights))]


def _words(options: TrainOptions, dtype: DTypeLike) -> BaseEstimator:
    """A transformer of one column of text."""
    steps = _text_steps(options, dtype)
    return steps[0][1] if len(steps) == 1 else Pipeline(steps)


def inputs_of(data: Dataset) -> Examples:
    """What the first step of a pipeline takes."""
    if data.text is not None:
        return list(data.text)
    examples: Examples = data.X if data.table is None else data.table
    return examples


def fit(
    classifier: Trained, steps: Steps, data: Dataset, output: Output, dtype: DTypeLike = np.float64
) -> Fit:
    """Fit the preparation and the classifier, with a progress bar.

    Ctrl-C while the classifier trains gives the best certified model so far.
    """
    model = Pipeline([*steps, ("svm", classifier)]) if steps else classifier
    result = Fit(model, classifier)
    with located(data), about(data.source):
        X, y = inputs_of(data), need_labels(data)
        for _, step in steps:
            X = step.fit_transform(X, y)
        if data.table is not None and hasattr(X, "astype"):
            X = X.astype(dtype, copy=False)
        with (
            warnings.catch_warnings(record=True) as caught,
            output.progress(),
        ):
            warnings.simplefilter("always", ConvergenceWarning)
            start = time.perf_counter()
            try:
                if getattr(classifier, "memory_limit", None) is not None:
                    classifier.fit(data)
                else:
                    classifier.fit(X, y)
            except KeyboardInterrupt:
                if not hasattr(classifier, "dual_gap_"):
                    raise
                result.interrupted = True
            result.seconds = time.perf_counter() - start
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            result.warning = str(warning.message)
        else:
            result.others.append(str(warning.message))
    if (
        data.X is not None and data.feature_names is not None
    ):  # those of a table's columns, as if a frame had been given
        for step in (*(step for _, step in steps), classifier):
            step.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
    return result


def hold_out(data: Dataset, part: float, seed: int) -> tuple[Dataset, Dataset]:
    """Split off a part of the examples for testing, of every class alike where possible."""
    y = need_labels(data)
    rows = np.arange(data.n_examples)
    counts = np.unique(y, return_counts=True)[1]
    enough = counts.min() >= 2 and part * len(rows) >= len(counts) <= (1 - part) * len(rows)
    with about(f"{data.source}: --holdout {part:g}"):
        train, test = train_test_split(
            rows, test_size=part, stratify=y if enough else None, random_state=seed
        )
    return data.take(np.sort(train)), data.take(np.sort(test))


def cross_validate(
    classifier: Trained,
    steps: Steps,
    data: Dataset,
    folds: int,
    output: Output,
    dtype: DTypeLike = np.float64,
) -> list[Fold]:
    """How good on each fold a model is that is trained on the others."""
    y = need_labels(data)
    counts = np.unique(y, return_counts=True)[1]
    kind = StratifiedKFold if counts.min() >= folds else KFold
    found = []
    order = kind(folds, shuffle=True, random_state=classifier.random_state)
    splits = order.split(np.zeros((len(y), 1)), y)
    with about(f"{data.source}: --cv {folds}"):
        for number, (train, test) in enumerate(splits, start=1):
            fresh = [(name, clone(step)) for name, step in steps]
            done = fit(clone(classifier), fresh, data.take(train), output, dtype)
            if done.interrupted:
                raise KeyboardInterrupt
            predicted = done.model.predict(inputs_of(data.take(test)))
            classes = done.classifier.classes_
            held_out = compare(y[test], predicted, classes, classifier.cost_matrix)
            found.append(Fold(held_out, done.warning))
            said = "" if done.warning is None else " (not converged)"
            output.note(f"fold {number} of {folds}: accuracy {percent(held_out.accuracy)}{said}")
    return found
