"""``polymargin evaluate``: how good a model is on labelled examples."""

from __future__ import annotations

from typing import Any

import click

from polymargin.cli._command import Command, make_output, option, output_options
from polymargin.cli._data import DataOptions, data_options
from polymargin.cli._errors import Exit, check_output
from polymargin.cli._evaluation import PAIRS, as_dict, describe, evaluate_on, report_on, source_of
from polymargin.cli._model import Model

EXAMPLE = """
polymargin evaluate model.pmz test.svm
polymargin evaluate model.pmz clinc150.jsonl.gz --split test --report report.html
"""


@click.command(cls=Command, example=EXAMPLE)
@click.argument("model")
@click.argument("data")
@data_options
@option("Data", "--split", metavar="[FIELD=]VALUE,...", help="Use rows with this value only.")
@option("Output", "--pairs", type=click.IntRange(0), default=PAIRS, help="Confused pairs to show.")
@option("Output", "--report", metavar="FILE", help="Write an HTML report.")
@output_options
def evaluate(model: str, data: str, pairs: int, report: str | None, **options: Any) -> int:
    """Compare the predictions of MODEL for DATA with its labels.

    Prints the accuracy, top-k accuracies, the mean F1 of the classes and which classes are taken
    for which others most often. Examples with a label that the model does not know count as errors.
    """
    output = make_output(options["quiet"], options["as_json"])
    check_output(report, (model, data))
    used = Model.load(model)
    how = DataOptions(options["format"], options["label"], options["text"], options["index_base"])
    examples = used.read(data, how, options["split"], output)
    found, X = evaluate_on(used, examples, output)
    if report:
        facts = {"model": model, "test data": source_of(data, options["split"])}
        report_on(report, model, used, examples, found, X, facts)
    output.result({"model": model, "data": data, **as_dict(found, pairs)}, describe(found, pairs))
    if report:
        output.success(f"wrote {report}")
    return Exit.OK
