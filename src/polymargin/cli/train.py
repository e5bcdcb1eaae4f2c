"""``polymargin train``: from a data file to a model file, its accuracy and a report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import polymargin
from polymargin.cli._command import Command, make_output, output_options
from polymargin.cli._data import (
    DataOptions,
    data_options,
    like_labels,
    need_labels,
    number_features,
    read_examples,
)
from polymargin.cli._errors import CommandError, Exit, check_output
from polymargin.cli._evaluation import as_dict, describe, evaluate_on, report_on, source_of
from polymargin.cli._model import BASE_ATTRIBUTE, Model
from polymargin.cli._output import Output, facts, percent
from polymargin.cli._train_options import (
    check_text_options,
    check_used,
    given_options,
    train_options,
)
from polymargin.cli._training import (
    Fit,
    TextOptions,
    cross_validate,
    fit,
    hold_out,
    make_classifier,
    preparation,
)
from polymargin.io import Dataset

EXAMPLE = """
polymargin train data.svm --loss weston_watkins --C 1 --test test.svm --report report.html \\
    -o model.pmz
polymargin train mail.jsonl.gz --text text --label label --holdout 0.2 -o mail.pmz
polymargin train letter.csv --kernel rbf --gamma 0.1 --C 10 --scale standard -o letter.pmz
"""
CODES = {
    "converged": Exit.OK,
    "not converged": Exit.NOT_CONVERGED,
    "interrupted": Exit.INTERRUPTED,
}


@click.command(cls=Command, example=EXAMPLE)
@click.argument("data")
@data_options
@train_options
@output_options
def train(**options: Any) -> int:
    """Train a model on DATA and write it to a file.

    DATA is an svmlight file (also compressed), a CSV, Parquet, JSONL or NPZ file, a directory made
    by `polymargin convert`, or - for standard input. Training stops when the duality gap proves
    that the objective is within --tol of the best possible.
    """
    output = make_output(options["quiet"], options["as_json"])
    target = _target(options)
    for path in (target, options["report"]):
        check_output(path, (options["data"], options["test"]))
    if options["report"] and options["report"] == target:
        raise CommandError("--report and -o name the same file", Exit.USAGE)
    if options["report"] and target is None:
        raise CommandError("--cv alone trains no model to report on: give -o", Exit.USAGE)
    given = given_options()
    check_used(options, given)
    classifier = make_classifier(options)
    try:
        task = _read(options, output)
        if task.training.text is None:
            check_text_options(given, task.training.source)
        result = Result({}, [])
        done = _fit(classifier, task, options, result, output)
    except KeyboardInterrupt as error:
        text = "interrupted before there was a model: nothing was written"
        raise CommandError(text, Exit.INTERRUPTED) from error
    code = Exit.OK
    if done is not None and target is not None:
        code = _finish(done, task, target, options, result, output)
    output.result(result.value, result.lines)
    if target is not None:
        report = options["report"]
        output.success(f"wrote {target}" + (f" and {report}" if report else ""))
    return code


@dataclass
class Result:
    """What the command prints in the end: for machines, and for people."""

    value: dict[str, Any]
    lines: list[str]

    def add(self, value: dict[str, Any], lines: list[str]) -> None:
        """Say more."""
        self.value |= value
        self.lines += lines


def _fit(
    classifier: Any, task: _Task, options: dict[str, Any], result: Result, output: Output
) -> Fit | None:
    """Cross-validate if asked to; train unless that was all."""
    data, y = task.training, need_labels(task.training)
    if options["weights"]:
        classifier.class_weight = _class_weights(options, np.unique(y))
    steps = preparation(
        data, _text_options(options), options["scale"], options["normalize"], task.dtype
    )
    output.note(_describe_data(task, y))
    if options["cv"]:
        folds = cross_validate(classifier, steps, data, y, options["cv"], options["seed"], output)
        mean, spread = float(np.mean(folds)), float(np.std(folds))
        result.add(
            {"cross_validation": {"accuracy": mean, "std": spread, "folds": folds}},
            [f"cross-validation accuracy  {percent(mean)} (± {percent(spread)} over the folds)"],
        )
        if not options["target"]:
            return None
    done = fit(classifier, steps, data, y, output)
    if task.base is not None:
        setattr(classifier, BASE_ATTRIBUTE, task.base)
    return done


@dataclass(frozen=True)
class _Task:
    training: Dataset
    test: Dataset | None
    base: int | None  # the number of the first feature, of svmlight files
    dtype: Any


def _target(options: dict[str, Any]) -> str | None:
    """Where the model goes; None where cross-validation alone was asked for."""
    if options["target"] or options["cv"]:
        return options["target"]
    if options["data"] == "-":
        raise CommandError("standard input has no name: give the model one with -o", Exit.USAGE)
    name = Path(options["data"]).name.split(".")[0]
    return f"{name or 'model'}.pmz"


def _read(options: dict[str, Any], output: Output) -> _Task:
    given = [name for name in ("test", "test_split", "holdout") if options[name]]
    if options["holdout"] and len(given) > 1:
        raise CommandError("--holdout cannot be used with --test or --test-split", Exit.USAGE)
    dtype = np.float32 if options["float32"] else np.float64
    how = DataOptions(
        options["format"], options["label"], options["text"], options["index_base"], dtype
    )
    training, kind = read_examples(options["data"], how, split=options["split"], output=output)
    parts = [training]
    if options["test"] or options["test_split"]:
        path = options["test"] or options["data"]
        if path == "-" and options["data"] == "-":
            raise CommandError("standard input can be read only once: use --holdout", Exit.USAGE)
        test, test_kind = read_examples(
            path, how, split=options["test_split"], features=training.feature_names
        )
        if (kind == "svmlight") != (test_kind == "svmlight"):
            raise CommandError(f"{path} is in {test_kind} format, but {training.source} in {kind}")
        _check_alike(training, test)
        parts.append(test)
    base = None
    if kind == "svmlight":
        parts, base = number_features(parts, how.index_base)
    if options["holdout"]:
        need_labels(training)
        parts = list(hold_out(parts[0], options["holdout"], options["seed"]))
    for part in parts:
        need_labels(part)
    return _Task(parts[0], parts[1] if len(parts) == 2 else None, base, dtype)


def _check_alike(training: Dataset, test: Dataset) -> None:
    """Refuse test data that the model will not read, before it is trained."""
    if (training.text is None) != (test.text is None):
        kinds = ("numbers", "text") if training.text is None else ("text", "numbers")
        raise CommandError(f"{training.source} holds {kinds[0]}, but {test.source} {kinds[1]}")
    dense = [isinstance(part.X, np.ndarray) for part in (training, test)]
    if all(dense) and training.X.shape[1] != test.X.shape[1]:
        raise CommandError(
            f"{test.source} has {test.X.shape[1]:,} features, but {training.source} "
            f"{training.X.shape[1]:,}"
        )


def _text_options(options: dict[str, Any]) -> TextOptions:
    return TextOptions(
        features=options["features"],
        ngrams=options["ngrams"],
        analyzer=options["analyzer"],
        min_df=options["min_df"],
        max_features=options["max_features"],
        sublinear=options["sublinear"],
        hash_bits=options["hash_bits"],
    )


def _class_weights(options: dict[str, Any], classes: NDArray) -> dict[Any, float]:
    if options["class_weight"]:
        raise CommandError("--class-weight and --weight exclude each other", Exit.USAGE)
    weights = {}
    for item in options["weights"]:
        name, equals, weight = item.rpartition("=")
        try:
            value = float(weight)
        except ValueError:
            equals = ""
        if not equals:
            raise CommandError(f"--weight {item}: expected LABEL=WEIGHT", Exit.USAGE)
        if not (math.isfinite(value) and value >= 0):
            raise CommandError(f"--weight {item}: a weight is finite and not negative", Exit.USAGE)
        label = like_labels(np.array([name]), classes)[0]
        if label not in classes.tolist():
            raise CommandError(f"--weight {item}: no example has the label {name!r}")
        weights[classes[classes.tolist().index(label)].item()] = value
    return weights


def _describe_data(task: _Task, y: NDArray) -> str:
    data = task.training
    what = "texts" if data.text is not None else f"examples of {data.X.shape[1]:,} features"
    return f"{data.source}: {data.n_examples:,} {what}, {len(np.unique(y)):,} classes"


def _finish(
    done: Fit, task: _Task, target: str, options: dict[str, Any], result: Result, output: Output
) -> Exit:
    """Write the model first; then evaluate it and report."""
    _save(done.model, target)
    classifier = done.classifier
    for warning in done.others:
        output.warn(warning)
    if done.interrupted:
        output.warn(
            f"interrupted after {classifier.n_iter_} passes: {target} is the best model so far, "
            f"certified gap {_gap(classifier)}"
        )
    elif done.warning:
        output.warn(done.warning)
    result.add(_training_result(done, target), _training_lines(done))
    model, found, X = Model(done.model), None, None
    if task.test is not None:
        found, X = evaluate_on(model, task.test, output)
        result.add({"test": {"source": task.test.source, **as_dict(found)}}, describe(found))
    if options["report"]:
        data = {
            "training data": source_of(options["data"], options["split"]),
            "training examples": f"{task.training.n_examples:,}",
        }
        if options["holdout"]:
            data["test data"] = f"a part of {options['holdout']:g}, held out"
        elif task.test is not None:
            data["test data"] = source_of(task.test.source, options["test_split"])
        report_on(
            options["report"], options["data"], model, task.test, found, X, data, done.watch.trace
        )
        result.add({"report": options["report"]}, [])
    return CODES[done.status]


def _save(model: Any, target: str) -> None:
    try:
        polymargin.save(model, target)
    except OSError as error:
        raise CommandError(f"{target}: {error.strerror or error}", Exit.OUTPUT) from error


def _training_result(done: Fit, target: str) -> dict[str, Any]:
    c = done.classifier
    return {
        "model": target,
        "status": done.status,
        "objective": c.objective_,
        "dual_objective": c.dual_objective_,
        "gap": c.dual_gap_,
        "tol": c.tol,
        "passes": c.n_iter_,
        "seconds": round(done.seconds, 4),
        "n_classes": len(c.classes_),
        "n_features": c.n_features_in_,
    }


def _training_lines(done: Fit) -> list[str]:
    c = done.classifier
    rounds = "working sets" if isinstance(c, polymargin.KernelMulticlassSVC) else "passes"
    return facts(
        [
            ("objective", f"{c.objective_:.8g}" if np.isfinite(c.objective_) else "not computed"),
            ("certified gap", _gap(c)),
            (rounds, f"{c.n_iter_:,} in {done.seconds:.2f} s"),
        ]
    )


def _gap(classifier: Any) -> str:
    gap, tol = classifier.dual_gap_, classifier.tol
    return f"{gap:.2e} (tolerance {tol:g})" if np.isfinite(gap) and tol is not None else "none"
