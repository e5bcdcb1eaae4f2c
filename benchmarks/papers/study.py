"""What makes an experiment resumable, and its claims checkable.

A `Study` keeps every finished measurement (a cell) in ``FOLDER/.cache/NAME.json``, with what it
cost, when it was made and by which state of the code. An interrupted run, or a full one after a
quick one, goes on from there; ``--fresh`` starts over, and ``--report`` writes the results from the
cells there are without measuring anything. The result file ``NAME.json`` says how many cells of the
plan are missing, what each one cost (`benchmarks.papers.costs` reads that) and how old they are.

A `Claim` is a sentence of a paper, what we measured, and a verdict that code has derived from the
numbers. `Study.write` puts the claims into the json and under the Markdown, and
`benchmarks.papers.page` collects them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from benchmarks import provenance
from benchmarks.papers import common
from benchmarks.papers.measuring import measuring_code
from benchmarks.reference_optima import read_json, write_json

Verdict = Literal["yes", "no", "partly", "not tested"]


@dataclass(frozen=True)
class Claim:
    """What a paper says (`paper` names the table or figure), what we saw, whether it holds.

    `check` is what a further look at the same cells, or at others, showed: whether it is the data,
    our implementation or noise that decides.
    """

    paper: str
    claim: str
    measured: str
    holds: Verdict
    check: str = ""


def verdict(conditions: Iterable[bool | None]) -> Verdict:
    """All conditions: yes; none: no; else partly. None is one that could not be tested."""
    found = [bool(condition) for condition in conditions if condition is not None]
    if not found:
        return "not tested"
    return "yes" if all(found) else "partly" if any(found) else "no"


def on_halves(claims: Sequence[Claim], halves: Sequence[Sequence[Claim]]) -> list[Claim]:
    """Add to the checks what each half of the splits says alone: what differs is noise.

    Parameters
    ----------
    claims : sequence of Claim
        From all splits.
    halves : sequence of two sequences of Claim
        The same claims, from one half each.
    """
    words = {"yes": "holds", "no": "does not hold"}
    told = []
    for claim, one, other in zip(claims, *halves, strict=True):
        verdicts = " and ".join(words.get(half.holds, half.holds) for half in (one, other))
        text = f"on either half of the splits alone: {verdicts}"
        told.append(replace(claim, check="; ".join(part for part in (claim.check, text) if part)))
    return told


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims as Markdown."""
    rows = [[c.claim, c.measured, c.holds] for c in claims]
    table = common.markdown_table(["claim", "measured", "holds"], rows)
    return table.replace("--:", "---")  # sentences are aligned left


CELL = {"value", "seconds", "date", "commit", "code"}  # what is kept of a measurement


def _is_whole(cell: Any) -> bool:
    return isinstance(cell, dict) and set(cell) == CELL


@dataclass
class Study:
    """One experiment: its settings, its cells and its result files.

    Attributes
    ----------
    name : str
        Stem of the result files.
    quick : bool
        The reduced version.
    folder : Path
        Where the results go.
    fresh : bool
        Forget the cells of earlier runs.
    measure : bool
        False: only report.
    missing : list of str
        Cells of the plan that are not there.
    """

    name: str
    quick: bool = False
    folder: Path = common.FOLDER
    fresh: bool = False
    measure: bool = True
    missing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        stored = {} if self.fresh else read_json(self._path)
        same = stored.get("versions") == common.versions()
        cells: dict[str, Any] = stored["cells"] if same else {}
        self._cells = {key: cell for key, cell in cells.items() if _is_whole(cell)}
        self._used: dict[str, dict[str, Any]] = {}
        if self.fresh:
            self._path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        return self.folder / ".cache" / f"{self.name}.json"

    def cell(self, key: str, compute: Callable[[], Any]) -> Any:
        """A measurement by name: the stored one, or a new one, stored at once; None if missing."""
        if key not in self._cells:
            if not self.measure:
                self.missing.append(key)
                return None
            self._cells[key] = self._measured(compute)
            part = self._path.with_suffix(".part")
            write_json(part, {"versions": common.versions(), "cells": self._cells})
            os.replace(part, self._path)  # never half a file
            print(f"{self.name}: {key}, {self._cells[key]['seconds']:.1f} s", flush=True)
        self._used[key] = self._cells[key]
        return self._cells[key]["value"]

    def _measured(self, compute: Callable[[], Any]) -> dict[str, Any]:
        began = time.process_time()
        value = json.loads(json.dumps(compute()))  # as if it had been read
        return {
            "value": value,
            "seconds": round(time.process_time() - began, 3),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "commit": provenance.commit(),
            "code": measuring_code(f"benchmarks.papers.{self.name}"),
        }

    def _origin(self) -> dict[str, Any]:
        """When and with what the cells were measured, and what they cost."""
        kind = "quick" if self.quick else "full"
        before = read_json(self.folder / f"{self.name}.json").get("costs", {})

        def different(part: str) -> list[Any]:
            return list(dict.fromkeys(cell[part] for cell in self._used.values()))

        dates = sorted(different("date"))
        return {
            "date": dates[-1] if dates else datetime.datetime.now(datetime.UTC).date().isoformat(),
            "commit": (different("commit") or [provenance.commit()])[-1],
            "measured": {
                "dates": dates,
                "commits": different("commit"),
                "code": different("code"),
            },
            "costs": before | {kind: {key: cell["seconds"] for key, cell in self._used.items()}},
        }

    def write(
        self,
        text: str,
        content: dict[str, Any],
        claims: Sequence[Claim],
        figure: Figure | None = None,
    ) -> None:
        """Write the results: text and claims, json, figure."""
        state = {
            **self._origin(),
            "run": "quick" if self.quick else "full",
            "missing_cells": len(self.missing),
            "claims": [asdict(claim) for claim in claims],
        }
        note = ""
        if self.missing:
            note = f"\nNot run: {len(self.missing)} cells of the plan.\n"
        text = text.rstrip() + "\n" + note + "\n# Claims\n\n" + claims_table(claims)
        common.write_results(self.name, text, state | content, figure, self.folder)


def run(
    name: str,
    experiment: Callable[[Study], None],
    doc: str | None,
    argv: Sequence[str] | None = None,
) -> int:
    """Command line of a module, one thread."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="the reduced version")
    effort.add_argument("--full", action="store_true", help="the whole protocol (default)")
    parser.add_argument("--fresh", action="store_true", help="forget the cells of earlier runs")
    parser.add_argument("--report", action="store_true", help="report the cells there are")
    parser.add_argument("--output", type=Path, default=common.FOLDER, help="folder for the results")
    options = parser.parse_args(argv)
    if options.fresh and options.report:
        parser.error("--fresh forgets what --report needs: choose one")
    with threadpool_limits(1):
        experiment(Study(name, options.quick, options.output, options.fresh, not options.report))
    return 0
