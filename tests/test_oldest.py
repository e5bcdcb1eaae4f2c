"""The oldest supported versions are the lower bounds of pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.oldest import oldest_versions

ROOT = Path(__file__).parents[1]
PYPROJECT = """
[project]
name = "package"
dependencies = ["numpy>=2.0", "joblib>=1.3"]
[project.optional-dependencies]
test = ["package[plot]", "numpy>=2.0", "other>=1.2.3; sys_platform != 'win32'"]
plot = ["matplotlib[extra]>=3.9"]
dev = ["ruff==0.1"]
"""


def test_lower_bounds_become_versions(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT)
    assert oldest_versions(path) == [
        "joblib==1.3",
        "matplotlib==3.9",
        "numpy==2.0",
        "other==1.2.3; sys_platform != 'win32'",
        "ruff==0.1",
    ]


def test_every_requirement_needs_a_bound(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT.replace("joblib>=1.3", "joblib"))
    with pytest.raises(ValueError, match="joblib"):
        oldest_versions(path)


def test_a_package_has_the_same_bound_wherever_it_is_required():
    names = [re.split(r"[=;]", text)[0] for text in oldest_versions(ROOT / "pyproject.toml")]
    assert {"numpy", "scipy", "scikit-learn"} <= set(names)
    assert len(names) == len(set(names))


def test_the_readme_names_the_oldest_versions():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    oldest = dict(
        text.split("==") for text in oldest_versions(ROOT / "pyproject.toml") if ";" not in text
    )
    for title, name in [("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn")]:
        assert f"{title} {oldest[name]}" in readme
