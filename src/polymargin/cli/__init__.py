"""The command ``polymargin``; see docs/command_line.md.

A command reads its options, calls the library and prints. What several of them need is in the
modules with an underscore.
"""

from polymargin.cli._main import main

__all__ = ["main"]
