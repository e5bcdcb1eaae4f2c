"""Resident memory of this process: now, and at its highest since a moment of one's choice."""

from __future__ import annotations

import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def resident_mb() -> float | None:
    """Return the resident memory in MB, None where the system does not tell."""
    return _status("VmRSS")


def peak_mb() -> float | None:
    """Return the highest resident memory in MB since the start or `forget_peak`."""
    peak = _status("VmHWM")
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 1e6 if sys.platform == "darwin" else used / 1e3


def forget_peak() -> None:
    """Start measuring the peak anew (Linux; elsewhere the peak of loading the data may remain)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _status(field: str) -> float | None:
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(field + ":")]
    return int(values[0]) * 1024 / 1e6 if values else None
