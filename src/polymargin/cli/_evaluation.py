"""How good a model is, as the commands print it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from polymargin.cli._data import like_labels, need_labels
from polymargin.cli._errors import CommandError, Exit
from polymargin.cli._model import Model
from polymargin.cli._output import Output, bold, facts, percent, shorten, table
from polymargin.evaluation import Evaluation, evaluate
from polymargin.io import Dataset
from polymargin.report import write_report
from polymargin.report._features import feature_names

PAIRS = 10
SHOWN_LABELS = 5


def evaluate_on(model: Model, data: Dataset, output: Output) -> tuple[Evaluation, Any]:
    """Evaluate, and say so where labels are unknown; also the features of the examples."""
    y = like_labels(need_labels(data), model.classes)
    X = model.features(data, output)
    found = evaluate(model.classifier, X, y)
    warn_of_unseen(found, data.source, output)
    return found, X


def warn_of_unseen(found: Evaluation, source: str, output: Output) -> None:
    """Count examples that cannot be right."""
    if not found.n_unseen:
        return
    shown = ", ".join(shorten(str(label), 30) for label in found.unseen[:SHOWN_LABELS])
    more = (
        "" if len(found.unseen) <= SHOWN_LABELS else f" and {len(found.unseen) - SHOWN_LABELS} more"
    )
    output.warn(
        f"{source}: {found.n_unseen:,} of {found.n_examples:,} examples have a label that the "
        f"model does not know ({shown}{more}); they count as errors"
    )


def describe(found: Evaluation, n_pairs: int = PAIRS) -> list[str]:
    """Accuracies, and the most confused pairs."""
    correct = int(np.count_nonzero(found.true == found.predicted))
    lines = [("accuracy", f"{percent(found.accuracy)} ({correct:,} of {found.n_examples:,})")]
    lines += [(f"top-{k}", percent(found.top_k_accuracy(k))) for k in shown_ks(found)]
    lines.append(("macro F1", percent(found.macro_f1)))
    text = facts(lines)
    text[0] = bold(text[0])
    pairs = found.confused_pairs(n_pairs)
    if pairs:
        rows = [
            (shorten(str(p.true)), shorten(str(p.predicted)), f"{p.count:,}", f"{p.share:.0%}")
            for p in pairs
        ]
        text += ["", *table(("true", "predicted", "#examples", "#of the true class"), rows)]
    return text


def shown_ks(found: Evaluation) -> list[int]:
    """Values of k worth printing."""
    return [k for k in (3, 5, 10) if k < found.n_classes]


def as_dict(found: Evaluation, n_pairs: int = PAIRS) -> dict[str, Any]:
    """The same for machines."""
    return {
        "n_examples": found.n_examples,
        "accuracy": found.accuracy,
        "top_k": {str(k): found.top_k_accuracy(k) for k in shown_ks(found)},
        "macro_f1": found.macro_f1,
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
    data: Dataset | None,
    found: Evaluation | None,
    X: Any,
    facts_on_data: Mapping[str, Any],
    trace: Mapping[str, Any] | None = None,
) -> None:
    """Write the HTML report on what the file `name` taught or is."""
    name = "standard input" if name == "-" else Path(name).name
    names = feature_names(model.estimator)
    try:
        write_report(
            path,
            model.estimator,
            evaluation=found,
            features=X,
            text=None if data is None else data.text,
            feature_names=names,
            title=f"{name}: {len(model.classes):,} classes",
            data=facts_on_data,
            trace=trace,
        )
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", Exit.OUTPUT) from error
