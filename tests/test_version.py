"""There is one version: what the package says is what its metadata say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polymargin
from polymargin import version


def test_the_package_and_its_metadata_agree():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert polymargin.__version__ == version.__version__
    assert version.__version__ == tomllib.loads(text)["project"]["version"]
