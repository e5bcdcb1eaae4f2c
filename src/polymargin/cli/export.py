"""``polymargin export``: a model for other programs."""

from __future__ import annotations

from collections.abc import Callable

import click

from polymargin.cli._command import command, option, takes
from polymargin.cli._errors import about, check_output, writing
from polymargin.cli._model import Model
from polymargin.cli._output import Output
from polymargin.export import to_liblinear, to_onnx

EXAMPLE = """
polymargin export model.pmz --to liblinear -o news20.model
polymargin export model.pmz --to onnx -o model.onnx
"""
KINDS: dict[str, tuple[str, Callable[..., object]]] = {
    "liblinear": (".model", to_liblinear),
    "onnx": (".onnx", to_onnx),
}
SUFFIX = "[MODEL with the format's suffix]"


@command(EXAMPLE)
@click.argument("model")
@option("Export", "--to", "kind", type=click.Choice(list(KINDS)), required=True, help="The format.")
@option("Output", "-o", "--output", "target", metavar="FILE", help=SUFFIX)
@takes(Output, "output")
def export(model: str, kind: str, target: str | None, output: Output) -> None:
    """Write MODEL in the format of another program.

    liblinear: for LIBLINEAR's predict (linear models; labels that are no integers go to a file
    beside). onnx: for onnxruntime and others (needs the extra polymargin[onnx]).
    """
    suffix, write = KINDS[kind]
    target = target or model.removesuffix(".pmz") + suffix
    check_output(target, (model,))
    estimator = Model.load(model).estimator
    with writing(target), about(model):
        write(estimator, target)
    output.result({"model": model, "format": kind, "target": target}, [])
    output.success(f"wrote {target}")
