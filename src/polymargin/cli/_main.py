"""The command with its subcommands, and what every way to fail looks like from outside."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence

import click

from polymargin.cli._command import Group, OutputClosed
from polymargin.cli._errors import Exit
from polymargin.cli._output import Output, colours, to_json
from polymargin.cli._words import hint_for, in_options
from polymargin.version import __version__

DEBUG = "POLYMARGIN_DEBUG"
WIDEST = 100  # columns of a help page, where the terminal has them

# the commands, each of a module of its name, and what the list of them says
COMMANDS = {
    "train": "Train a model on DATA and write it to a file.",
    "predict": "Predict the examples of DATA with MODEL: a label per line.",
    "evaluate": "Compare the predictions of MODEL for DATA with its labels.",
    "inspect": "Describe a model file: class, parameters, certificate, labels, size.",
    "convert": "Convert DATA to TARGET: .npz, .svm, .parquet, .csv, or else a directory.",
    "export": "Write MODEL in the format of another program.",
    "demo": "Train every loss on handwritten digits, beside scikit-learn's LinearSVC.",
}


@click.group(cls=Group, commands_in="polymargin.cli", briefly=COMMANDS)
@click.version_option(__version__, message="%(prog)s %(version)s")
def app() -> None:
    """Train multiclass support vector machines to a certified optimum, and use them.

    `polymargin COMMAND --help` shows the options of a command and an example.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; return one of `Exit`."""
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        # names of a table's columns have been matched, and arrays have none
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        status = app.main(
            arguments,
            prog_name="polymargin",
            standalone_mode=False,
            color=colours(sys.stdout),  # also for what click itself prints
            max_content_width=WIDEST,
        )
        sys.stdout.flush()
        return int(status or Exit.OK)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)  # of errors in the command line
        said = _words_of(error, arguments)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        code = getattr(error, "code", error.exit_code)  # our own errors have a code each
        return _fail(said + hint, code, arguments)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", Exit.INTERRUPTED, arguments)
    except (OutputClosed, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except MemoryError as error:
        return _fail(f"not enough memory ({error})", Exit.FAILED, arguments)
    except ImportError as error:  # an extra that is not installed: the message names it
        return _fail(str(error), Exit.FAILED, arguments)
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        text = f"{type(error).__name__}: {error} ({DEBUG}=1 shows where)"
        return _fail(text, Exit.FAILED, arguments)


def _words_of(error: click.ClickException, arguments: list[str]) -> str:
    """The message of an error, with a hint where there is one."""
    said = error.format_message()
    hint = None
    if isinstance(error, click.NoSuchOption):
        hint = hint_for(error.option_name, arguments)
    return f"{said} {hint}." if hint else said


def _show_warning(message: Warning | str, *where: object, **how: object) -> None:
    """A warning of a library as one line, without the place in its code."""
    Output(quiet=False, as_json=False).warn(str(message))


def _fail(message: str, code: int, arguments: list[str]) -> int:
    message = in_options(message)
    if "--json" in arguments:
        click.echo(to_json({"error": message, "exit_code": int(code)}), err=True)
    else:
        styled = f"{click.style('error:', fg='red', bold=True)} {message}"
        click.echo(styled, err=True, color=colours(sys.stderr))
    return int(code)
