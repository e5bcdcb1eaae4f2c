"""What `show_versions` says is what is installed."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import polymargin
from polymargin.installation import OPTIONAL, REQUIRED, versions


def test_versions_are_those_of_the_packages():
    found = versions()
    assert found["polymargin"]["version"] == polymargin.__version__
    assert found["required"]["numpy"] == metadata.version("numpy")
    assert set(found["required"]) == set(REQUIRED) and set(found["optional"]) == set(OPTIONAL)
    assert found["machine"]["instruction set"] == polymargin.instruction_set


def test_what_is_not_installed_is_said_to_be(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    assert set(versions()["optional"].values()) == {"not installed"}


def test_they_are_printed(capsys):
    polymargin.show_versions()
    printed = capsys.readouterr().out
    assert printed.startswith("polymargin\n")
    assert f"scikit-learn     {metadata.version('scikit-learn')}" in printed


def test_the_citation_has_the_version():
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {polymargin.__version__}\n" in text
