"""What the commands print: results to stdout, everything else to stderr.

On a terminal it is coloured; into a pipe or with ``NO_COLOR`` it is plain text. With ``--json`` the
result is one JSON object on stdout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

import click

from polymargin.cli._command import setting
from polymargin.cli._words import in_options


def colours(stream: TextIO) -> bool:
    """Whether to colour what goes to a stream."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


@dataclass(frozen=True)
class Output:
    """Where and how a command prints; as JSON, notes are left out too."""

    quiet: bool = setting(
        "Output", "-q", "--quiet", is_flag=True, help="No notes, no progress bar."
    )
    as_json: bool = setting("Output", "--json", is_flag=True, help="The result as JSON.")

    @property
    def chatty(self) -> bool:
        """Whether notes and progress are wanted."""
        return not self.quiet and not self.as_json

    def note(self, text: str) -> None:
        """Say what is going on."""
        if self.chatty:
            _echo(text, sys.stderr, dim=True)

    def warn(self, text: str) -> None:
        """Say what the user should know, even if quiet."""
        _echo(f"warning: {in_options(text)}", sys.stderr, fg="yellow")

    def success(self, text: str) -> None:
        """Say that something has been written."""
        if self.chatty:
            _echo(text, sys.stderr, fg="green")

    @contextmanager
    def progress(self) -> Iterator[None]:
        """A bar for the training in the block, on a terminal."""
        from polymargin.solvers import show, watch, watching

        if not (self.chatty and show.is_terminal(sys.stderr)):
            yield
            return
        seen = watch.Watch()
        with watching(seen), show.drawn(seen, show.TerminalLine(sys.stderr)):
            yield

    def result(
        self, value: Mapping[str, object], lines: Iterable[str], *, aside: bool = False
    ) -> None:
        """Print the result: the value as JSON, or lines for people.

        It goes `aside`, to standard error, where standard output has a file to carry.
        """
        stream = sys.stderr if aside else sys.stdout
        for line in [to_json(value)] if self.as_json else lines:
            click.echo(line, file=stream, color=colours(stream))


def _echo(text: str, stream: TextIO, **style: Any) -> None:
    styled = click.style(text, **style)
    click.echo(styled, file=stream, color=colours(stream))


def bold(text: str) -> str:
    """Emphasised, where colours are on."""
    return click.style(text, bold=True)


def to_json(value: object) -> str:
    """One line of JSON; NaN and infinities become null, NumPy's numbers plain ones."""
    import numpy as np  # which --version and --help do without

    def plain(other: object) -> object:
        return other.tolist() if isinstance(other, np.ndarray | np.generic) else str(other)

    there_and_back = json.loads(json.dumps(value, default=plain), parse_constant=lambda _: None)
    return json.dumps(there_and_back, ensure_ascii=False)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned lines; a column whose header begins with # is set to the right."""
    right = [name.startswith("#") for name in header]
    cells = [[name.removeprefix("#") for name in header], *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return [bold(lines[0]), *lines[1:]]


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines ``name  value`` with the values under each other."""
    pairs = list(pairs)
    width = max((len(name) for name, _ in pairs), default=0)
    return [f"{name.ljust(width)}  {value}" for name, value in pairs]


def shorten(text: str, longest: int = 48) -> str:
    """A label for a table: long ones are cut, control characters shown as such."""
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return printable if len(printable) <= longest else printable[: longest - 1] + "…"
