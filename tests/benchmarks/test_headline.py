"""README's figures and its picture are those of the result files."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict

import pytest

pytest.importorskip("matplotlib", reason="the picture needs matplotlib")

from benchmarks import headline


def test_the_readme_has_the_figures_of_the_files():
    text = headline.README.read_text(encoding="utf-8")
    assert headline.with_block(text, headline.block(headline.RESULTS)) == text, "make results"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_picture_shows_the_figures_of_the_files(name):
    """By the description that its program wrote into it."""
    text = (headline.IMAGES / f"speed_{name}.svg").read_text(encoding="utf-8")
    described = html.unescape(re.search(r"<dc:description>(.*?)</dc:description>", text)[1])
    shown = json.loads(described)
    assert shown == [asdict(line) for line in headline.lines(headline.RESULTS)], "make results"


def test_ratios_are_of_the_best_peer():
    line = headline.Line("objective", "text", "data", {"polymargin": 2.0, "a": 6.0, "b": 5.0})
    assert line.ratio == 2.5
    for seconds in ({"polymargin": None, "a": 1.0}, {"polymargin": 1.0, "a": None}):
        assert headline.Line("objective", "text", "data", seconds).ratio is None


def test_every_time_is_drawn():
    lines = headline.lines(headline.RESULTS)
    figure = headline.draw(lines, headline.LIGHT)
    drawn = [
        float(curve.get_xdata()[0])
        for panel in figure.axes
        for curve in panel.lines
        if curve.get_marker() in headline.MARKERS.values()
    ]
    times = [t for line in lines for t in line.seconds.values() if t is not None]
    assert sorted(drawn) == sorted(times) and len(times) > 10


def test_a_readme_without_markers_is_refused():
    with pytest.raises(ValueError, match="figures: begin"):
        headline.with_block("no markers", "text")
