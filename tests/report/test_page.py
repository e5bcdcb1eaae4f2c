"""The page holds what was measured, and nothing in the data can break it."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC
from polymargin.evaluation import evaluate
from polymargin.report import render_report, write_report
from polymargin.report._content import similar_together
from polymargin.report._features import choose
from polymargin.report._page import embed_json

VOID = {"meta", "link", "input", "wbr", "br", "img"}


class Tree(HTMLParser):
    """Checks that tags nest, and collects scripts and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.tags, self.scripts, self.text = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open[-1:] == ["script"] else self.text).append(data)


def payload(page: str) -> dict:
    found = re.search(
        r'<script type="application/json" id="report-data">(.*?)</script>', page, re.S
    )
    return json.loads(found.group(1))


def test_awkward_strings_stay_text(awkward):
    model, X, y = awkward
    page = render_report(model, X, y, title="<script>alert(2)</script>", data={"<b>": "</td>&"})
    tree = Tree(page)
    assert len(tree.scripts) == 2  # the data and our own
    assert sum(tag == "script" for tag, _ in tree.tags) == 2
    assert not any(tag in ("img", "b") and "never" in str(attrs) for tag, attrs in tree.tags)
    assert not any("onerror" in attrs or "onclick" in attrs for _, attrs in tree.tags)
    text = "".join(tree.text)
    assert '<script>alert("x")</script>' in text
    assert "never <seen>" in text
    assert payload(page)["labels"] == [*model.classes_, "never <seen>"]


def test_nothing_points_outside(awkward):
    page = render_report(*awkward)
    tree = Tree(page)
    for _, attrs in tree.tags:
        for name in ("src", "href", "action", "srcset"):
            target = attrs.get(name)
            assert target is None or target.startswith(("#", "data:,"))
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("value", ["</script>", "<!--", "a & b", "\u2028", '"\\', "é → ✓"])
def test_embedded_json_is_inert_and_comes_back(value):
    encoded = embed_json({"value": value})
    assert not set("<>&\u2028") & set(encoded)
    assert json.loads(encoded) == {"value": value}


def test_the_numbers_are_those_of_the_model(awkward):
    model, X, y = awkward
    page = render_report(model, X, y)
    found = evaluate(model, X, y)
    text = "".join(Tree(page).text)
    assert f"{100 * found.accuracy:.2f} %" in text
    assert f"{100 * found.macro_f1:.2f} %" in text
    assert f"{100 * model[-1].dual_gap_:.2g} %" in text
    assert "3 examples of 1 labels that the model does not know" in text
    data = payload(page)
    dense = np.zeros((len(found.labels),) * 2, int)
    cells = data["confusion"]
    dense[cells["rows"], cells["columns"]] = cells["counts"]
    np.testing.assert_array_equal(dense, found.confusion.toarray())
    np.testing.assert_allclose(data["topK"], found.top_k_curve(), rtol=1e-5)
    history = model[-1].history_
    for kind, name in (("certificates", "gap"), ("estimates", "estimated_gap")):
        known = np.isfinite(history[name])
        assert known.any()
        np.testing.assert_allclose(data["training"][kind]["gap"], history[name][known], rtol=1e-5)
        np.testing.assert_array_equal(data["training"][kind]["pass"], history["pass"][known])
    names = model[0].get_feature_names_out()
    for code, lists in enumerate(data["features"]):
        best = names[np.argmax(model[-1].coef_[code])]
        assert lists["for"][0][0] == best
    assert page.count('<tr data-true="') >= np.count_nonzero(found.true != found.predicted)


def test_all_kinds_of_models_have_a_report():
    X, y = load_iris(return_X_y=True)
    for model in (
        LinearMulticlassSVC(random_state=0),
        KernelMulticlassSVC(random_state=0),
        LaRankClassifier(random_state=0),
        make_pipeline(StandardScaler(), LinearMulticlassSVC(random_state=0)),
    ):
        Tree(render_report(model.fit(X, y), X, y))
        assert "Confused classes" not in render_report(model)
    two = y < 2
    binary = LinearMulticlassSVC(random_state=0).fit(X[two], y[two])
    page = render_report(binary, X[two], y[two], feature_names=["a", "b", "c", "d"])
    Tree(page)
    assert "Every test example is classified correctly" in page
    lists = payload(page)["features"]
    assert lists[0]["for"] == [[name, -weight] for name, weight in lists[1]["against"]]


def test_wrong_use_is_said():
    X, y = load_iris(return_X_y=True)
    model = LinearMulticlassSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="both X and y"):
        render_report(model, X)
    with pytest.raises((NotFittedError, AttributeError)):
        render_report(LinearMulticlassSVC(), X, y)


def test_the_file_is_replaced_at_once_and_never_half(tmp_path, awkward, monkeypatch):
    model, X, y = awkward
    path = tmp_path / "report.html"
    write_report(path, model, X, y)
    first = path.read_text(encoding="utf-8")
    if sys.platform != "win32":
        mask = os.umask(0o022)
        os.umask(mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(path, model, X, y, title="second")
    assert path.read_text(encoding="utf-8") == first
    assert os.listdir(tmp_path) == ["report.html"]


def test_mistakes_cover_frequent_confusions_and_are_bounded():
    rng = np.random.default_rng(1)

    class Random:
        classes_ = np.arange(12)

        def decision_function(self, X):
            return X

    scores = rng.normal(size=(3000, 12))
    y = rng.integers(0, 12, 3000)
    y[:400], scores[:400, 3] = 2, 9.0  # one pair beyond all others
    found = evaluate(Random(), scores, y)
    chosen = choose(found, 60)
    assert len(chosen) == len(set(chosen.tolist())) == 60
    assert (found.true[chosen] != found.predicted[chosen]).all()
    assert (np.diff(found.margin[chosen]) <= 0).all()
    most = found.confused_pairs(5)
    pairs = set(zip(found.true[chosen], found.predicted[chosen], strict=True))
    assert {(pair.true, pair.predicted) for pair in most} <= pairs


def test_confused_classes_stand_side_by_side():
    rng = np.random.default_rng(0)
    partner = np.arange(10) ^ 1  # 0 with 1, 2 with 3, ...
    place = rng.permutation(10)
    y = np.repeat(np.arange(10), 40)
    guess = np.where(rng.random(400) < 0.3, partner[y], y)

    class Given:
        classes_ = np.arange(10)

        def decision_function(self, X):
            return np.eye(10)[np.ravel(X)]

    found = evaluate(Given(), place[guess][:, None], place[y])
    position = np.argsort(similar_together(found))
    for a in range(0, 10, 2):
        assert abs(position[place[a]] - position[place[a + 1]]) == 1
