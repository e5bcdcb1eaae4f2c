"""What a notebook shows of an estimator: scikit-learn's diagram, and under it the certificate."""

from __future__ import annotations

from html import escape

import numpy as np
from sklearn.utils import estimator_html_repr

from polymargin.estimators.compat import ReprHTMLMixin

_TABLE = (
    '<table style="margin:.4em 0 0;border-collapse:collapse;font-size:.9em">'
    "<caption style='text-align:left;font-weight:600;padding:.2em .6em'>{caption}</caption>"
    "<tbody>{rows}</tbody></table>"
)
_ROW = (
    "<tr><th style='text-align:left;font-weight:400;padding:.1em .6em'>{name}</th>"
    "<td style='text-align:right;padding:.1em .6em'>{value}</td></tr>"
)


class CertificateHTMLMixin(ReprHTMLMixin):
    """Adds a table with the certificate to the HTML of a fitted estimator."""

    def _html_repr(self) -> str:
        diagram: str = estimator_html_repr(self)
        rows = certificate_rows(self)
        if not rows:
            return diagram
        body = "".join(_ROW.format(name=escape(name), value=escape(text)) for name, text in rows)
        table = _TABLE.format(caption=escape(_caption(self)), rows=body)
        return f'<div class="polymargin-repr">{diagram}{table}</div>'


def certificate_rows(estimator: object) -> list[tuple[str, str]]:
    """Names and values of what a fitted estimator proves and is; nothing if it is not fitted."""
    if not hasattr(estimator, "classes_") or not hasattr(estimator, "n_iter_"):
        return []
    passes = getattr(estimator, "_unit_of_work", "passes")
    rows = [
        ("objective", _number(getattr(estimator, "objective_", None))),
        ("lower bound (dual)", _number(getattr(estimator, "dual_objective_", None))),
        ("relative gap", _number(getattr(estimator, "dual_gap_", None), 2)),
        (passes, f"{int(estimator.n_iter_):,}"),
        ("classes", f"{len(estimator.classes_):,}"),
    ]
    if hasattr(estimator, "n_features_in_"):
        rows.append(("features", f"{int(estimator.n_features_in_):,}"))
    if hasattr(estimator, "n_support_"):
        rows.append(("support patterns", f"{int(np.sum(estimator.n_support_)):,}"))
    return rows


def _caption(estimator: object) -> str:
    gap = getattr(estimator, "dual_gap_", float("nan"))
    if not np.isfinite(gap):
        return "Not certified"
    return f"Certified: no weights have an objective lower by more than {100 * gap:.2g} %"


def _number(value: float | None, digits: int = 8) -> str:
    if value is None or not np.isfinite(value):
        return "not computed"
    return f"{value:.{digits}g}"
