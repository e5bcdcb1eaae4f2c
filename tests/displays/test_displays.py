"""The displays draw what the estimators recorded, in the shape of scikit-learn's displays."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from polymargin import (
    ConfusedPairsDisplay,
    ConvergenceDisplay,
    KernelMulticlassSVC,
    LaRankClassifier,
    LinearMulticlassSVC,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("make", [LinearMulticlassSVC, KernelMulticlassSVC])
@pytest.mark.parametrize("x", ["time", "pass"])
def test_convergence_draws_the_history(make, x, iris):
    clf = make(C=0.01, tol=1e-4, random_state=0).fit(*iris)
    display = ConvergenceDisplay.from_estimator(clf, x=x)
    curve, estimates, target = display.lines_
    for line, name in ((curve, "gap"), (estimates, "estimated_gap")):
        known = np.isfinite(clf.history_[name])
        assert known.any()
        np.testing.assert_array_equal(line.get_xdata(), clf.history_[x][known])
        np.testing.assert_array_equal(line.get_ydata(), clf.history_[name][known])
    said = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert said[:2] == [make.__name__, f"{make.__name__} (estimated)"]
    assert estimates.get_color() == curve.get_color() and estimates.get_marker() == "None"
    assert target.get_ydata()[0] == clf.tol
    assert display.ax_.get_yscale() == "log"
    assert display.figure_ is display.ax_.figure

    both = ConvergenceDisplay.from_estimator(clf, kind="objective", x=x).lines_
    for line, name in zip(
        both, ("primal", "estimated_primal", "dual", "estimated_dual"), strict=True
    ):
        values = clf.history_[name]
        np.testing.assert_array_equal(line.get_ydata(), values[np.isfinite(values)])


def test_convergence_draws_models_of_before_there_were_estimates(iris):
    clf = LinearMulticlassSVC(C=0.01, random_state=0).fit(*iris)
    proved = np.isfinite(clf.history_["gap"])
    names = ("pass", "time", "primal", "dual", "gap")
    display = ConvergenceDisplay(history={name: clf.history_[name][proved] for name in names})
    (curve,) = display.plot().lines_
    np.testing.assert_array_equal(curve.get_ydata(), clf.history_["gap"][proved])


def test_convergence_uses_the_axes_it_is_given_and_the_end_of_a_pipeline():
    clf = make_pipeline(TfidfVectorizer(), LinearMulticlassSVC(random_state=0))
    clf.fit(["red green", "green blue", "one two", "two three"], ["one", "one", "two", "two"])
    _, ax = plt.subplots()
    display = ConvergenceDisplay.from_estimator(clf, ax=ax, name="mine", color="red")
    assert display.ax_ is ax
    assert display.lines_[0].get_color() == "red"
    assert "mine" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_convergence_says_what_it_cannot_draw(iris):
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(LinearMulticlassSVC())
    larank = LaRankClassifier(random_state=0).fit(*iris)
    with pytest.raises(ValueError, match="no certificate"):
        ConvergenceDisplay.from_estimator(larank)
    clf = LinearMulticlassSVC(random_state=0).fit(*iris)
    with pytest.raises(ValueError, match="kind"):
        ConvergenceDisplay.from_estimator(clf, kind="loss")
    with pytest.raises(ValueError, match="x must"):
        ConvergenceDisplay.from_estimator(clf, x="epoch")


def test_pairs_are_drawn_most_confused_first():
    y = ["cat", "cat", "cat", "dog", "dog", "$5"]
    predicted = ["dog", "dog", "cat", "cat", "dog", "cat"]
    display = ConfusedPairsDisplay.from_predictions(y, predicted)
    assert [(pair.true, pair.predicted, pair.count) for pair in display.pairs] == [
        ("cat", "dog", 2),
        ("$5", "cat", 1),
        ("dog", "cat", 1),
    ]
    assert [bar.get_width() for bar in display.bars_] == [2, 1, 1]
    assert display.ax_.yaxis_inverted()
    assert "4 errors in 6 examples" in display.ax_.get_title()
    display.figure_.canvas.draw()  # a label with a dollar sign is no formula


def test_pairs_of_an_estimator_are_those_of_its_predictions(iris):
    X, y = iris
    clf = LinearMulticlassSVC(C=0.01, random_state=0).fit(X, y)
    a = ConfusedPairsDisplay.from_estimator(clf, X, y, n_pairs=2)
    b = ConfusedPairsDisplay.from_predictions(y, clf.predict(X), n_pairs=2)
    assert a.pairs == b.pairs
    assert len(a.pairs) <= 2


def test_no_errors_are_an_empty_plot():
    display = ConfusedPairsDisplay.from_predictions([1, 2, 3], [1, 2, 3])
    assert display.pairs == []
    display.figure_.canvas.draw()


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, iris):
    clf = LinearMulticlassSVC(random_state=0).fit(*iris)
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"polymargin\[plot\]"):
        ConvergenceDisplay.from_estimator(clf)
