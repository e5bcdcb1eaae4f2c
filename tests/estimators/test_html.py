"""Notebooks show the certificate under scikit-learn's diagram."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris

from polymargin import DualSolver, KernelMulticlassSVC, LaRankClassifier, LinearMulticlassSVC

ESTIMATORS = [LinearMulticlassSVC, KernelMulticlassSVC, LaRankClassifier]


def shown(html: str) -> dict[str, str]:
    table = html[html.index("polymargin-repr") :].rpartition("<table")[2]
    return dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", table))


@pytest.mark.parametrize("make", ESTIMATORS)
def test_before_a_fit_it_is_scikit_learns_own(make):
    html = make()._repr_html_()
    assert "sk-top-container" in html
    assert "polymargin-repr" not in html


@pytest.mark.parametrize("make", ESTIMATORS)
def test_after_a_fit_it_has_the_certificate(make):
    X, y = load_iris(return_X_y=True)
    clf = make(C=0.1, tol=1e-4, random_state=0).fit(X, y)
    for html in (clf._repr_html_(), clf._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in html
        rows = shown(html)
        assert float(rows["objective"]) == pytest.approx(clf.objective_, rel=1e-6)
        assert float(rows["lower bound (dual)"]) == pytest.approx(clf.dual_objective_, rel=1e-6)
        assert float(rows["relative gap"]) == pytest.approx(clf.dual_gap_, rel=0.1, abs=1e-12)
        assert (rows["classes"], rows["features"]) == ("3", "4")
        assert "no weights have an objective lower" in html


def test_without_a_certificate_it_says_so():
    X, y = load_iris(return_X_y=True)
    clf = LinearMulticlassSVC(solver=DualSolver(certify=False), max_iter=3).fit(X, y)
    html = clf._repr_html_()
    assert "Not certified" in html
    assert shown(html)["relative gap"] == "not computed"


def test_labels_and_parameters_are_escaped():
    y = np.array(["<script>alert(1)</script>", "b", "c"] * 4)
    clf = LinearMulticlassSVC(class_weight={y[0]: 2.0, "b": 1.0, "c": 1.0}, random_state=0)
    clf.fit(np.random.default_rng(0).normal(size=(12, 3)), y)
    assert "<script>alert" not in clf._repr_html_()


def test_scikit_learns_switch_counts():
    with sklearn.config_context(display="text"):
        assert not hasattr(LinearMulticlassSVC(), "_repr_html_")
        assert "text/html" not in LinearMulticlassSVC()._repr_mimebundle_()
