"""``polymargin predict``: labels for the examples of a file."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import click
import numpy as np
from numpy.typing import NDArray

from polymargin.cli._command import Command, make_output, option, output_options
from polymargin.cli._data import DataOptions, data_options, like_labels
from polymargin.cli._errors import CommandError, Exit, check_output
from polymargin.cli._evaluation import warn_of_unseen
from polymargin.cli._model import Model
from polymargin.cli._output import Output, percent, to_json
from polymargin.evaluation import Evaluation, encode_labels
from polymargin.io import Dataset
from polymargin.storage import replacing

EXAMPLE = """
polymargin predict model.pmz new.jsonl -o labels.txt
polymargin predict model.pmz test.svm --top-k 5
zcat new.jsonl.gz | polymargin predict model.pmz - --scores
"""


@click.command(cls=Command, example=EXAMPLE)
@click.argument("model")
@click.argument("data")
@data_options
@option("Data", "--split", metavar="[FIELD=]VALUE,...", help="Predict rows with this value only.")
@option(
    "Predictions",
    "--top-k",
    type=click.IntRange(1),
    metavar="K",
    help="The K best labels, separated by tabs.",
)
@option(
    "Predictions",
    "--scores",
    is_flag=True,
    help="A column with the score of every class, under a header.",
)
@option("Output", "-o", "--output", "target", metavar="FILE", help="[standard output]")
@output_options
def predict(
    model: str, data: str, top_k: int | None, scores: bool, target: str | None, **options: Any
) -> int:
    """Predict the examples of DATA with MODEL: a label per line.

    With labels in DATA, the accuracy goes to standard error. With --json, a line is an object with
    the label, and with --top-k or --scores these too.
    """
    output = make_output(options["quiet"], options["as_json"])
    check_output(target, (model, data))
    used = Model.load(model)
    if top_k is not None and top_k > len(used.classes):
        raise CommandError(
            f"--top-k {top_k}: the model has {len(used.classes)} classes", Exit.USAGE
        )
    how = DataOptions(options["format"], options["label"], options["text"], options["index_base"])
    examples = used.read(data, how, options["split"], output)
    X = used.features(examples, output)
    predicted = []
    with _writing(target) as file:
        if scores and not output.as_json:
            file.write("\t".join(["label", *map(_one_line, used.classes.tolist())]) + "\n")
        for block in used.scores(X):
            predicted.append(np.argmax(block, axis=1))
            _write(file, block, used.classes, top_k, scores, output.as_json)
    _say_accuracy(np.concatenate(predicted), used, examples, output)
    return Exit.OK


def _write(
    file: TextIO,
    scores: NDArray,
    classes: NDArray,
    top_k: int | None,
    all_scores: bool,
    as_json: bool,
) -> None:
    labels = classes.tolist()
    order = np.argsort(-scores, axis=1, kind="stable")[:, : top_k or 1]
    for row, best in zip(scores, order.tolist(), strict=True):
        if as_json:
            record: dict[str, Any] = {"label": labels[best[0]]}
            if top_k:
                record["top_k"] = [{"label": labels[i], "score": row[i]} for i in best]
            if all_scores:
                record["scores"] = dict(zip(map(str, labels), row.tolist(), strict=True))
            file.write(to_json(record) + "\n")
            continue
        cells = [_one_line(labels[i]) for i in best]
        if all_scores:
            cells += [f"{score:.9g}" for score in row]
        file.write("\t".join(cells) + "\n")


def _one_line(label: Any) -> str:
    """A label on a line of its own: line breaks and tabs inside of it become spaces."""
    text = str(label)
    return text if text.isprintable() else " ".join(text.split())


@contextlib.contextmanager
def _writing(target: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears under its name when it is complete."""
    if target in (None, "-"):
        yield sys.stdout
        return
    assert target is not None
    with replacing(target) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield file
        file.detach()


def _say_accuracy(predicted: NDArray, model: Model, data: Dataset, output: Output) -> None:
    if data.y is None:
        return
    labels, true = encode_labels(like_labels(data.y, model.classes), model.classes)
    n_classes = len(model.classes)
    rank = np.where(true >= n_classes, -1, np.where(true == predicted, 0, n_classes))
    found = Evaluation(labels, n_classes, true, predicted, rank, np.full(len(true), np.nan))
    warn_of_unseen(found, data.source, output)
    correct = int(np.count_nonzero(true == predicted))
    output.note(f"accuracy {percent(found.accuracy)} ({correct:,} of {len(true):,})")
