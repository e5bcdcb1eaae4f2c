"""The k best labels, by whatever has scores: models, pipelines, searches, other classifiers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polymargin import LinearMulticlassSVC, predict_top_k

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
SVC = LinearMulticlassSVC(C=0.1, random_state=0)


def by_sorting(scores, classes, k):
    """Labels by score, one example at a time; the first of equal ones first."""
    return [
        [classes[j] for j in sorted(range(len(classes)), key=lambda j: (-row[j], j))[:k]]
        for row in scores
    ]


@pytest.mark.parametrize(
    "model",
    [
        SVC,
        make_pipeline(StandardScaler(), SVC),
        GridSearchCV(make_pipeline(StandardScaler(), SVC), {"linearmulticlasssvc__C": [0.1, 1.0]}),
        CalibratedClassifierCV(SVC),
        GaussianNB(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_it_is_the_order_of_the_scores(model):
    model.fit(X, NAMES)
    score = getattr(model, "decision_function", None) or model.predict_proba
    found = predict_top_k(model, X, 2)
    assert found.tolist() == by_sorting(score(X), model.classes_.tolist(), 2)
    np.testing.assert_array_equal(predict_top_k(model, X, 1)[:, 0], model.predict(X))


def test_two_classes_have_one_score():
    two = Y < 2
    model = make_pipeline(StandardScaler(), SVC).fit(X[two], NAMES[two])
    found = predict_top_k(model, X[two], 2)
    np.testing.assert_array_equal(found[:, 0], model.predict(X[two]))
    assert all(set(row) == {"setosa", "versicolor"} for row in found.tolist())


def test_what_has_no_scores_is_refused():
    with pytest.raises(TypeError, match="Ridge has neither decision_function nor predict_proba"):
        predict_top_k(Ridge().fit(X, Y), X)
    with pytest.raises(ValueError, match="k must be an integer from 1 to n_classes = 3, got 4"):
        predict_top_k(SVC.fit(X, Y), X, 4)
