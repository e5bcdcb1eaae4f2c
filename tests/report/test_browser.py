"""The report in a real browser: drawn, sortable, silent, dark, and readable on a phone."""

from __future__ import annotations

import numpy as np
import pytest

from polymargin import LinearMulticlassSVC
from polymargin.report import write_report
from tests.report.conftest import LABELS

PATIENCE = 300_000  # milliseconds; the machine may be busy

LATE = """<!doctype html><html><head><meta http-equiv="Content-Security-Policy"
content="default-src 'none'; script-src 'unsafe-inline'"></head><body><div class="chart"></div>
<script>setTimeout(() => {
  document.querySelector(".chart").append(
    document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  document.documentElement.dataset.ready = "true";
}, 700)</script></body></html>"""


class Opened:
    """A page with everything it said and asked for."""

    def __init__(self, browser, path, n_charts=3, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_default_timeout(PATIENCE)
        self.page.goto(path.as_uri())
        self.ready(n_charts)

    def ready(self, n_charts):
        """Wait by selectors: predicates are polled through eval, which the policy forbids."""
        self.page.locator("html[data-ready=true]").wait_for(state="attached")
        if n_charts:
            self.page.locator(".chart svg").nth(n_charts - 1).wait_for(state="attached")
        assert self.page.locator(".chart svg").count() == n_charts

    def column(self, table, index):
        return self.page.eval_on_selector_all(
            f"#{table} tbody tr:not([hidden]) td:nth-child({index})",
            "cells => cells.map(cell => cell.dataset.value ?? cell.textContent)",
        )


@pytest.fixture(scope="module")
def path(tmp_path_factory, awkward):
    model, X, y = awkward
    target = tmp_path_factory.mktemp("report") / "report.html"
    write_report(target, model, X, y)
    return target


def test_a_page_that_is_not_ready_at_the_first_look_is_waited_for(browser, tmp_path):
    path = tmp_path / "late.html"
    path.write_text(LATE)
    late = Opened(browser, path, n_charts=1)
    assert late.said == []
    late.context.close()


@pytest.fixture
def opened(browser, path):
    page = Opened(browser, path, viewport={"width": 1200, "height": 800})
    yield page
    page.context.close()


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def brightness(colour):
    return np.mean([int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(",")])


def test_it_is_drawn_without_a_word_or_a_request(opened, path):
    page = opened.page
    for chart in ("gap-chart", "objective-chart", "top-k-chart"):
        assert page.locator(f"#{chart} path").count() >= 1
        assert page.locator(f"#{chart} path").first.get_attribute("d").startswith("M")
        assert "NaN" not in page.locator(f"#{chart}").inner_html()
    colours = page.evaluate(
        """() => { const c = document.getElementById('heat');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set();
        for (let i = 0; i < d.length; i += 4) seen.add(d[i] + ',' + d[i+1] + ',' + d[i+2]);
        return seen.size; }"""
    )
    assert colours >= 3  # ground, right and wrong cells
    assert page.locator("#feature-lists li").count() > 0
    assert opened.said == []
    assert opened.asked == [path.as_uri()]


def test_labels_are_shown_literally(opened):
    names = opened.column("class-table", 1)
    assert {name.replace(" unknown to the model", "") for name in names} == {
        *LABELS,
        "never <seen>",
    }
    assert opened.page.locator("#feature-class option").all_text_contents() == sorted(LABELS)


def test_columns_sort_both_ways(opened):
    for index in range(2, 6):
        for _ in range(2):
            opened.page.click(f"#class-table thead th:nth-child({index}) button")
            values = [float(value) for value in opened.column("class-table", index)]
            kind = opened.page.get_attribute(
                f"#class-table thead th:nth-child({index})", "aria-sort"
            )
            assert values == sorted(values, reverse=kind == "descending")
    opened.page.click("#class-table thead th:nth-child(1) button")
    names = opened.column("class-table", 1)
    assert len(names) == 6
    assert (
        opened.page.get_attribute("#class-table thead th:nth-child(1)", "aria-sort") == "ascending"
    )


def test_search_and_choice_of_a_pair_filter_the_rows(opened):
    page = opened.page
    before = len(opened.column("mistake-table", 1))
    page.fill('input[data-table="class-table"]', "spaces")
    assert opened.column("class-table", 1) == ["with spaces"]
    row = page.locator("#pairs tbody tr").first
    true, predicted = (row.get_attribute(f"data-{name}") for name in ("true", "predicted"))
    count = int(row.locator("td").nth(2).get_attribute("data-value"))
    row.click()
    shown = page.locator("#mistake-table tbody tr:not([hidden])")
    assert shown.count() == count < before
    assert {item.get_attribute("data-true") for item in shown.all()} == {true}
    assert {item.get_attribute("data-predicted") for item in shown.all()} == {predicted}
    page.click("#mistake-filter button")
    assert len(opened.column("mistake-table", 1)) == before
    assert opened.said == []


def test_hovering_reads_the_charts_and_the_matrix(opened):
    page = opened.page
    page.locator("#heat").scroll_into_view_if_needed()
    box = page.locator("#heat").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 12, box["y"] + box["height"] / 12)
    assert "predicted:" in page.inner_text("#tip")
    page.click('[data-zoom="in"]')
    page.click('[data-zoom="all"]')
    page.uncheck("#similar")
    page.locator("#gap-chart svg").hover()
    assert "seconds" in page.inner_text("#tip")
    page.click('[data-axis="pass"]')
    assert "passes" in page.inner_text("#gap-chart")
    page.select_option("#feature-class", "2")
    assert opened.said == []


def test_dark_follows_the_system_and_the_button(browser, path):
    for scheme in ("light", "dark"):
        opened = Opened(browser, path, color_scheme=scheme)
        assert (brightness(background(opened.page)) < 128) == (scheme == "dark")
        opened.page.click("#theme")
        assert (brightness(background(opened.page)) < 128) == (scheme == "light")
        assert opened.said == []
        opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reliability_is_drawn(browser, tmp_path, scheme):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = np.eye(3)[y] + 0.6 * rng.normal(size=(400, 3))
    model = LinearMulticlassSVC(probability=True, random_state=0).fit(X, y)
    write_report(tmp_path / "r.html", model, X, y)
    opened = Opened(browser, tmp_path / "r.html", n_charts=4, color_scheme=scheme)
    chart = opened.page.locator("#reliability-chart")
    assert chart.locator("path").count() == 2
    assert chart.locator("circle").count() == opened.page.locator("#bins tbody tr").count() > 3
    assert "NaN" not in chart.inner_html()
    chart.locator("svg").hover()
    assert "probability" in opened.page.inner_text("#tip")
    assert opened.said == []
    opened.context.close()


def test_a_phone_needs_no_sideways_scrolling(browser, path):
    opened = Opened(
        browser, path, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True
    )
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360
    assert opened.page.locator("#heat").bounding_box()["width"] > 250
    right = "cell => cell.getBoundingClientRect().right"
    for cell in ("#pairs tbody td:nth-child(4)", "#class-table tbody td:last-child"):
        assert opened.page.locator(cell).first.evaluate(right) <= 360
    name = opened.page.locator("#class-table tbody td").first.bounding_box()
    assert name["width"] > 55  # not one letter under the other
    why = opened.page.locator("#mistake-table tbody td:last-child").first
    assert why.evaluate(right) <= 360 and why.bounding_box()["width"] > 200
    assert opened.said == []
    opened.context.close()
