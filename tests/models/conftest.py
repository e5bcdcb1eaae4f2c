"""Fitted models, once for all tests of files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models import fitted as models


@pytest.fixture(scope="package")
def fitted() -> dict[str, Any]:
    """Fitted models by the names of `ROW_MODELS` and `TEXT_MODELS`; do not change them."""
    found = {**models.row_models(), **models.text_models()}
    assert tuple(found) == models.ROW_MODELS + models.TEXT_MODELS
    return found
