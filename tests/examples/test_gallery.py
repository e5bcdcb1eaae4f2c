"""Every example of the gallery runs, draws, and says what it is about."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="the gallery draws")

GALLERY = sorted((Path(__file__).resolve().parents[2] / "examples" / "gallery").glob("*.py"))
NEEDS = {"plot_15_dask": "distributed", "plot_16_onnx": "skl2onnx"}


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path, tmp_path, monkeypatch):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    plt.switch_backend("Agg")
    plt.close("all")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    (number,) = plt.get_fignums()  # one idea, one picture
    assert any(panel.has_data() for panel in plt.figure(number).axes)
    plt.close("all")
    assert not list(tmp_path.iterdir())  # what it writes, it takes away


def test_an_example_has_a_title_and_an_idea():
    assert len(GALLERY) >= 16
    for path in GALLERY:
        title, line, empty, *words = ast.get_docstring(ast.parse(path.read_text())).splitlines()
        assert line == "=" * len(title) and empty == "" and len(" ".join(words)) > 80, path.name
