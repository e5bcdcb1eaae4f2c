"""Coverage-guided fuzzing by Atheris: ``python -m fuzz.run TARGET CORPUS... [-max_total_time=60]``.

The arguments after the target are those of libFuzzer.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["polymargin"]):
    from fuzz.targets import TARGETS


def main() -> None:
    """Fuzz one target until the time is over or something is found."""
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
