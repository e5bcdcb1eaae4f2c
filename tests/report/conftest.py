"""A model with awkward labels, and a browser where there is one."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from polymargin import LinearMulticlassSVC

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LABELS = ['<script>alert("x")</script>', "</script><b>&amp;", "plain", "with spaces", "ünïcode → ✓"]


@pytest.fixture(scope="session")
def awkward():
    """A text model whose labels, words and texts would break a page that does not escape."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(30)] + ["<img", "</td>", "&lt;"]
    y = np.array([LABELS[i % len(LABELS)] for i in range(150)])
    texts = []
    for i in range(150):
        near = 6 * (i % len(LABELS)) + rng.integers(0, 12, 4)
        texts.append(" ".join(words[j % len(words)] for j in near) + " <script>alert(1)</script>")
    model = make_pipeline(
        TfidfVectorizer(token_pattern=r"\S+"), LinearMulticlassSVC(tol=1e-4, random_state=0)
    ).fit(texts[:100], y[:100])
    tested = y[100:].copy()
    tested[:3] = "never <seen>"
    return model, texts[100:], tested


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    # the driver's own downloads are not used: the system's browser is
    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        except api.Error as error:
            pytest.skip(f"Chromium does not start: {error}")
        yield started
        started.close()
