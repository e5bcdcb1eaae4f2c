"""``polymargin inspect``: what a model file holds."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from polymargin.cli._command import Command, make_output, output_options
from polymargin.cli._errors import Exit, reading
from polymargin.cli._output import bold, facts, shorten
from polymargin.io import ModelCard, inspect_model

EXAMPLE = """
polymargin inspect model.pmz
polymargin inspect model.pmz --json
"""
SHOWN = 10


@click.command(cls=Command, example=EXAMPLE)
@click.argument("model")
@output_options
def inspect(model: str, quiet: bool, as_json: bool) -> int:
    """Describe a model file: class, parameters, certificate, labels, size.

    The weights are not read, so that it takes no longer for a large model.
    """
    output = make_output(quiet, as_json)
    with reading(model):
        card = inspect_model(model)
    output.result(_as_dict(model, card), _lines(model, card))
    return Exit.OK


def _lines(path: str, card: ModelCard) -> list[str]:
    certificate = card.certificate
    gap = certificate.get("dual_gap")
    certified = gap is not None and np.isfinite(gap)
    pairs = [
        ("pipeline", " → ".join(card.steps)),
        ("classes", f"{len(card.classes):,}: {_listed(card.classes)}"),
        ("features", f"{card.n_features:,}{_names(card.feature_names)}"),
        ("objective", _number(certificate.get("objective"), ".8g")),
        ("lower bound", _number(certificate.get("dual_objective"), ".8g")),
        ("certified gap", _number(gap, ".2e") if certified else "none"),
        ("passes", _number(certificate.get("n_iter"), ",")),
        ("file", f"{_bytes(card.file_bytes)}, format {card.format_version}, {_versions(card)}"),
    ]
    shown = {name: value for name, value in card.params.items() if value is not None}
    return [
        bold(f"{path}: {card.kind}"),
        *facts(pairs),
        "",
        bold("parameters"),
        *facts((name, shorten(str(value), 90)) for name, value in shown.items()),
    ]


def _as_dict(path: str, card: ModelCard) -> dict[str, Any]:
    return {
        "path": path,
        "kind": card.kind,
        "steps": card.steps,
        "params": card.params,
        "certificate": card.certificate,
        "classes": card.classes,
        "n_features": card.n_features,
        "feature_names": card.feature_names,
        "file_bytes": card.file_bytes,
        "format_version": card.format_version,
        "written_with": card.written_with,
    }


def _listed(classes: Any) -> str:
    shown = ", ".join(shorten(str(label), 24) for label in classes[:SHOWN])
    return shown + (", …" if len(classes) > SHOWN else "")


def _names(names: list[str] | None) -> str:
    return "" if names is None else f": {_listed(names)}"


def _number(value: Any, form: str) -> str:
    return "not computed" if value is None or not np.isfinite(value) else format(value, form)


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _versions(card: ModelCard) -> str:
    found = ", ".join(f"{name} {version}" for name, version in card.written_with.items())
    return f"written with {found}" if found else "written with unknown versions"
