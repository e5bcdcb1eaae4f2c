"""Training for the command line: a classifier and a pipeline from options, and their fit."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelSolver,
    LaRankClassifier,
    LinearMulticlassSVC,
)
from polymargin.cli._data import need_labels
from polymargin.cli._errors import CommandError, Exit
from polymargin.cli._output import Output
from polymargin.cli._progress import Watch, WatchedSolver, progress_bar
from polymargin.io import Dataset

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler}


@dataclass(frozen=True)
class TextOptions:
    """How text becomes features."""

    features: str = "tfidf"
    ngrams: tuple[int, int] = (1, 1)
    analyzer: str = "word"
    min_df: int = 1
    max_features: int | None = None
    sublinear: bool = False
    hash_bits: int = 18

    def steps(self, dtype: Any) -> list[tuple[str, Any]]:
        """Steps of a pipeline that turn text into features of this type."""
        common = {"ngram_range": self.ngrams, "analyzer": self.analyzer, "dtype": dtype}
        if self.features == "hash":
            hashing = HashingVectorizer(
                n_features=2**self.hash_bits, alternate_sign=False, norm=None, **common
            )
            weigh = TfidfTransformer(sublinear_tf=self.sublinear)
            return [("hash", hashing), ("tfidf", weigh)]
        tfidf = TfidfVectorizer(
            min_df=self.min_df,
            max_features=self.max_features,
            sublinear_tf=self.sublinear,
            **common,
        )
        return [("tfidf", tfidf)]


@dataclass
class Fit:
    """A trained model and how its training went.

    Attributes
    ----------
    model : estimator
        The classifier, or a pipeline that ends in it.
    seconds : float
        Wall-clock time of the training, without reading and preparing the data.
    watch : Watch
        Every pass.
    interrupted : bool
        Whether Ctrl-C ended it; the model is then the best certified one so far.
    warning : str or None
        Why it did not converge.
    """

    model: Any
    classifier: Any
    seconds: float
    watch: Watch
    interrupted: bool = False
    warning: str | None = None
    others: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """How it ended."""
        if self.interrupted:
            return "interrupted"
        return "converged" if self.warning is None else "not converged"


def make_classifier(options: dict[str, Any]) -> Any:
    """A classifier from the options of `train`, checked before any file is read."""
    common = {
        "loss": options["loss"],
        "C": options["c"],
        "top_k": options["top_k"],
        "tol": options["tol"],
        "class_weight": options["class_weight"],
        "random_state": options["seed"],
        "n_jobs": options["n_jobs"],
    }
    if options["loss"].startswith("top_k") and options["top_k"] is None:
        raise CommandError(f"--loss {options['loss']} needs --top-k, for example 5", Exit.USAGE)
    if options["n_jobs"] == 0:
        raise CommandError("--n-jobs is a number of threads, or -1 for all cores", Exit.USAGE)
    limit = options["time_limit"]
    if options["online"]:
        model = _online_classifier(options)
    elif options["kernel"] is None:
        model = LinearMulticlassSVC(
            **common,
            max_iter=options["max_iter"] or 1000,
            fit_intercept=options["intercept"],
            intercept_scaling=options["intercept_scaling"],
            solver=None if limit is None else DualSolver(time_limit=limit),
        )
    else:
        model = KernelMulticlassSVC(
            **common,
            max_iter=options["max_iter"] or 10_000,
            kernel=options["kernel"],
            gamma=options["gamma"],
            degree=options["degree"],
            coef0=options["coef0"],
            cache_size=options["cache_size"],
            solver=None if limit is None else KernelSolver(time_limit=limit),
        )
    try:
        model._validate_params()
    except ValueError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    return model


def _online_classifier(options: dict[str, Any]) -> LaRankClassifier:
    return LaRankClassifier(
        C=options["c"],
        kernel=options["kernel"] or "rbf",
        gamma=options["gamma"],
        degree=options["degree"],
        coef0=options["coef0"],
        n_epochs=options["epochs"],
        cache_size=options["cache_size"],
        random_state=options["seed"],
        n_jobs=options["n_jobs"],
    )


def preparation(
    data: Dataset, text: TextOptions, scale: str | None, normalize: bool, dtype: Any
) -> list[tuple[str, Any]]:
    """Steps before the classifier; those for text already give unit rows."""
    steps = text.steps(dtype) if data.text is not None else []
    if scale is not None:
        if data.text is not None:
            raise CommandError("--scale is for numeric features, not for text", Exit.USAGE)
        sparse_kind = not isinstance(data.X, np.ndarray)
        if sparse_kind and scale == "minmax":
            raise CommandError("--scale minmax would fill sparse data; use maxabs", Exit.USAGE)
        arguments = {"with_mean": not sparse_kind} if scale == "standard" else {}
        steps.append(("scale", SCALERS[scale](**arguments)))
    if normalize and data.text is None:
        steps.append(("normalize", Normalizer()))
    return steps


def inputs_of(data: Dataset) -> Any:
    """What the first step of a pipeline takes."""
    return list(data.text) if data.text is not None else data.X


def fit(
    classifier: Any, steps: list[tuple[str, Any]], data: Dataset, y: NDArray, output: Output
) -> Fit:
    """Fit the preparation and the classifier, with a progress bar.

    Ctrl-C while the classifier trains gives the best certified model so far.
    """
    try:
        X = inputs_of(data)
        for _, step in steps:
            X = step.fit_transform(X, y)
    except ValueError as error:
        raise CommandError(f"{data.source}: {error}") from error
    model = Pipeline([*steps, ("svm", classifier)]) if steps else classifier
    watch = Watch()
    result = Fit(model, classifier, 0.0, watch)
    solver = getattr(classifier, "solver", None)  # LaRank has none
    usual = KernelSolver() if isinstance(classifier, KernelMulticlassSVC) else DualSolver()
    with warnings.catch_warnings(record=True) as caught, progress_bar(watch, output.chatty) as see:
        warnings.simplefilter("always", ConvergenceWarning)
        if hasattr(classifier, "solver"):
            classifier.solver = WatchedSolver(usual if solver is None else solver, see)
        start = time.perf_counter()
        try:
            classifier.fit(X, y)
        except KeyboardInterrupt:
            if not hasattr(classifier, "dual_gap_"):
                raise
            result.interrupted = True
        except ValueError as error:
            raise CommandError(f"{data.source}: {error}") from error
        finally:
            if hasattr(classifier, "solver"):
                classifier.solver = solver
    result.seconds = time.perf_counter() - start
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            result.warning = str(warning.message)
        else:
            result.others.append(str(warning.message))
    if data.feature_names is not None:
        _name_features(steps, classifier, data.feature_names)
    return result


def _name_features(steps: list[tuple[str, Any]], classifier: Any, names: list[str]) -> None:
    """Keep the names of a table's columns, as if a frame had been given."""
    for step in [*(step for _, step in steps), classifier]:
        step.feature_names_in_ = np.asarray(names, dtype=object)


def hold_out(data: Dataset, part: float, seed: int | None) -> tuple[Dataset, Dataset]:
    """Split off a part of the examples for testing, of every class alike where possible."""
    y = need_labels(data)
    rows = np.arange(data.n_examples)
    counts = np.unique(y, return_counts=True)[1]
    enough = counts.min() >= 2 and part * len(rows) >= len(counts) <= (1 - part) * len(rows)
    try:
        train, test = train_test_split(
            rows, test_size=part, stratify=y if enough else None, random_state=seed or 0
        )
    except ValueError as error:
        raise CommandError(f"{data.source}: --holdout {part:g}: {error}") from error
    return data.take(np.sort(train)), data.take(np.sort(test))


def cross_validate(
    classifier: Any,
    steps: list[tuple[str, Any]],
    data: Dataset,
    y: NDArray,
    folds: int,
    seed: int | None,
    output: Output,
) -> list[float]:
    """Accuracy on each fold of a model that is trained on the others."""
    counts = np.unique(y, return_counts=True)[1]
    kind = StratifiedKFold if counts.min() >= folds else KFold
    accuracies = []
    rows = np.zeros((data.n_examples, 1))
    splits = kind(folds, shuffle=True, random_state=seed or 0).split(rows, y)
    try:
        for number, (train, test) in enumerate(splits, start=1):
            fresh = [(name, clone(step)) for name, step in steps]
            done = fit(clone(classifier), fresh, data.take(train), y[train], output)
            if done.interrupted:
                raise KeyboardInterrupt
            held_out = data.take(test)
            accuracies.append(float(np.mean(done.model.predict(inputs_of(held_out)) == y[test])))
            output.note(f"fold {number} of {folds}: accuracy {100 * accuracies[-1]:.2f} %")
    except ValueError as error:
        raise CommandError(f"{data.source}: --cv {folds}: {error}") from error
    return accuracies
