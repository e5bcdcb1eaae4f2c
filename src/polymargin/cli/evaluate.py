"""``polymargin evaluate``: how good a model is on labelled examples."""

from __future__ import annotations

import click

from polymargin.cli._command import command, option, output_options, takes
from polymargin.cli._data import DataOptions
from polymargin.cli._errors import Exit, check_output
from polymargin.cli._evaluation import PAIRS, as_dict, describe, evaluate_on, report_on, source_of
from polymargin.cli._model import Model
from polymargin.cli._output import Output

EXAMPLE = """
polymargin evaluate model.pmz test.svm
polymargin evaluate model.pmz clinc150.jsonl.gz --split test --report report.html
"""


@command(EXAMPLE)
@click.argument("model")
@click.argument("data")
@takes(DataOptions, "how")
@option("Data", "--split", metavar="[FIELD=]VALUE,...", help="Use rows with this value only.")
@option("Output", "--pairs", type=click.IntRange(0), default=PAIRS, help="Confused pairs to show.")
@option("Output", "--report", metavar="FILE", help="Write an HTML report.")
@output_options
def evaluate(
    model: str,
    data: str,
    how: DataOptions,
    split: str | None,
    pairs: int,
    report: str | None,
    output: Output,
) -> int:
    """Compare the predictions of MODEL for DATA with its labels.

    Prints the accuracy, top-k accuracies, the mean F1 of the classes and which classes are taken
    for which others most often. Examples with a label that the model does not know count as errors.
    """
    check_output(report, (model, data))
    used = Model.load(model)
    tested = evaluate_on(used, used.read(data, how, split, output), output)
    if report:
        about = {"model": model, "test data": source_of(data, split)}
        report_on(report, model, used, tested, about)
    found = as_dict(tested.found, pairs)
    output.result({"model": model, "data": data, **found}, describe(tested.found, pairs))
    if report:
        output.success(f"wrote {report}")
    return Exit.OK
