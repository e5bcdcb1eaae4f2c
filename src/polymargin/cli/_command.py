"""Help pages: options in groups, an example at the end, colours on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from polymargin.cli._output import Output, colours

WIDEST = 100  # columns of a help page, where the terminal has them
LAST = "Other"


class _Formatter(click.HelpFormatter):
    """Bold headings and coloured option names, which click leaves out when piped."""

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{click.style(heading + ':', bold=True)}\n")

    def write_dl(self, rows: Any, col_max: int = 34, col_spacing: int = 2) -> None:
        rows = [(click.style(first, fg="cyan"), second) for first, second in rows]
        super().write_dl(rows, col_max=col_max, col_spacing=col_spacing)


class _Context(click.Context):
    formatter_class = _Formatter


class HelpMixin:
    """Colours of a help page as those of other output."""

    context_class = _Context

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Let ``NO_COLOR`` count for what click itself prints."""
        kwargs.setdefault("color", colours(sys.stdout))
        kwargs.setdefault("max_content_width", WIDEST)
        context: click.Context = super().make_context(*args, **kwargs)  # type: ignore[misc]
        return context


class Group(HelpMixin, click.Group):  # type: ignore[misc]
    """The command with its subcommands, in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the subcommands."""
        return list(self.commands)


class Command(HelpMixin, click.Command):  # type: ignore[misc]
    """A command whose help groups the options and ends with an example.

    Parameters
    ----------
    example : str
        Command lines.
    """

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        kwargs.setdefault("no_args_is_help", True)
        super().__init__(*args, **kwargs)
        self.example = example

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options group by group, in the order of their definition."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", LAST), []).append(record)
        groups[LAST] = groups.pop(LAST, [])
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        if self.example:
            with formatter.section("Example"):
                for line in self.example.strip().splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class _GroupedOption(click.Option):
    def __init__(self, *args: Any, group: str = LAST, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


def option(group: str, *names: str, **kwargs: Any) -> Callable[[Any], Any]:
    """An option under a heading of the help page; its default is shown."""
    kwargs.setdefault("show_default", kwargs.get("default") is not None)
    return click.option(*names, cls=_GroupedOption, group=group, **kwargs)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--quiet`` and ``--json``; the command gets `quiet` and `as_json`."""
    quiet = option("Output", "-q", "--quiet", is_flag=True, help="No notes, no progress bar.")
    as_json = option("Output", "--json", "as_json", is_flag=True, help="The result as JSON.")
    return quiet(as_json(function))


def make_output(quiet: bool, as_json: bool) -> Output:
    """The printer for these options."""
    return Output(quiet=quiet, as_json=as_json)
