"""What a notebook shows of an estimator: scikit-learn's diagram, and under it the certificate."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

from polymargin.estimators.compat import ReprHTMLMixin, labelled_block

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
        rows, scores = certificate_rows(self), score_rows(self)
        tables = _table(_caption(self), rows) if rows else ""
        tables += _table("Scores of the folds, mean ± deviation", scores) if scores else ""
        return f'<div class="polymargin-repr">{diagram}{tables}</div>' if tables else diagram

    def _sk_visual_block_(self) -> object:
        """What scikit-learn's diagrams show of it, also within a pipeline or a search."""
        return labelled_block(self, _caption(self) if certificate_rows(self) else "")


def _table(caption: str, rows: list[tuple[str, str]]) -> str:
    body = "".join(_ROW.format(name=escape(name), value=escape(text)) for name, text in rows)
    return _TABLE.format(caption=escape(caption), rows=body)


def certificate_rows(estimator: Any) -> list[tuple[str, str]]:
    """Names and values of what a fitted estimator proves and is; nothing if it is not fitted."""
    if not hasattr(estimator, "classes_") or not hasattr(estimator, "n_iter_"):
        return []
    passes = getattr(estimator, "_unit_of_work", "passes")
    rows = [("C, of those tried", f"{estimator.C_:.6g}")] if hasattr(estimator, "C_") else []
    rows += [
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


def score_rows(estimator: Any) -> list[tuple[str, str]]:
    """Scores of a search for C: of every C that all folds tried, the best one marked."""
    if not hasattr(estimator, "scores_"):
        return []
    tried = np.isfinite(estimator.scores_).all(axis=0)
    return [
        (
            f"C = {C:.4g}" + (" (best)" if estimator.C_ == C else ""),
            f"{np.mean(scores):.4f} ± {np.std(scores):.4f}",
        )
        for C, scores in zip(estimator.Cs_[tried], estimator.scores_[:, tried].T, strict=True)
    ]


def _caption(estimator: object) -> str:
    gap = getattr(estimator, "dual_gap_", float("nan"))
    if not np.isfinite(gap):
        return "Not certified"
    return f"Certified: no weights have an objective lower by more than {100 * gap:.2g} %"


def _number(value: float | None, digits: int = 8) -> str:
    if value is None or not np.isfinite(value):
        return "not computed"
    return f"{value:.{digits}g}"
