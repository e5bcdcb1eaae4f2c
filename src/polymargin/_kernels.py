"""The compiled kernels, in the instruction set that suits this machine.

The environment variable ``POLYMARGIN_ISA`` (``baseline``, ``avx2`` or ``avx512``) overrides the
choice, for tests and for comparing.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

_kernels_baseline = importlib.import_module("polymargin._kernels_baseline")
_LEVELS = ("baseline", "avx2", "avx512")


def _choose(wanted: str | None) -> tuple[str, ModuleType]:
    best = _kernels_baseline.best_instruction_set()
    if wanted is not None and wanted not in _LEVELS:
        raise ImportError(f"POLYMARGIN_ISA={wanted!r}: expected one of {', '.join(_LEVELS)}.")
    if wanted is not None and _LEVELS.index(wanted) > _LEVELS.index(best):
        raise ImportError(f"POLYMARGIN_ISA={wanted!r}: this machine runs at most {best!r}.")
    for level in reversed(_LEVELS[: _LEVELS.index(wanted or best) + 1]):
        try:
            return level, importlib.import_module(f"polymargin._kernels_{level}")
        except ModuleNotFoundError:  # not built for this platform
            continue
    return "baseline", _kernels_baseline


instruction_set, kernels = _choose(os.environ.get("POLYMARGIN_ISA"))
