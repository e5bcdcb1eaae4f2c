"""``polymargin demo``: a first look without any data."""

from __future__ import annotations

from dataclasses import asdict

import click

from polymargin.cli._command import command, option, takes
from polymargin.cli._errors import Exit
from polymargin.cli._output import Output, bold

EXAMPLE = """
polymargin demo
polymargin demo --tol 1e-6
"""


@command(EXAMPLE, no_args_is_help=False)
@option("Demo", "--tol", type=click.FloatRange(0), default=1e-3, help="Relative gap to reach.")
@takes(Output, "output")
def demo(tol: float, output: Output) -> int:
    """Train every loss on handwritten digits, beside scikit-learn's LinearSVC."""
    from polymargin import demo as first_look  # scikit-learn's data sets take time to import

    output.note(first_look.INTRODUCTION)
    rows = first_look.run(tol)
    header, *lines = first_look.format_table(rows).splitlines()
    output.result({"models": [asdict(row) for row in rows]}, [bold(header), *lines])
    output.note(f"\n{first_look.EXPLANATION}")
    return Exit.OK
