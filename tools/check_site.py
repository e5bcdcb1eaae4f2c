"""Check a documentation site that was built: every public name has an entry in its inventory.

    python tools/check_site.py build/site

Public is what stands in the ``__all__`` of a module that is not listed as internal here. A name
that several modules export needs one entry, under any of them.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import polymargin

INTERNAL = {"cli", "core", "data", "files", "storage"}  # below or above the public face


def public_modules() -> Iterator[ModuleType]:
    """The package and the modules directly below it that say what they export."""
    yield polymargin
    for found in pkgutil.iter_modules(polymargin.__path__):
        if found.name not in INTERNAL and not found.name.startswith("_"):
            module = importlib.import_module(f"polymargin.{found.name}")
            if hasattr(module, "__all__"):
                yield module


def public_names() -> dict[str, list[str]]:
    """Of every public thing, the names under which it may be documented."""
    names: dict[tuple[str, int], list[str]] = {}
    for module in public_modules():
        for name in module.__all__:
            names.setdefault((name, id(getattr(module, name))), []).append(
                f"{module.__name__}.{name}"
            )
    return {paths[0]: paths for paths in names.values()}


def inventory(path: Path) -> set[str]:
    """The names of an ``objects.inv`` of Sphinx that belong to Python."""
    content = path.read_bytes()
    start = content.index(b"\n", content.index(b"zlib")) + 1
    text = zlib.decompress(content[start:]).decode()
    return set(re.findall(r"^(\S+) py:\w+ ", text, re.M))


def undocumented(entries: set[str]) -> list[str]:
    """Public names without an entry."""
    return sorted(name for name, paths in public_names().items() if entries.isdisjoint(paths))


def main() -> int:
    """Print what is missing."""
    entries = inventory(Path(sys.argv[1]) / "objects.inv")
    missing = undocumented(entries)
    print("\n".join(f"{name} has no entry in the API reference" for name in missing), end="")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
