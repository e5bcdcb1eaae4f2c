"""Commands: options in groups and in dataclasses, help pages with an example and colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

LAST = "Other"
OPTION_OF: dict[str, str] = {}  # of the commands that were imported, by the name of the field
Run = Callable[..., int | None]  # the exit status, where it is not 0
F = TypeVar("F", bound=Callable[..., object])


class OutputClosed(Exception):  # noqa: N818 (no error)
    """The reader of the output went away, as `head` does."""


class _Formatter(click.HelpFormatter):
    """Bold headings and coloured option names, which click leaves out when piped."""

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{click.style(heading + ':', bold=True)}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 34, col_spacing: int = 2
    ) -> None:
        rows = [(click.style(first, fg="cyan"), second) for first, second in rows]
        super().write_dl(rows, col_max=col_max, col_spacing=col_spacing)


class _Context(click.Context):
    formatter_class = _Formatter


class Group(click.Group):
    """The command with its subcommands, which are imported when they are called.

    `briefly` says in a line what each does, in the order of the help page; the command ``train`` is
    ``train`` of the module ``train`` in the package `commands_in`.
    """

    context_class = _Context

    def __init__(self, *args: Any, commands_in: str, briefly: Mapping[str, str], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._package, self._briefly = commands_in, briefly

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; the reader of its output may go away, which click calls an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosed from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the subcommands."""
        return list(self._briefly)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A subcommand by its name."""
        if cmd_name not in self._briefly:
            return None
        module = import_module(f"{self._package}.{cmd_name}")
        found: click.Command = getattr(module, cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._briefly.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of subcommands, and the options of the group."""
        names = [
            CompletionItem(name, help=said)
            for name, said in self._briefly.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


class _Command(click.Command):
    """A command whose help groups the options and ends with an example."""

    context_class = _Context

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
        """Write the example as it is."""
        with formatter.section("Example"):
            for line in (self.epilog or "").strip().splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class _GroupedOption(click.Option):
    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


def command(example: str) -> Callable[[Run], click.Command]:
    """Make a function a command whose help page ends with these command lines."""
    return click.command(cls=_Command, epilog=example)


def option(group: str, *names: str, **kwargs: Any) -> Callable[[F], F]:
    """An option under a heading of the help page; its default is shown."""
    kwargs.setdefault("show_default", kwargs.get("default") is not None)
    return click.option(*names, cls=_GroupedOption, group=group, **kwargs)


def setting(group: str, *names: str, **kwargs: Any) -> Any:
    """An option that is a field of a dataclass, for :func:`takes`."""
    return field(metadata={"group": group, "names": names, "option": kwargs})


def takes(kind: type, parameter: str) -> Callable[[Run], Run]:
    """Give a command the options of a dataclass; the function gets them as one object."""

    def decorate(function: Run) -> Run:
        @wraps(function)
        def run(**given: object) -> int | None:
            values = {each.name: given.pop(each.name) for each in fields(kind)}
            return function(**given, **{parameter: kind(**values)})

        for each in reversed(fields(kind)):
            how = each.metadata
            OPTION_OF[each.name] = max(how["names"], key=len).split("/")[0]
            run = option(how["group"], *how["names"], each.name, **how["option"])(run)
        return run

    return decorate
