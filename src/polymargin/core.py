"""The compiled core, in the instruction set that suits this machine.

The environment variable ``POLYMARGIN_ISA`` (``baseline``, ``avx2`` or ``avx512``) overrides the
choice, for tests and for comparing. Types come from a stub that the build writes (``_core.pyi``).
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from polymargin import _core as core

__all__ = ["CompiledRows", "core", "instruction_set"]

LEVELS = ("baseline", "avx2", "avx512")


def _choose(wanted: str | None) -> tuple[str, ModuleType]:
    built = [level for level in LEVELS if find_spec(f"polymargin._core_{level}")]
    if not built:
        raise ImportError(
            "polymargin's compiled part is missing: install the package (pip install .), or build "
            "it in place as CONTRIBUTING.md says."
        )
    best = importlib.import_module(f"polymargin._core_{built[0]}").best_instruction_set()
    if wanted is not None and wanted not in LEVELS:
        raise ImportError(f"POLYMARGIN_ISA={wanted!r}: expected one of {', '.join(LEVELS)}.")
    if wanted is not None and LEVELS.index(wanted) > LEVELS.index(best):
        raise ImportError(f"POLYMARGIN_ISA={wanted!r}: this machine runs at most {best!r}.")
    levels = [level for level in built if LEVELS.index(level) <= LEVELS.index(wanted or best)]
    level = max(levels, key=LEVELS.index, default=built[0])  # the nearest below what is wanted
    return level, importlib.import_module(f"polymargin._core_{level}")


# Of two classes that differ in precision alone, the one in single stands for both: arrays of
# unknown precision (`Floats`) fit what it takes.
CompiledRows: TypeAlias = "core.RowsF32"

instruction_set: str
instruction_set, core = _choose(os.environ.get("POLYMARGIN_ISA"))
