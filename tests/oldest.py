"""Print the oldest versions that pyproject.toml allows, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def oldest_versions(pyproject: Path) -> list[str]:
    """Turn each lower bound into the version itself; ``numpy>=2.0`` becomes ``numpy==2.0``.

    Parameters
    ----------
    pyproject : Path
        The file; a bound per requirement is all it may have.

    Returns
    -------
    list of str
        Constraints, sorted.

    Raises
    ------
    ValueError
        For a requirement without a version.
    """
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = {requirement for group in groups for requirement in group}
    others = {text for text in requirements if not text.startswith(f"{project['name']}[")}
    for text in others:
        if ">=" not in text and "==" not in text.partition(";")[0]:
            raise ValueError(f"{text!r} in {pyproject.name} has no lower bound.")
    named = (re.sub(r"\[.*?\]", "", text) for text in others)  # constraints have no extras
    return sorted(text.replace(">=", "==", 1) for text in named)


if __name__ == "__main__":
    print("\n".join(oldest_versions(Path(__file__).parents[1] / "pyproject.toml")))
