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
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from polymargin.evaluation import Evaluation, evaluate
from polymargin.report import _content as content
from polymargin.report._examples import Mistake, mistakes
from polymargin.report._features import feature_names as names_of_features
from polymargin.report._features import split_pipeline
from polymargin.storage import replacing
from polymargin.version import __version__

MOST_PAIRS = 100


def write_report(
    path: str | os.PathLike[str], model: Any, X: Any = None, y: Any = None, **options: Any
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
    """
    page = render_report(model, X, y, **options)
    with replacing(path) as file:
        file.write(page.encode())


def render_report(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    evaluation: Evaluation | None = None,
    features: Any = None,
    text: Any = None,
    feature_names: Any = None,
    title: str | None = None,
    data: Mapping[str, Any] | None = None,
    trace: Mapping[str, Any] | None = None,
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
    trace : mapping, optional
        Estimates of the gap after every pass: "pass", "time" and "gap".
    n_features : int, default=12
        How many features to show for and against each class.
    n_examples : int, default=300
        How many misclassified examples to show at most.

    Returns
    -------
    str
        The page.
    """
    if (X is None) != (y is None):
        raise ValueError("Give both X and y, or neither.")
    before, classifier = split_pipeline(model)
    found = evaluation
    if X is not None:
        features = X if before is None else before.transform(X)
        found = evaluate(classifier, features, y)
    if text is None and isinstance(X, list | tuple):
        text = X
    names = names_of_features(model, feature_names)
    wrong = []
    if found is not None:
        wrong = mistakes(classifier, found, features, text, names, n_examples)
    labels = [str(label) for label in (classifier.classes_ if found is None else found.labels)]
    training = content.training_curves(classifier, trace)
    payload = {
        "labels": labels,
        "training": training,
        "confusion": None if found is None else content.confusion_cells(found),
        "topK": None if found is None else content.top_k_points(found),
        "features": content.feature_lists(classifier, names, n_features),
    }
    title = title or f"{type(classifier).__name__}: {len(classifier.classes_):,} classes"
    sections = [
        _tiles(classifier, found),
        _section("data", "Data and settings", _data_and_settings(model, classifier, found, data)),
        _section("certificate", "Certificate", _certificate(classifier, training)),
    ]
    if found is not None:
        sections += [
            _section("confusion", "Confused classes", _confusion(found)),
            _section("top-k", "Top-k accuracy", _top_k(found)),
            _section("classes", "Classes", _classes(found, labels)),
        ]
    if payload["features"] is not None:
        sections.append(_section("features", "Strongest features", _features(labels, classifier)))
    if wrong:
        sections.append(_section("mistakes", "Mistakes", _mistakes(wrong, labels, found)))
    return _assemble(title, sections, payload)


def embed_json(value: Any) -> str:
    """JSON that can stand in a script element: no character ends it or begins a tag."""
    encoded = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded


def _assemble(title: str, sections: list[str], payload: Any) -> str:
    assets = resources.files("polymargin.report") / "assets"
    script = (assets / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shell = Template((assets / "page.html").read_text(encoding="utf-8"))
    links = "".join(
        f'<a href="#{name}">{heading}</a>'
        for name, heading in (
            ("data", "Data"),
            ("certificate", "Certificate"),
            ("confusion", "Confusion"),
            ("top-k", "Top-k"),
            ("classes", "Classes"),
            ("features", "Features"),
            ("mistakes", "Mistakes"),
        )
        if any(f'<section id="{name}"' in section for section in sections)
    )
    now = datetime.datetime.now().astimezone()
    return shell.substitute(
        title=escape(title),
        links=links,
        sections="\n".join(sections),
        style=(assets / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=f"'sha256-{digest}'",
        data=embed_json(payload),
        made=f"polymargin {__version__}, {now:%Y-%m-%d %H:%M}",
    )


def _label(label: Any) -> str:
    """A label that may be broken after an underscore."""
    return escape(str(label)).replace("_", "_<wbr>")


def _section(name: str, heading: str, body: str) -> str:
    return f'<section id="{name}"><h2>{heading}</h2>{body}</section>'


def _tiles(classifier: Any, found: Evaluation | None) -> str:
    tiles: list[tuple[str, str, str]] = []
    if found is not None:
        tiles.append(
            (content.percent(found.accuracy), "accuracy", f"{found.n_examples:,} examples")
        )
        if found.n_classes > 2:
            k = 5 if found.n_classes > 5 else 2
            tiles.append((content.percent(found.top_k_accuracy(k)), f"top-{k} accuracy", ""))
        tiles.append((content.percent(found.macro_f1), "macro F1", "mean over the classes"))
    gap = getattr(classifier, "dual_gap_", float("nan"))
    proof = "of the objective, at most, is left to gain"
    if np.isfinite(gap):
        tiles.append((f"{100 * gap:.2g} %", "certified gap", proof))
    else:
        tiles.append(("none", "certified gap", "this model was trained without"))
    items = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span>'
        f"<small>{escape(note)}</small></div>"
        for value, name, note in tiles
    )
    return f'<div class="tiles">{items}</div>'


def _pairs_table(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def _data_and_settings(
    model: Any, classifier: Any, found: Evaluation | None, data: Mapping[str, Any] | None
) -> str:
    left = _pairs_table(content.data_rows(classifier, found, data or {}))
    right = _pairs_table(content.settings(model))
    return f'<div class="columns"><div>{left}</div><div>{right}</div></div>'


def _certificate(classifier: Any, training: dict[str, Any]) -> str:
    gap = getattr(classifier, "dual_gap_", float("nan"))
    if np.isfinite(gap):
        claim = (
            f"No weights have an objective lower than this model’s by more than <b>{100 * gap:.2g} "
            "%</b>: this is proven by the dual, not estimated."
        )
    else:
        claim = "This model was trained without a certificate."
    text = f'<p class="lead">{claim}</p>'
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in content.certificate(classifier)
    )
    facts = f'<dl class="figures">{items}</dl>'
    if training["certificates"] is None and training["estimates"] is None:
        return text + facts
    switch = (
        '<div class="switch" role="group" aria-label="horizontal axis">'
        '<button type="button" data-axis="time" aria-pressed="true">time</button>'
        '<button type="button" data-axis="pass" aria-pressed="false">passes</button></div>'
    )
    charts = (
        '<div class="columns"><figure><figcaption>Relative gap</figcaption>'
        '<div class="chart" id="gap-chart"></div></figure>'
        "<figure><figcaption>Objective and its lower bound</figcaption>"
        '<div class="chart" id="objective-chart"></div></figure></div>'
    )
    return text + facts + switch + charts


def _confusion(found: Evaluation) -> str:
    pairs = found.confused_pairs(MOST_PAIRS)
    n_errors = int(np.count_nonzero(found.true != found.predicted))
    if not pairs:
        return "<p>Every test example is classified correctly.</p>"
    codes = {label: code for code, label in enumerate(found.labels.tolist())}
    longest = pairs[0].count
    body = "".join(
        f'<tr data-true="{codes[pair.true]}" data-predicted="{codes[pair.predicted]}" tabindex="0">'
        f"<td>{_label(pair.true)}</td><td>{_label(pair.predicted)}</td>"
        f'<td class="n" data-value="{pair.count}"><i class="bar" '
        f'style="width:{3.5 * pair.count / longest:.2f}em"></i>{pair.count:,}</td>'
        f'<td class="n" data-value="{pair.share:.6f}">{pair.share:.0%}</td></tr>'
        for pair in pairs
    )
    table = _sortable("pairs", ("true", "predicted", "#examples", "#share"), body, "find a class")
    heat = (
        '<div class="heat"><div class="tools"><button type="button" data-zoom="in" '
        'aria-label="zoom in">+</button><button type="button" data-zoom="out" '
        'aria-label="zoom out">−</button><button type="button" data-zoom="all">all</button>'
        '<label><input type="checkbox" '
        'id="similar" checked> confused classes side by side</label></div>'
        '<canvas id="heat" tabindex="0" role="img" aria-label="confusion matrix"></canvas>'
        '<p class="hint" id="heat-note">True classes down, predicted ones across. Hover or tap a '
        "cell to read it, click to see its examples, zoom with the buttons or Ctrl and the wheel, "
        "drag to move.</p></div>"
    )
    lead = (
        f"<p>{n_errors:,} of {found.n_examples:,} test examples are wrong. The most frequent "
        "confusions first, each with its share of the true class; click one to see it in the "
        "matrix and among the mistakes.</p>"
    )
    return f'{lead}<div class="columns wide-right"><div>{table}</div>{heat}</div>'


def _top_k(found: Evaluation) -> str:
    return (
        "<p>How often the true class is among the k highest scores.</p>"
        '<div class="chart" id="top-k-chart"></div>'
    )


def _classes(found: Evaluation, labels: list[str]) -> str:
    columns = (found.precision, found.recall, found.f1)
    rows = []
    for code, label in enumerate(labels):
        if found.support[code] == 0 and code >= found.n_classes:
            continue
        unknown = " <em>unknown to the model</em>" if code >= found.n_classes else ""
        cells = "".join(
            f'<td class="n" data-value="{column[code]:.6f}">{100 * column[code]:.1f}</td>'
            for column in columns
        )
        rows.append(
            f"<tr><td>{_label(label)}{unknown}</td>{cells}"
            f'<td class="n" data-value="{found.support[code]}">{found.support[code]:,}</td></tr>'
        )
    titles = ("class", "#precision %", "#recall %", "#F1 %", "#examples")
    return _sortable("class-table", titles, "".join(rows), "find a class")


def _features(labels: list[str], classifier: Any) -> str:
    choices = "".join(
        f'<option value="{code}">{escape(label)}</option>'
        for code, label in enumerate(labels[: len(classifier.classes_)])
    )
    return (
        "<p>The features with the largest weights for and against a class.</p>"
        f'<label class="pick">class <select id="feature-class">{choices}</select></label>'
        '<div class="columns" id="feature-lists"></div>'
    )


def _mistakes(wrong: list[Mistake], labels: list[str], found: Evaluation | None) -> str:
    assert found is not None
    with_text = any(mistake.text is not None for mistake in wrong)
    with_reasons = any(mistake.reasons for mistake in wrong)
    titles = ["#example", "true", "predicted", "#margin"]
    titles += ["text"] * with_text + ["because of"] * with_reasons
    rows = []
    for one in wrong:
        margin = one.margin if np.isfinite(one.margin) else -1.0
        cells = [
            f'<td class="n" data-value="{one.number}">{one.number:,}</td>',
            f"<td>{_label(labels[one.true])}</td>",
            f"<td>{_label(labels[one.predicted])}</td>",
            f'<td class="n" data-value="{margin:.6g}">{content.number(one.margin, 3)}</td>',
        ]
        if with_text:
            cells.append(f'<td class="text">{escape(one.text or "")}</td>')
        if with_reasons:
            because = ", ".join(escape(name) for name, _ in one.reasons)
            cells.append(f'<td class="why">{because}</td>')
        rows.append(
            f'<tr data-true="{one.true}" data-predicted="{one.predicted}">{"".join(cells)}</tr>'
        )
    n_errors = int(np.count_nonzero(found.true != found.predicted))
    shown = "All" if len(wrong) == n_errors else f"{len(wrong):,} of the"
    lead = (
        f"<p>{shown} {n_errors:,} misclassified examples, the most decided ones first: margin is "
        "how much higher the predicted class scored than the true one."
        + (" “Because of” names the features that did most for that." if with_reasons else "")
        + '</p><p id="mistake-filter" hidden></p>'
    )
    return lead + _sortable("mistake-table", titles, "".join(rows), "find a word or a class")


def _sortable(name: str, titles: Iterable[str], body: str, placeholder: str) -> str:
    """A table that the script sorts and searches; a title with # stands over numbers."""
    heads = "".join(
        f'<th class="{"n" if title.startswith("#") else ""}" scope="col"><button type="button">'
        f"{escape(title.removeprefix('#'))}</button></th>"
        for title in titles
    )
    return (
        f'<input class="search" type="search" data-table="{name}" placeholder="{placeholder}" '
        f'aria-label="{placeholder}"><div class="scroll"><table class="sortable" id="{name}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )
