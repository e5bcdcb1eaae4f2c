"""``polymargin predict``: labels for the examples of a file."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import TextIO

import click
import numpy as np
from numpy.typing import NDArray

from polymargin.cli._command import command, option, takes
from polymargin.cli._data import DataOptions, like_labels
from polymargin.cli._errors import CommandError, Exit, check_output, writing
from polymargin.cli._model import Model
from polymargin.cli._output import Output, to_json
from polymargin.cli.evaluate import accuracy, warn_of_unseen
from polymargin.estimators.probabilities import temperature_of
from polymargin.evaluation import compare, score_blocks, score_log_probabilities
from polymargin.storage import replacing

EXAMPLE = """
polymargin predict model.pmz new.jsonl -o labels.txt
polymargin predict model.pmz test.svm --top-k 5
polymargin predict model.pmz test.svm --proba -o probabilities.tsv
echo 'where is my card' | polymargin predict model.pmz -
"""
TOP_K_HELP = "The K best labels, separated by tabs."
SCORES_HELP = "A column with the score of every class, under a header."
PROBA_HELP = "The same with probabilities, of a model that has them."


@command(EXAMPLE)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@takes(DataOptions, "how")
@option("Predictions", "--top-k", type=click.IntRange(1), metavar="K", help=TOP_K_HELP)
@option("Predictions", "--scores", is_flag=True, help=SCORES_HELP)
@option("Predictions", "--proba", is_flag=True, help=PROBA_HELP)
@option("Output", "-o", "--output", "target", metavar="FILE", help="[standard output]")
@takes(Output, "output")
def predict(
    model: str,
    data: tuple[str, ...],
    how: DataOptions,
    top_k: int | None,
    scores: bool,
    proba: bool,
    target: str | None,
    output: Output,
) -> None:
    """Predict the examples of DATA with MODEL: a label per line.

    Several files are read one after the other. A model of texts takes a text per line as well.
    With labels in DATA, the accuracy goes to standard error. With --json, a line is an object with
    the label, and with --top-k, --scores or --proba these too.
    """
    if scores and proba:
        raise CommandError("--scores and --proba exclude each other", Exit.USAGE)
    check_output(target, (model, *data))
    used = Model.load(model)
    classes = used.classes
    if top_k is not None and top_k > len(classes):
        raise CommandError(f"--top-k {top_k}: the model has {len(classes)} classes", Exit.USAGE)
    temperature = temperature_of(used.classifier)
    if proba and temperature is None:
        raise CommandError(
            f"--proba: {model} has no probabilities; train with --probability or --loss softmax"
        )
    examples = used.read(data, how, output)
    X = used.features(examples, output)
    predicted, labels = [], classes.tolist()
    with _opened(target) as file:
        if (scores or proba) and not output.as_json:
            file.write("\t".join(["label", *map(_one_line, labels)]) + "\n")
        shown = "probabilities" if proba else "scores" if scores else None
        for _, block in score_blocks(used.classifier, X, examples.n_examples):
            predicted.append(np.argmax(block, axis=1))
            if proba and temperature is not None:
                block = np.exp(score_log_probabilities(block, temperature))
            file.writelines(_lines(block, labels, top_k, shown, output.as_json))
    if examples.y is not None:
        y = like_labels(examples.y, classes)
        found = compare(y, classes[np.concatenate(predicted)], classes)
        warn_of_unseen(found, examples.source, output)
        output.note(f"accuracy {accuracy(found)}")


def _lines(
    block: NDArray, labels: list[object], top_k: int | None, shown: str | None, as_json: bool
) -> Iterator[str]:
    """A line per row of scores or what is `shown`: an object in JSON, or cells between tabs."""
    one = "probability" if shown == "probabilities" else "score"
    ranked = np.argsort(-block, axis=1, kind="stable")[:, : top_k or 1].tolist()
    for row, best in zip(block, ranked, strict=True):
        if as_json:
            record: dict[str, object] = {"label": labels[best[0]]}
            if top_k:
                record["top_k"] = [{"label": labels[i], one: row[i]} for i in best]
            if shown:
                record[shown] = dict(zip(map(str, labels), row.tolist(), strict=True))
            yield to_json(record) + "\n"
        else:
            cells = [_one_line(labels[i]) for i in best]
            if shown:
                cells += [f"{score:.9g}" for score in row]
            yield "\t".join(cells) + "\n"


def _one_line(label: object) -> str:
    """A label on a line of its own: line breaks and tabs inside of it become spaces."""
    text = str(label)
    return text if text.isprintable() else " ".join(text.split())


@contextlib.contextmanager
def _opened(target: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears under its name when it is complete."""
    if target is None or target == "-":
        with writing("standard output"):
            yield sys.stdout
            sys.stdout.flush()
        return
    with writing(target), replacing(target) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield file
        file.detach()
