"""What is installed: the versions to name in a report of a problem."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

from threadpoolctl import threadpool_info  # which scikit-learn needs

from polymargin.core import instruction_set
from polymargin.version import __version__

REQUIRED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "click")
OPTIONAL = ("pyarrow", "pandas", "polars", "matplotlib", "onnx", "skl2onnx", "dask", "distributed")


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def versions() -> dict[str, dict[str, str]]:
    """What :func:`show_versions` prints, by section."""
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity else os.cpu_count()
    machine = {
        "python": sys.version.split()[0],
        "interpreter": platform.python_implementation(),
        "system": platform.platform(),
        "processor": platform.machine(),
        "processors": f"{usable} of {os.cpu_count()} usable",
        "instruction set": instruction_set,
    }
    pools = {
        f"{pool['prefix']} {number}": f"{pool['internal_api']} {pool.get('version') or ''}".strip()
        + f", {pool['num_threads']} threads"
        for number, pool in enumerate(threadpool_info())
    }
    return {
        "polymargin": {"version": __version__, "file": __file__.rsplit(os.sep, 1)[0]},
        "machine": machine,
        "required": _versions(REQUIRED),
        "optional": _versions(OPTIONAL),
        "thread pools": pools,
    }


def show_versions() -> None:
    """Print the versions of polymargin and of what it stands on, and the machine.

    Paste it into a report of a problem.

    Examples
    --------
    >>> import polymargin
    >>> polymargin.show_versions()  # doctest: +ELLIPSIS
    polymargin
      version          ...
    """
    for section, lines in versions().items():
        print(section)
        for name, value in lines.items():
            print(f"  {name:<16} {value}")
