"""The parts of the page, each as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources

import numpy as np

from polymargin.evaluation import ConfusedPair, Evaluation, cost_text, percent
from polymargin.fitted import Classifier
from polymargin.report import _content as content
from polymargin.report._features import Mistake

MOST_PAIRS = 100
TOP_K = (
    "<p>How often the true class is among the k highest scores.</p>"
    '<div class="chart" id="top-k-chart"></div>'
)


def asset(name: str) -> str:
    """The text of a file that is a part of the page."""
    return (resources.files("polymargin.report") / "assets" / name).read_text(encoding="utf-8")


def tiles(
    classifier: Classifier, found: Evaluation | None, train_accuracy: float | None = None
) -> str:
    """The most important numbers, beside those that they are to be compared with."""
    shown: list[tuple[str, str, str]] = []
    if found is not None:
        shown.append((percent(found.accuracy), "accuracy", f"{found.n_examples:,} examples"))
    if train_accuracy is not None:
        shown.append((percent(train_accuracy), "training accuracy", "on what it was trained on"))
    if found is not None:
        most = int(np.argmax(found.support))
        usual = f"always “{content.shorten(str(found.labels[most]), 24)}”"
        shown.append((percent(found.support[most] / found.n_examples), "baseline", usual))
        if found.mean_cost is not None:
            shown.append((cost_text(found.mean_cost), "mean cost", "of a prediction"))
        if found.n_classes > 2:
            k = 5 if found.n_classes > 5 else 2
            shown.append((percent(found.top_k_accuracy(k)), f"top-{k} accuracy", ""))
        shown.append((percent(found.macro_f1), "macro F1", "mean over the classes"))
    gap = _gap(classifier)
    note = "of the objective, at most, is left to gain" if gap else "this model was trained without"
    shown.append((gap or "none", "certified gap", note))
    items = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span>'
        f"<small>{escape(note)}</small></div>"
        for value, name, note in shown
    )
    return f'<div class="tiles">{items}</div>'


def _gap(classifier: Classifier) -> str | None:
    gap = getattr(classifier, "dual_gap_", float("nan"))
    return f"{100 * gap:.2g} %" if np.isfinite(gap) else None


def data_and_settings(
    model: Classifier, classifier: Classifier, found: Evaluation | None, data: Mapping[str, object]
) -> str:
    """Two tables of names and values."""
    tables = content.data_rows(classifier, found, data), content.settings(model)
    columns = "".join(f"<div>{_facts(rows)}</div>" for rows in tables)
    return f'<div class="columns">{columns}</div>'


def _facts(rows: content.Rows) -> str:
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(s)}</td></tr>" for name, s in rows)
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def columns(rows: content.Rows) -> str:
    """What became of each column of a table."""
    lead = "<p>What the model makes of each column of a table; the others are not looked at.</p>"
    return lead + f'<div class="scroll">{_facts(rows)}</div>'


def certificate(classifier: Classifier, training: Mapping[str, object]) -> str:
    """What is proven, and how the training got there."""
    gap = _gap(classifier)
    claim = "This model was trained without a certificate."
    if gap is not None:
        claim = (
            f"No weights have an objective lower than this model’s by more than <b>{gap}</b>: "
            "this is proven by the dual, not estimated."
        )
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in content.certificate(classifier)
    )
    drawn = training["certificates"] is not None or training["estimates"] is not None
    facts = f'<p class="lead">{claim}</p><dl class="figures">{items}</dl>'
    return facts + (asset("charts.html") if drawn else "")


def confusion(found: Evaluation) -> str:
    """Confused pairs, and the matrix."""
    pairs = found.confused_pairs(MOST_PAIRS)
    if not pairs:
        return "<p>Every test example is classified correctly.</p>"
    codes = {label: code for code, label in enumerate(found.labels.tolist())}
    largest = max(pair.total for pair in pairs) or 1.0
    rows = [
        _row(
            codes[pair.true],
            codes[pair.predicted],
            _pair_cells(pair, largest, costs=found.costs is not None),
            ' tabindex="0"',
        )
        for pair in pairs
    ]
    titles, first = ["true", "predicted", "#examples", "#share"], "most frequent"
    if found.costs is not None:
        titles, first = [*titles, "#cost"], "most expensive"
    table = _sortable("pairs", titles, rows, "find a class")
    n = found.n_examples
    return (
        f"<p>{n - found.n_correct:,} of {n:,} test examples are wrong. The {first} "
        "confusions first, each with its share of the true class; click one to see it in the "
        'matrix and among the mistakes.</p><div class="columns wide-right">'
        f"<div>{table}</div>{asset('heat_map.html')}</div>"
    )


def _pair_cells(pair: ConfusedPair, largest: float, *, costs: bool) -> str:
    """A bar as long as what the pair costs in all, or as its number of examples."""
    bar = f'<i class="bar" style="width:{3.5 * pair.total / largest:.2f}em"></i>'
    cells = (
        f"<td>{_label(pair.true)}</td><td>{_label(pair.predicted)}</td>"
        + _number(str(pair.count), f"{'' if costs else bar}{pair.count:,}")
        + _number(f"{pair.share:.6f}", f"{pair.share:.0%}")
    )
    if not costs:
        return cells
    if pair.cost is None:
        return cells + _number("-1", "–")
    return cells + _number(f"{pair.total:.6g}", f"{bar}{cost_text(pair.total)}")


def calibration(found: Evaluation) -> str:
    """Whether probabilities mean what they say: a reliability diagram, and its numbers."""
    rows = [
        f"<tr><td>{100 * one.low:.0f} to {100 * one.high:.0f} %</td>"
        + _number(f"{one.confidence:.6f}", f"{100 * one.confidence:.1f}")
        + _number(f"{one.accuracy:.6f}", f"{100 * one.accuracy:.1f}")
        + _number(str(one.count), f"{one.count:,}")
        + "</tr>"
        for one in found.reliability()
    ]
    titles = ("probability", "#mean %", "#right %", "#examples")
    return (
        "<p>How often predictions of some probability are right; on the dashed line, as often as "
        "they say. Expected calibration error: "
        f"<b>{percent(found.calibration_error or 0.0)}</b>, the mean distance from that line.</p>"
        '<div class="columns"><div class="chart" id="reliability-chart"></div>'
        f"<div>{_sortable('bins', titles, rows, 'find a bin')}</div></div>"
    )


def classes(found: Evaluation, labels: list[str]) -> str:
    """Precision and recall of every class, the worst first."""
    columns = (found.precision, found.recall, found.f1)
    rows = []
    for code in np.lexsort((-found.support, found.f1)):
        label = labels[code]
        unknown = " <em>unknown to the model</em>" if code >= found.n_classes else ""
        support = found.support[code]
        cells = [_number(f"{column[code]:.6f}", f"{100 * column[code]:.1f}") for column in columns]
        cells.append(_number(str(support), f"{support:,}"))
        rows.append(f"<tr><td>{_label(label)}{unknown}</td>{''.join(cells)}</tr>")
    titles = ("class", "#precision %", "#recall %", "#F1 %", "#examples")
    lead = "<p>The classes with the lowest F1 first; a click on a title sorts by it.</p>"
    return lead + _sortable("class-table", titles, rows, "find a class")


def features(labels: Sequence[str]) -> str:
    """A place for the lists of the class that is chosen."""
    choices = "".join(
        f'<option value="{code}">{escape(label)}</option>' for code, label in enumerate(labels)
    )
    return (
        "<p>The features with the largest weights for and against a class.</p>"
        f'<label class="pick">class <select id="feature-class">{choices}</select></label>'
        '<div class="columns" id="feature-lists"></div>'
    )


def mistakes(wrong: list[Mistake], labels: list[str], found: Evaluation) -> str:
    """The table of misclassified examples."""
    with_text = any(mistake.text is not None for mistake in wrong)
    with_reasons = any(mistake.reasons for mistake in wrong)
    titles = ["#example", "true", "predicted", "#margin"]
    titles += ["text"] * with_text + ["because of"] * with_reasons
    rows = []
    for one in wrong:
        margin = one.margin if np.isfinite(one.margin) else -1.0
        cells = [
            _number(str(one.number), f"{one.number:,}"),
            f"<td>{_label(labels[one.true])}</td><td>{_label(labels[one.predicted])}</td>",
            _number(f"{margin:.6g}", content.number(one.margin, 3)),
        ]
        if with_text:
            cells.append(f'<td class="text">{escape(one.text or "")}</td>')
        if with_reasons:
            because = ", ".join(escape(name) for name, _ in one.reasons)
            cells.append(f'<td class="why">{because}</td>')
        rows.append(_row(one.true, one.predicted, "".join(cells)))
    n_errors = found.n_examples - found.n_correct
    shown = "All" if len(wrong) == n_errors else f"{len(wrong):,} of the"
    lead = (
        f"<p>{shown} {n_errors:,} misclassified examples, the most decided ones first: margin is "
        "how much higher the predicted class scored than the true one."
        + (" “Because of” names the features that did most for that." if with_reasons else "")
        + '</p><p id="mistake-filter" hidden></p>'
    )
    return lead + _sortable("mistake-table", titles, rows, "find a word or a class")


def _label(label: object) -> str:
    """A label that may be broken after an underscore."""
    return escape(str(label)).replace("_", "_<wbr>")


def _number(value: str, shown: str) -> str:
    """A cell with a number to sort by."""
    return f'<td class="n" data-value="{value}">{shown}</td>'


def _row(true: int, predicted: int, cells: str, more: str = "") -> str:
    """A row about a pair of classes."""
    return f'<tr data-true="{true}" data-predicted="{predicted}"{more}>{cells}</tr>'


def _sortable(name: str, titles: Iterable[str], rows: list[str], placeholder: str) -> str:
    """A table that the script sorts and searches; a title with # stands over numbers."""
    heads = "".join(
        f'<th class="{"n" if title.startswith("#") else ""}" scope="col"><button type="button">'
        f"{escape(title.removeprefix('#'))}</button></th>"
        for title in titles
    )
    return (
        f'<input class="search" type="search" data-table="{name}" placeholder="{placeholder}" '
        f'aria-label="{placeholder}"><div class="scroll"><table class="sortable" id="{name}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
