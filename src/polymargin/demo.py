"""``python -m polymargin.demo`` is the command ``polymargin demo``."""

import sys

from polymargin.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
