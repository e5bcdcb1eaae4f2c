"""Notebooks show the certificate under scikit-learn's diagram."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import (
    DualSolver,
    KernelMulticlassSVC,
    KernelMulticlassSVCCV,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearMulticlassSVCCV,
)

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


@pytest.mark.parametrize("make", [LinearMulticlassSVCCV, KernelMulticlassSVCCV])
@pytest.mark.parametrize("refit", [True, False])
def test_cross_validated_models_show_c_the_scores_and_the_certificate(make, refit):
    X, y = load_iris(return_X_y=True)
    clf = make(Cs=[0.01, 0.1, 1.0], cv=3, random_state=0, early_stopping=False, refit=refit)
    assert "polymargin-repr" not in clf._repr_html_()
    html = clf.fit(X, y)._repr_html_()
    scores = shown(html)
    assert len(scores) == 3
    (best,) = (name for name in scores if name.endswith("(best)"))
    assert best == f"C = {clf.C_:.4g} (best)"
    mean, _, deviation = scores[best].split()
    assert float(mean) == pytest.approx(clf.best_score_, abs=1e-4)
    column = clf.scores_[:, clf.Cs_ == clf.C_]
    assert float(deviation) == pytest.approx(column.std(), abs=1e-4)
    assert ("Certified: no weights" in html) is refit
    if refit:
        rows = dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", html))
        assert float(rows["C, of those tried"]) == clf.C_
        assert float(rows["objective"]) == pytest.approx(clf.objective_, rel=1e-6)


def test_a_pipeline_and_a_search_show_the_certificate_of_their_classifier():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearMulticlassSVC(C=0.1, random_state=0))
    assert "ertified" not in pipeline._repr_html_()
    gap = f"{100 * pipeline.fit(X, y)[-1].dual_gap_:.2g} %"
    said = f"Certified: no weights have an objective lower by more than {gap}"
    assert said in pipeline._repr_html_()
    search = GridSearchCV(pipeline, {"linearmulticlasssvc__C": [0.01, 0.1]}, cv=3).fit(X, y)
    assert "Certified: no weights" in search._repr_html_()
