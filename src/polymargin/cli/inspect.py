"""``polymargin inspect``: what a model file holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click
import numpy as np
from numpy.typing import NDArray

from polymargin.cli._command import command, takes
from polymargin.cli._errors import reading
from polymargin.cli._output import Output, bold, facts, shorten
from polymargin.io import ModelCard, inspect_model

EXAMPLE = """
polymargin inspect model.pmz
polymargin inspect model.pmz --json
"""
SHOWN = 10


@command(EXAMPLE)
@click.argument("model")
@takes(Output, "output")
def inspect(model: str, output: Output) -> None:
    """Describe a model file: class, parameters, certificate, labels, size.

    The weights are not read, so that it takes no longer for a large model.
    """
    with reading(model):
        card = inspect_model(model)
    output.result({"path": model, **vars(card)}, _lines(model, card))


def _lines(path: str, card: ModelCard) -> list[str]:
    proof = card.certificate
    names = "" if card.feature_names is None else f": {_listed(card.feature_names)}"
    versions = ", ".join(f"{name} {version}" for name, version in card.written_with.items())
    file = f"{_size(card.file_bytes)}, format {card.format_version}"
    pairs = [
        ("pipeline", " → ".join(card.steps)),
        ("classes", f"{len(card.classes):,}: {_listed(card.classes)}"),
        ("features", f"{card.n_features:,}{names}"),
        ("objective", _number(proof.get("objective"), ".8g")),
        ("lower bound", _number(proof.get("dual_objective"), ".8g")),
        ("certified gap", _number(proof.get("dual_gap"), ".2e", "none")),
        ("passes", _number(proof.get("n_iter"), ",")),
        *([] if card.temperature is None else [("temperature", f"{card.temperature:.4g}")]),
        ("file", f"{file}, written with {versions or 'unknown versions'}"),
    ]
    shown = {name: value for name, value in card.params.items() if value is not None}
    columns = card.columns or []
    about = ["", bold("columns"), *facts((name, text) for name, text in columns)]
    return [
        bold(f"{path}: {card.kind}"),
        *facts(pairs),
        *(about if columns else []),
        "",
        bold("parameters"),
        *facts((name, _said(value)) for name, value in shown.items()),
    ]


def _size(n_bytes: float) -> str:
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    units = ("kB", "MB", "GB")
    power = min(len(units), int(math.log(n_bytes, 1000)))
    return f"{n_bytes / 1000**power:.1f} {units[power - 1]}"


def _said(value: object) -> str:
    if isinstance(value, np.ndarray) and value.ndim == 2:  # costs between classes
        return f"{' x '.join(map(str, value.shape))} numbers, {value.min():g} to {value.max():g}"
    return shorten(str(value), 90)


def _listed(labels: Sequence[object] | NDArray) -> str:
    shown = ", ".join(shorten(str(label), 24) for label in labels[:SHOWN])
    return shown + (", …" if len(labels) > SHOWN else "")


def _number(value: float | None, form: str, otherwise: str = "not computed") -> str:
    return otherwise if value is None or not np.isfinite(value) else format(value, form)
