"""``polymargin evaluate``: how good a model is on labelled examples, as every command says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from polymargin.cli._command import command, option, takes
from polymargin.cli._costs import Costs, read_costs
from polymargin.cli._data import DataOptions, expanded, like_labels, named, need_labels
from polymargin.cli._errors import check_output, writing
from polymargin.cli._model import Model
from polymargin.cli._output import Output, bold, facts, shorten, table
from polymargin.evaluation import Evaluation, cost_text, percent
from polymargin.evaluation import evaluate as evaluate_scores
from polymargin.fitted import Features
from polymargin.io import Dataset
from polymargin.report import write_report

EXAMPLE = """
polymargin evaluate model.pmz test.svm
polymargin evaluate model.pmz clinc150.jsonl.gz --split test --report report.html
"""
PAIRS = 10
SHOWN_LABELS = 5
COSTS_HELP = "Costs between classes, as for train. [the model's]"


@command(EXAMPLE)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@takes(DataOptions, "how")
@option("Data", "--costs", metavar="FILE", help=COSTS_HELP)
@option("Output", "--pairs", type=click.IntRange(0), default=PAIRS, help="Confused pairs to show.")
@option("Output", "--report", metavar="FILE", help="Write an HTML report.")
@takes(Output, "output")
def evaluate(
    model: str,
    data: tuple[str, ...],
    how: DataOptions,
    costs: str | None,
    pairs: int,
    report: str | None,
    output: Output,
) -> None:
    """Compare the predictions of MODEL for DATA with its labels.

    Prints the accuracy, top-k accuracies, the mean F1 of the classes and which classes are taken
    for which others most often. Examples with a label that the model does not know count as errors.
    With costs, the mean cost too, and what costs most first.
    """
    data = tuple(expanded(data))
    check_output(report, (model, *data, costs))
    used = Model.load(model)
    table = None if costs is None else read_costs(costs, used.classes)
    tested = evaluate_on(used, used.read(data, how, output), output, table)
    if report:
        about = {"model": model, "test data": source_of(named(data), how.split)}
        report_on(report, model, used, tested, about)
    found = as_dict(tested.found, pairs)
    output.result({"model": model, "data": named(data), **found}, describe(tested.found, pairs))
    if report:
        output.success(f"wrote {report}")


@dataclass(frozen=True)
class Tested:
    """Examples that a model was evaluated on, and what came out."""

    data: Dataset
    X: Features
    found: Evaluation


def evaluate_on(model: Model, data: Dataset, output: Output, costs: Costs | None = None) -> Tested:
    """Evaluate, and say so where labels are unknown; by default with the model's own costs."""
    y = like_labels(need_labels(data), model.classes)
    X = model.features(data, output)
    found = evaluate_scores(model.classifier, X, y, costs)
    warn_of_unseen(found, data.source, output)
    return Tested(data, X, found)


def warn_of_unseen(found: Evaluation, source: str, output: Output) -> None:
    """Count examples that cannot be right."""
    if not found.n_unseen:
        return
    shown = ", ".join(shorten(str(label), 30) for label in found.unseen[:SHOWN_LABELS])
    if len(found.unseen) > SHOWN_LABELS:
        shown += f" and {len(found.unseen) - SHOWN_LABELS} more"
    output.warn(
        f"{source}: {found.n_unseen:,} of {found.n_examples:,} examples have a label that the "
        f"model does not know ({shown}); they count as errors"
    )


def accuracy(found: Evaluation) -> str:
    """The accuracy, and what it counts."""
    return f"{percent(found.accuracy)} ({found.n_correct:,} of {found.n_examples:,})"


def describe(found: Evaluation, n_pairs: int = PAIRS) -> list[str]:
    """Accuracies, and the most confused pairs."""
    first, *others = facts(
        [
            ("accuracy", accuracy(found)),
            *_cost_facts(found),
            *((f"top-{k}", percent(value)) for k, value in _top_k(found).items()),
            ("macro F1", percent(found.macro_f1)),
            *(
                []
                if found.calibration_error is None
                else [("calibration error", percent(found.calibration_error))]
            ),
        ]
    )
    pairs = found.confused_pairs(n_pairs)
    titles = ["true", "predicted", "#examples", "#of the true class"]
    rows = [
        [shorten(str(p.true)), shorten(str(p.predicted)), f"{p.count:,}", f"{p.share:.0%}"]
        for p in pairs
    ]
    if found.costs is not None:
        titles += ["#cost of each", "#of all"]
        for row, pair in zip(rows, pairs, strict=True):
            known = pair.cost is not None
            row += [cost_text(pair.total / pair.count), cost_text(pair.total)] if known else "??"
    return [bold(first), *others, *(["", *table(titles, rows)] if pairs else [])]


def _cost_facts(found: Evaluation) -> list[tuple[str, str]]:
    if found.mean_cost is None:
        return []
    among = f" (of {found.n_examples - found.n_unseen:,} examples)" if found.n_unseen else ""
    return [("mean cost", cost_text(found.mean_cost) + among)]


def _top_k(found: Evaluation) -> dict[str, float]:
    """Top-k accuracies worth printing."""
    return {str(k): found.top_k_accuracy(k) for k in (3, 5, 10) if k < found.n_classes}


def as_dict(found: Evaluation, n_pairs: int = PAIRS) -> dict[str, object]:
    """The same for machines."""
    return {
        "n_examples": found.n_examples,
        "accuracy": found.accuracy,
        **({} if found.mean_cost is None else {"mean_cost": found.mean_cost}),
        "top_k": _top_k(found),
        "macro_f1": found.macro_f1,
        **(
            {}
            if found.calibration_error is None
            else {"calibration_error": found.calibration_error}
        ),
        "n_unseen": found.n_unseen,
        "unseen_labels": found.unseen,
        "confused_pairs": [asdict(pair) for pair in found.confused_pairs(n_pairs)],
    }


def source_of(path: str, split: str | None) -> str:
    """A file and the part of it that was used, for the report."""
    return path if split is None else f"{path} ({split})"


def report_on(
    path: str,
    name: str,
    model: Model,
    tested: Tested | None,
    about: Mapping[str, str],
) -> None:
    """Write the HTML report on what the file `name` taught or is."""
    name = "standard input" if name == "-" else Path(name).name
    title = f"{name}: {len(model.classes):,} classes"
    found: dict[str, Any] = {}
    if tested is not None:
        found = {
            "evaluation": tested.found,
            "features": tested.X,
            "text": model.readable(tested.data),
        }
    with writing(path):
        write_report(path, model.estimator, title=title, data=about, **found)
