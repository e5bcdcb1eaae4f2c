"""``polymargin export``: a model for other programs."""

from __future__ import annotations

from typing import Any

import click

from polymargin.cli._command import Command, make_output, option, output_options
from polymargin.cli._errors import CommandError, Exit, check_output
from polymargin.cli._model import Model

EXAMPLE = """
polymargin export model.pmz --to liblinear -o news20.model
polymargin export model.pmz --to onnx -o model.onnx
"""
SUFFIXES = {"liblinear": ".model", "onnx": ".onnx"}


@click.command(cls=Command, example=EXAMPLE)
@click.argument("model")
@option(
    "Export", "--to", "kind", type=click.Choice(list(SUFFIXES)), required=True, help="The format."
)
@option(
    "Output", "-o", "--output", "target", metavar="FILE", help="[MODEL with the format's suffix]"
)
@output_options
def export(model: str, kind: str, target: str | None, **options: Any) -> int:
    """Write MODEL in the format of another program.

    liblinear: for LIBLINEAR's predict (linear models; labels that are no integers go to a file
    beside). onnx: for onnxruntime and others (needs the extra polymargin[onnx]).
    """
    output = make_output(options["quiet"], options["as_json"])
    target = target or model.removesuffix(".pmz") + SUFFIXES[kind]
    check_output(target, (model,))
    estimator = Model.load(model).estimator
    from polymargin.export import to_liblinear, to_onnx

    try:
        (to_liblinear if kind == "liblinear" else to_onnx)(estimator, target)
    except OSError as error:
        raise CommandError(f"{target}: {error.strerror or error}", Exit.OUTPUT) from error
    except (ValueError, TypeError) as error:
        raise CommandError(f"{model}: {error}") from error
    output.result({"model": model, "format": kind, "target": target}, [])
    output.success(f"wrote {target}")
    return Exit.OK
