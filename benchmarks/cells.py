"""Results kept as they are measured, one JSON line each, so that an interrupted run goes on.

A cell is found by its key: everything the figure depends on (data, solver, setting, versions,
machine). A line cut off by an interruption is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Key = dict[str, Any]


class CellStore:
    """An append-only file of ``{"key": ..., "value": ...}`` lines; the last one of a key counts.

    Parameters
    ----------
    path : Path
        The file; created with the first cell.
    fresh : bool, default=False
        Whether to forget what the file holds.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        if fresh:
            path.unlink(missing_ok=True)
        self._cells: dict[str, tuple[Key, Any]] = {}
        for line in path.read_text().splitlines() if path.is_file() else []:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            self._cells[_canonical(entry["key"])] = (entry["key"], entry["value"])

    def get(self, key: Key) -> Any | None:
        """Return the value of a key, None where there is none."""
        found = self._cells.get(_canonical(key))
        return None if found is None else found[1]

    def put(self, key: Key, value: Any) -> None:
        """Keep a value, on disk at once."""
        self._cells[_canonical(key)] = (key, value)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"key": key, "value": value}) + "\n")

    def take_over(self, cells: Iterable[tuple[Key, Any]]) -> None:
        """Know cells measured elsewhere, where none of their own is here; nothing is written."""
        for key, value in cells:
            self._cells.setdefault(_canonical(key), (key, value))

    def __iter__(self) -> Iterator[tuple[Key, Any]]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)


def _canonical(key: Key) -> str:
    return json.dumps(key, sort_keys=True)
