"""Summary of a fitted estimator as HTML, for notebooks."""

from __future__ import annotations

import html
from typing import Any

from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted
from sklearn.exceptions import NotFittedError

_STYLE = "border-collapse:collapse;margin-top:0.5em;font-size:90%"
_CELL = "border:1px solid #bbb;padding:0.2em 0.6em;text-align:left"


class SummaryCardMixin:
    """HTML representation: the diagram of scikit-learn and, after ``fit``, a table with a summary of the model."""

    def _html_repr(self) -> str:
        diagram = str(estimator_html_repr(self))
        try:
            check_is_fitted(self)
        except NotFittedError:
            return diagram
        cells = "".join(
            f'<tr><th style="{_CELL}">{html.escape(name)}</th><td style="{_CELL}">{html.escape(text)}</td></tr>'
            for name, text in self._summary_lines()
        )
        return f'{diagram}<table class="dyad-summary" style="{_STYLE}">{cells}</table>'

    def _summary_lines(self) -> list[tuple[str, str]]:
        """Return the names and values of the summary."""
        raise NotImplementedError


class FactorizationCardMixin(SummaryCardMixin):
    """Summary of `FactorizationRegressor` and `FactorizationClassifier`."""

    def _summary_lines(self) -> list[tuple[str, str]]:
        estimator: Any = self
        summaries = estimator.summary_ if isinstance(estimator.summary_, list) else [estimator.summary_]
        summary = summaries[0]
        inspection = estimator._predictors[0].inspect(3)
        lines = [("rows", inspection["training"].get("rows", "unknown"))]
        lines.append(("columns", str(estimator.n_features_in_)))
        if hasattr(estimator, "classes_"):
            lines.append(("classes", _join([str(label) for label in estimator.classes_])))
        if hasattr(estimator, "temperature_"):
            lines.append(("temperature", f"{estimator.temperature_:.4g}"))
        if "origin" in summary:
            lines.append(("fitted by", summary["origin"]))
            lines.append(("seconds", f"{sum(one['seconds'] for one in summaries):.2f}"))
        if inspection["noise"] > 0:
            lines.append(("noise (standard deviation)", f"{inspection['noise']:.4g}"))
        if len(summaries) == 1:
            lines.append(("strongest terms", _join(_strongest_terms(inspection)) or "none"))
        return lines


def _join(names: list[str]) -> str:
    """Join names by commas; long lists are truncated."""
    shown = 12
    return ", ".join(names[:shown]) + (f", ... ({len(names)})" if len(names) > shown else "")


def _strongest_terms(inspection: dict[str, Any]) -> list[str]:
    if inspection["effects"]:
        effects = inspection["effects"]
        return [
            f"{' × '.join(axis[0] for axis in effect['axes'])} ({100 * effect['share']:.0f}%)" for effect in effects
        ]
    terms = [(left, effect) for left, _, _, effect in inspection["weights"]]
    terms += [
        (f"{left}²" if left == right else f"{left} × {right}", effect) for left, right, _, effect in inspection["pairs"]
    ]
    strongest = sorted(terms, key=lambda term: -abs(term[1]))[:3]
    return [f"{name} ({effect:+.3g})" for name, effect in strongest]
