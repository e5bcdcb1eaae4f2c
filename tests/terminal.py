"""A program on a terminal: what it shows there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence


def on_a_terminal(command: Sequence[str], **environment: str) -> str:
    """Run a program with its output on a pseudo-terminal, and return what that shows."""
    import pty  # not on Windows

    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    env.pop("NO_COLOR", None)
    process = subprocess.Popen(command, stdout=slave, stderr=slave, env=env | environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait() == 0, shown
    return shown.decode()
