"""How long the experiments of the papers will take, from what they took before.

    python -m benchmarks.papers.costs [--quick] [NAME ...]

Every result file keeps what each of its cells cost (``costs``, CPU seconds, for the whole protocol
and for the reduced one), and what is finished is in the cache of the study: the rest is what a run
will take. Where the whole protocol was never run as such, that is said.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers import common
from benchmarks.papers.experiments import EXPERIMENTS
from benchmarks.reference_optima import read_json


@dataclass(frozen=True)
class Cost:
    """CPU seconds of an experiment: all of it, and what is left; None where it never ran.

    `unknown` are cells of the plan that were never measured, whose costs are not in the others.
    """

    name: str
    whole: float | None
    left: float | None
    unknown: int = 0


def cost(name: str, kind: str, folder: Path = common.FOLDER) -> Cost:
    """What an experiment takes, from its result file, and what its cache still lacks.

    Parameters
    ----------
    name : str
        A key of ``EXPERIMENTS``.
    kind : {"quick", "full"}
    folder : Path
        Of the result files.
    """
    content = read_json(folder / f"{name}.json")
    known: dict[str, float] | None = content.get("costs", {}).get(kind)
    if known is None:
        return Cost(name, None, None)
    stored: dict[str, Any] = read_json(folder / ".cache" / f"{name}.json")
    done = stored["cells"] if stored.get("versions") == common.versions() else {}
    left = sum(seconds for key, seconds in known.items() if key not in done)
    unknown = content["missing_cells"] if content["run"] == kind else 0
    return Cost(name, sum(known.values()), left, unknown)


def report(costs: Sequence[Cost]) -> str:
    """A table, the sum, and what is not known."""

    def minutes(seconds: float | None) -> str:
        return "not known" if seconds is None else f"{seconds / 60:.1f}"

    rows = [[c.name, minutes(c.whole), minutes(c.left), c.unknown or None] for c in costs]
    header = ["experiment", "CPU minutes", "of them left", "and cells of unknown cost"]
    text = common.markdown_table(header, rows)
    whole, left = (
        sum(value for c in costs if (value := getattr(c, part)) is not None)
        for part in ("whole", "left")
    )
    text += f"\nTogether {whole / 60:.0f} CPU minutes, of which {left / 60:.0f} are left"
    unknown = [c.name for c in costs if c.whole is None]
    text += f", and what was never run as a whole: {', '.join(unknown)}" if unknown else ""
    return text + ". Loading data and drawing come on top.\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Say it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; default: all")
    parser.add_argument("--quick", action="store_true", help="the reduced versions")
    parser.add_argument("--results", type=Path, default=common.FOLDER)
    options = parser.parse_args(argv)
    unknown = set(options.names) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}")
    kind = "quick" if options.quick else "full"
    names = options.names or list(EXPERIMENTS)
    print(report([cost(name, kind, options.results) for name in names]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
