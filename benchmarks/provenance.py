"""What a figure belongs to: the machine, the versions, the state of the source."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("polymargin", "liblinear-official", "numpy", "scipy", "scikit-learn")
SOURCE_SUFFIXES = (".py", ".hpp", ".cpp", ".txt")


@cache
def machine() -> dict[str, Any]:
    """Describe the processor and the memory; no names of hosts or users."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": platform.system(),
        "architecture": platform.machine(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of the packages named; "absent" where there is none."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


@cache
def fingerprint(*paths: Path) -> str:
    """Return a short hash of source files, folders taken with all that is in them."""
    digest = hashlib.sha256()
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.is_file() and file.suffix in SOURCE_SUFFIXES:
                digest.update(file.relative_to(path.parent).as_posix().encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def package_fingerprint() -> str:
    """Return the hash of polymargin's own sources: figures of another state are not these."""
    return fingerprint(ROOT / "src", ROOT / "CMakeLists.txt")


@cache
def commit() -> str | None:
    """Return the commit, with "+" where sources differ from it; None without git."""
    try:
        head = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "CMakeLists.txt")
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def provenance(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Put together what every result file carries."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(packages),
    }
