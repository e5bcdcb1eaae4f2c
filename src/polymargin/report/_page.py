"""The report as one HTML page: style, script and data inside of it, no network.

Every string that comes from data or labels is escaped, and the page's own policy
(Content-Security-Policy) lets nothing run but the script shipped here, by its hash.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from numpy.typing import ArrayLike

from polymargin.evaluation import Evaluation, evaluate
from polymargin.fitted import Classifier, Examples, Features, split_pipeline
from polymargin.report import _content as content
from polymargin.report import _features as explained
from polymargin.report import _sections as sections
from polymargin.storage import replacing
from polymargin.version import __version__


def write_report(
    path: str | os.PathLike[str],
    model: Classifier,
    X: Examples | None = None,
    y: ArrayLike | None = None,
    **options: Any,
) -> None:
    """Write a report on a fitted model to an HTML file, which replaces an older one at once.

    Parameters
    ----------
    path : path
        The file to write.
    model : classifier
        One of polymargin's, fitted; or a pipeline that ends in one.
    X, y : array-like, optional
        Test examples, as the model predicts them, and their labels. Without them the report is
        about the training alone.
    **options : dict
        As for :func:`render_report`.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVC(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_report(os.path.join(folder, "report.html"), clf, X, y)
    """
    page = render_report(model, X, y, **options)
    with replacing(path) as file:
        file.write(page.encode())


def render_report(
    model: Classifier,
    X: Examples | None = None,
    y: ArrayLike | None = None,
    *,
    evaluation: Evaluation | None = None,
    features: Features | None = None,
    text: Sequence[str] | None = None,
    feature_names: ArrayLike | None = None,
    title: str | None = None,
    data: Mapping[str, object] | None = None,
    n_features: int = 12,
    n_examples: int = 300,
) -> str:
    """Make the HTML of a report.

    Parameters
    ----------
    model : classifier
        One of polymargin's, fitted; or a pipeline that ends in one.
    X, y : array-like, optional
        Test examples, as the model predicts them, and their labels.
    evaluation : Evaluation, optional
        The result of ``polymargin.evaluation.evaluate``, in place of X and y.
    features : array or sparse matrix, optional
        With `evaluation`: the examples as the classifier itself takes them.
    text : sequence of str, optional
        The examples as a person reads them. By default, X where it is a list of strings.
    feature_names : sequence of str, optional
        Names of the classifier's features. By default those that the pipeline knows.
    title : str, optional
        Heading of the page.
    data : mapping, optional
        More lines for the table about the data, for example where they came from.
    n_features : int, default=12
        How many features to show for and against each class.
    n_examples : int, default=300
        How many misclassified examples to show at most.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearMulticlassSVC
    >>> from polymargin.report import render_report
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearMulticlassSVC(random_state=0).fit(X, y)
    >>> "<html" in render_report(clf, X, y)
    True
    """
    if (X is None) != (y is None):
        raise ValueError("Give both X and y, or neither.")
    before, classifier = split_pipeline(model)
    found = evaluation
    if X is not None and y is not None:
        features = X if before is None else before.transform(X)
        found = evaluate(classifier, features, y)
    if text is None and isinstance(X, list | tuple):
        text = X
    names = explained.feature_names(model, feature_names)
    labels = [str(label) for label in (classifier.classes_ if found is None else found.labels)]
    training = content.training_curves(classifier)
    lists = explained.feature_lists(classifier, names, n_features)
    payload = {
        "labels": labels,
        "training": training,
        "confusion": None if found is None else content.confusion_cells(found),
        "topK": None if found is None else content.top_k_points(found),
        "reliability": None if found is None else content.reliability_points(found),
        "features": lists,
    }
    settings = sections.data_and_settings(model, classifier, found, data or {})
    shown = [
        ("data", "Data", "Data and settings", settings),
        ("certificate", "Certificate", "Certificate", sections.certificate(classifier, training)),
    ]
    columns = content.columns(model)
    if columns:
        shown.append(("columns", "Columns", "Columns of the table", sections.columns(columns)))
    if found is not None:
        shown += [
            ("confusion", "Confusion", "Confused classes", sections.confusion(found)),
            ("top-k", "Top-k", "Top-k accuracy", sections.TOP_K),
            ("classes", "Classes", "Classes", sections.classes(found, labels)),
        ]
    if found is not None and found.confidence is not None:
        body = sections.calibration(found)
        shown.insert(-1, ("calibration", "Calibration", "Probabilities", body))
    if lists is not None:
        body = sections.features(labels[: len(classifier.classes_)])
        shown.append(("features", "Features", "Strongest features", body))
    if found is not None and found.n_correct < found.n_examples and n_examples > 0:
        wrong = explained.mistakes(classifier, found, features, text, names, n_examples)
        shown.append(("mistakes", "Mistakes", "Mistakes", sections.mistakes(wrong, labels, found)))
    return _assemble(
        title or f"{type(classifier).__name__}: {len(classifier.classes_):,} classes",
        "".join(f'<a href="#{name}">{link}</a>' for name, link, _, _ in shown),
        [sections.tiles(classifier, found)]
        + [
            f'<section id="{name}"><h2>{heading}</h2>{body}</section>'
            for name, _, heading, body in shown
        ],
        payload,
    )


def embed_json(value: object) -> str:
    """JSON that can stand in a script element: no character ends it or begins a tag."""
    encoded = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded


def _assemble(title: str, links: str, parts: list[str], payload: object) -> str:
    script = sections.asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    now = datetime.datetime.now().astimezone()
    return Template(sections.asset("page.html")).substitute(
        title=escape(title),
        links=links,
        sections="\n".join(parts),
        style=sections.asset("report.css"),
        script=script,
        script_hash=f"'sha256-{digest}'",
        data=embed_json(payload),
        made=f"polymargin {__version__}, {now:%Y-%m-%d %H:%M}",
    )
