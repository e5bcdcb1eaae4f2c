"""``polymargin train``: from a data file to a model file, its accuracy and a report."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import click
import numpy as np
from numpy.typing import DTypeLike, NDArray

from polymargin.cli._command import command, takes
from polymargin.cli._costs import read_costs
from polymargin.cli._data import (
    TABLES,
    Columns,
    describe_data,
    expanded,
    holds,
    joined,
    like_labels,
    named,
    need_labels,
    number_features,
    read_examples,
)
from polymargin.cli._errors import (
    CommandError,
    Exit,
    check_output,
    check_piped,
    reading,
    writing,
)
from polymargin.cli._model import BASE, LABEL, TEXT, Model
from polymargin.cli._output import Output, facts
from polymargin.cli._pipes import file_or_pipe
from polymargin.cli._tables import (
    as_numbers,
    as_text,
    decide_columns,
    located,
    only_numbers,
    only_text,
    say_columns,
)
from polymargin.cli._train_options import (
    TrainOptions,
    check_table_options,
    check_text_options,
    check_used,
    written_options,
)
from polymargin.cli._training import (
    Fit,
    Fold,
    Trained,
    cross_validate,
    fit,
    hold_out,
    make_classifier,
    preparation,
)
from polymargin.cli.evaluate import as_dict, describe, evaluate_on, report_on, source_of
from polymargin.estimators import KernelMulticlassSVC
from polymargin.evaluation import cost_text, percent
from polymargin.io import Dataset, convert_svmlight, detect_format, open_directory, save
from polymargin.storage import TemporaryFolder
from polymargin.tables import Column, table_steps

EXAMPLE = """
polymargin train data.svm --loss weston_watkins --C 1 --test test.svm --report report.html \\
    -o model.pmz
polymargin train mail.jsonl.gz --text text --label label --holdout 0.2 -o mail.pmz
polymargin train orders.csv --label "Product Category" --text comment --drop customer
polymargin train letter.csv --kernel rbf --gamma 0.1 --C 10 --scale standard -o letter.pmz
"""
CODES = {
    "converged": Exit.OK,
    "not converged": Exit.NOT_CONVERGED,
    "interrupted": Exit.INTERRUPTED,
}


@command(EXAMPLE)
@click.argument("data", nargs=-1, required=True)
@takes(TrainOptions, "options")
@takes(Output, "output")
def train(data: tuple[str, ...], options: TrainOptions, output: Output) -> int:
    """Train a model on DATA and write it to a file.

    DATA is an svmlight file (also compressed), a CSV, Parquet, JSONL or NPZ file, a directory made
    by `polymargin convert`, or - for standard input; or several files of a kind. Training stops
    when the duality gap proves that the objective is within --tol of the best possible.

    What each column of a table is for is found by a look at its values, and said.
    """
    data = tuple(expanded(data))
    target, report = _target(data, options), options.report
    for path in (target, report):
        check_output(path, (*data, options.test, options.costs))
    check_piped(target)
    if report and report == target:
        raise CommandError("--report and -o name the same file", Exit.USAGE)
    if report and target is None:
        raise CommandError("--cv alone trains no model to report on: give -o", Exit.USAGE)
    written = written_options()
    check_used(options, written, output)
    classifier = make_classifier(options)
    result = _Result()
    try:
        task = _read(data, options, output)
        if task.kind not in TABLES:
            check_table_options(written, task.training.source, task.kind)
        if not task.has_text:
            check_text_options(written, task.training.source)
        done = _fit(classifier, task, options, result, output)
    except KeyboardInterrupt as error:
        text = "interrupted before there was a model: nothing was written"
        raise CommandError(text, Exit.INTERRUPTED) from error
    if done is not None and target is not None:
        result.code = _finish(done, task, target, options, result, output) or result.code
    output.result(result.value, result.lines, aside=target == "-")
    if target is not None:
        shown = "standard output" if target == "-" else target
        output.success(f"wrote {shown}" + (f" and {report}" if report else ""))
    return result.code


def _target(data: tuple[str, ...], options: TrainOptions) -> str | None:
    """Where the model goes; None where cross-validation alone was asked for."""
    if options.target or options.cv:
        return options.target
    if data[0] == "-":
        raise CommandError("standard input has no name: give the model one with -o", Exit.USAGE)
    return f"{Path(data[0]).name.split('.')[0] or 'model'}.pmz"


@dataclass
class _Result:
    """What the command prints in the end: for machines, and for people."""

    value: dict[str, object] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    code: Exit = Exit.OK

    def add(self, value: dict[str, object], lines: list[str]) -> None:
        self.value |= value
        self.lines += lines


@dataclass(frozen=True)
class _Task:
    source: str
    training: Dataset
    test: Dataset | None
    base: int | None  # the number of the first feature, of svmlight files
    dtype: DTypeLike
    kind: str  # the format of the data
    columns: Sequence[Column] = ()  # of tables
    held: object = None  # what must not go before the training is done

    @property
    def has_text(self) -> bool:
        """Whether there is anything to make words of."""
        return self.training.text is not None or any(one.kind == "text" for one in self.columns)

    @property
    def notes(self) -> dict[str, str | int | float | bool | None]:
        """What the model file is to remember of the data."""
        notes: dict[str, str | int | float | bool | None] = {}
        if self.base is not None:
            notes[BASE] = self.base
        if self.training.label_name is not None:
            notes[LABEL] = self.training.label_name
        if only_text(self.columns) is not None:
            notes[TEXT] = only_text(self.columns)
        return notes


def _read(data: tuple[str, ...], options: TrainOptions, output: Output) -> _Task:
    if options.holdout and (options.test or options.test_split):
        raise CommandError("--holdout cannot be used with --test or --test-split", Exit.USAGE)
    dtype = np.float32 if options.float32 else np.float64
    if options.memory_limit:
        if len(data) > 1:
            raise CommandError("--memory trains on one file or directory", Exit.USAGE)
        return _read_stored(data[0], options, dtype, output)
    files = [_read_one(path, options, Columns(table=True), dtype, output) for path in data]
    kinds = {kind for _, kind in files}
    kind = files[0][1]
    if len(kinds) > 1 and not kinds <= set(TABLES):
        raise CommandError(f"the files are of different formats: {', '.join(sorted(kinds))}")
    parts = [part for part, _ in files]
    tested = options.test or options.test_split
    if tested:
        if "-" in data and options.test in (None, "-"):
            raise CommandError("standard input can be read only once: use --holdout", Exit.USAGE)
        how = replace(options, split=options.test_split)
        columns = Columns(table=True, label=parts[0].label_name)
        for path in [options.test] if options.test else data:
            part, test_kind = _read_one(path, how, columns, dtype, None)
            if (kind == "svmlight") != (test_kind == "svmlight"):
                reason = f"{path} is in {test_kind} format, but {named(data)} in {kind}"
                raise CommandError(reason)
            parts.append(part)
    base = None
    if kind == "svmlight":
        parts, base = number_features(parts, options.index_base)
    training = joined(parts[: len(data)])
    test = joined(parts[len(data) :]) if tested else None
    if options.holdout:
        training, test = hold_out(training, options.holdout, options.random_state)
    for part in (training, *([] if test is None else [test])):
        need_labels(part)
    if test is not None:
        _check_alike(training, test)
    found: list[Column] = []
    if training.table is not None:
        training, test, found = _use_columns(training, test, options, dtype, output)
    return _Task(named(data), training, test, base, dtype, kind, found)


def _read_one(
    path: str, options: TrainOptions, columns: Columns, dtype: DTypeLike, output: Output | None
) -> tuple[Dataset, str]:
    """Read a file; of a table the columns of all kinds, for nothing is known of them yet."""
    return read_examples(path, options, columns, dtype=dtype, output=output)


def _use_columns(
    training: Dataset,
    test: Dataset | None,
    options: TrainOptions,
    dtype: DTypeLike,
    output: Output,
) -> tuple[Dataset, Dataset | None, list[Column]]:
    """Decide what the columns of a table are for; make texts or numbers of a table of such only."""
    columns = decide_columns(
        training, options.columns, options.drop, options.text, dates=options.dates == "parts"
    )
    say_columns(columns, training.source, output)
    text, numbers = only_text(columns), None
    if text is None and options.scale == "none":
        numbers = only_numbers(columns, training)
    if text is None and numbers is None:
        if test is not None:  # what is wrong with it is said before training
            first = table_steps(columns)[0][1]
            with located(test):
                first.fit_transform(test.table)
        return training, test, columns

    def of_one_kind(data: Dataset) -> Dataset:
        return as_text(data, text) if text is not None else as_numbers(data, numbers or (), dtype)

    return of_one_kind(training), None if test is None else of_one_kind(test), columns


def _read_stored(data: str, options: TrainOptions, dtype: DTypeLike, output: Output) -> _Task:
    """Examples that stay on disk: a data directory, or an svmlight file made one for the time."""
    with reading(data):
        kind = options.format or detect_format(data)
    if kind not in ("directory", "svmlight") or data == "-":
        raise CommandError(
            f"--memory trains on svmlight files and on directories, not on {data}: make it one "
            "with polymargin convert",
            Exit.USAGE,
        )
    folder, held = data, None
    if kind == "svmlight":
        held = TemporaryFolder(Path(options.target or ".").parent)
        folder = str(held.path / "data")
        with reading(data):
            bases: dict[str, bool | Literal["auto"]] = {"auto": "auto", "0": True, "1": False}
            convert_svmlight(data, folder, zero_based=bases[options.index_base], dtype=dtype)
        output.note(f"{data}: converted; to train on it again, use polymargin convert")
    with reading(folder):
        training = open_directory(folder)
        base = json.loads((Path(folder) / "meta.json").read_bytes()).get("index_base")
    need_labels(training)
    test = None
    if options.test:
        test, test_kind = read_examples(options.test, options, dtype=dtype)
        if test_kind == "svmlight":
            written = options.index_base if base is None else str(base)
            test = number_features([test], written)[0][0]
    return _Task(data, training, test, base, dtype, kind, held=held)


def _check_alike(training: Dataset, test: Dataset) -> None:
    """Refuse test data that the model will not read, before it is trained."""
    kinds = [holds(part) for part in (training, test)]
    if kinds[0] != kinds[1] and not all("numbers" in kind for kind in kinds):
        raise CommandError(f"{training.source} holds {kinds[0]}, but {test.source} {kinds[1]}")
    dense = [isinstance(part.X, np.ndarray) for part in (training, test)]
    if all(dense) and training.X.shape[1] != test.X.shape[1]:
        raise CommandError(
            f"{test.source} has {test.X.shape[1]:,} features, but {training.source} "
            f"{training.X.shape[1]:,}"
        )


def _fit(
    classifier: Trained, task: _Task, options: TrainOptions, result: _Result, output: Output
) -> Fit | None:
    """Cross-validate if asked to; train unless that was all."""
    data = task.training
    if options.weights:
        classes = np.unique(need_labels(data))
        classifier.set_params(class_weight=_class_weights(options.weights, classes))
    if options.costs:
        costs = read_costs(options.costs, np.unique(need_labels(data)))
        classifier.set_params(cost_matrix=costs)
    steps = preparation(data, options, task.dtype, task.columns)
    output.note(f"{data.source}: {describe_data(data)}")
    if options.cv:
        folds = cross_validate(classifier, steps, data, options.cv, output, task.dtype)
        _say_folds(folds, result, output)
        if not options.target:
            return None
    if options.checkpoint:
        classifier.set_params(checkpoint=options.checkpoint)
    return fit(classifier, steps, data, output, task.dtype)


def _say_folds(found: Sequence[Fold], result: _Result, output: Output) -> None:
    """The accuracy of the folds, with costs what their predictions cost, and who gave up."""
    folds = [one.found for one in found]
    each = [one.accuracy for one in folds]
    mean, spread = float(np.mean(each)), float(np.std(each))
    value: dict[str, object] = {"accuracy": mean, "std": spread, "folds": each}
    lines = [("accuracy", f"{percent(mean)} (± {percent(spread)} over the folds)")]
    costs = [one.mean_cost for one in folds if one.mean_cost is not None]
    if costs:
        value["mean_cost"] = float(np.mean(costs))
        lines.append(("mean cost", cost_text(float(np.mean(costs)))))
    said = facts([(f"cross-validation {name}", text) for name, text in lines])
    result.add({"cross_validation": value}, said)
    unfinished = [one.warning for one in found if one.warning is not None]
    if unfinished:
        value["not_converged"] = len(unfinished)
        result.code = Exit.NOT_CONVERGED
        output.warn(
            f"{len(unfinished)} of {len(found)} folds did not converge, so their accuracy may be "
            f"off. The first: {unfinished[0]}"
        )


def _class_weights(items: tuple[str, ...], classes: NDArray) -> dict[object, float]:
    weights: dict[object, float] = {}
    known = classes.tolist()
    for item in items:
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
        if label not in known:
            raise CommandError(f"--weight {item}: no example has the label {name!r}")
        weights[known[known.index(label)]] = value
    return weights


def _finish(
    done: Fit, task: _Task, target: str, options: TrainOptions, result: _Result, output: Output
) -> Exit:
    """Write the model first; then evaluate it and report."""
    with writing(target), file_or_pipe(target) as place:
        save(done.model, place, notes=task.notes)
    for warning in done.others:
        output.warn(warning)
    if done.interrupted:
        output.warn(
            f"interrupted after {done.classifier.n_iter_} passes: {target} is the best model so "
            f"far, certified gap {_gap(done.classifier)}"
        )
    elif done.warning:
        output.warn(done.warning)
    _say_training(done, target, result)
    model, tested = Model(done.model, dict(task.notes)), None
    if task.test is not None:
        tested = evaluate_on(model, task.test, output)
        found = as_dict(tested.found)
        result.add({"test": {"source": task.test.source, **found}}, describe(tested.found))
    if options.report:
        about = {
            "training data": source_of(task.source, options.split),
            "training examples": f"{task.training.n_examples:,}",
        }
        if options.holdout:
            about["test data"] = f"a part of {options.holdout:g}, held out"
        elif task.test is not None:
            about["test data"] = source_of(task.test.source, options.test_split)
        report_on(options.report, task.source, model, tested, about)
        result.add({"report": options.report}, [])
    return CODES[done.status]


def _say_training(done: Fit, target: str, result: _Result) -> None:
    c = done.classifier
    value = {
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
    rounds = "working sets" if isinstance(c, KernelMulticlassSVC) else "passes"
    objective = f"{c.objective_:.8g}" if np.isfinite(c.objective_) else "not computed"
    lines = [
        ("objective", objective),
        ("certified gap", _gap(c)),
        (rounds, f"{c.n_iter_:,} in {done.seconds:.2f} s"),
    ]
    result.add(value, facts(lines))


def _gap(classifier: Trained) -> str:
    gap, tol = classifier.dual_gap_, classifier.tol
    return f"{gap:.2e} (tolerance {tol:g})" if np.isfinite(gap) and tol is not None else "none"
