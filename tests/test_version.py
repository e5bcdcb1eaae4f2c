"""There is one version: what the package says is what its metadata say."""

from __future__ import annotations

from importlib import metadata

import polymargin
from polymargin import version


def test_the_package_and_its_metadata_agree():
    assert polymargin.__version__ == version.__version__ == metadata.version("polymargin")
