"""``polymargin demo``: a first look without any data."""

from __future__ import annotations

from dataclasses import asdict

import click

from polymargin.cli._command import Command, make_output, option, output_options
from polymargin.cli._errors import Exit
from polymargin.cli._output import bold

EXAMPLE = """
polymargin demo
polymargin demo --tol 1e-6
"""


@click.command(cls=Command, example=EXAMPLE, no_args_is_help=False)
@option("Demo", "--tol", type=click.FloatRange(0), default=1e-3, help="Relative gap to reach.")
@output_options
def demo(tol: float, quiet: bool, as_json: bool) -> int:
    """Train every loss on handwritten digits, beside scikit-learn's LinearSVC."""
    from polymargin import demo as first_look

    output = make_output(quiet, as_json)
    output.note("Handwritten digits: 10 classes, 64 pixels, three quarters for training, C = 1.")
    rows = first_look.run(tol)
    header, *lines = first_look.format_table(rows).splitlines()
    output.result({"models": [asdict(row) for row in rows]}, [bold(header), *lines])
    output.note(f"\n{first_look.EXPLANATION}")
    return Exit.OK
