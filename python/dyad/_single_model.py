"""Base class of estimators with one model file."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _core, _files
from ._card import SummaryCardMixin
from ._checks import resolve_seed, resolve_threads


class SingleModelEstimator(SummaryCardMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Estimator whose fitted state is one model file, ``_model``."""

    _model: bytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the estimator to a file for `dyad.load` and the ``dyad`` command.

        Parameters
        ----------
        path : str or path-like
            File. It is replaced atomically; symbolic links and permissions are kept.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        OSError
            If the file cannot be written.

        See Also
        --------
        dyad.load : Load an estimator.
        """
        check_is_fitted(self)
        _files.write(path, _files.to_bytes(self, [self._model], self.get_params(deep=False), self._saved_attributes()))

    def _saved_attributes(self) -> dict[str, Any]:
        """Return the fitted attributes, besides the model, that a file contains."""
        return {}

    def _summary_lines(self) -> list[tuple[str, str]]:
        inspection = _core.Predictor.from_bytes(self._model).inspect(0)
        lines = [("rows", inspection["training"].get("rows", "unknown"))]
        lines.append(("spectrum", ", ".join(f"{value:.4g}" for value in inspection["spectrum"][:12])))
        if self.fit_report_:
            lines.append(("status", f"{self.fit_report_['status']}; {self.fit_report_['message']}"))
            lines.append(("noise (standard deviation)", f"{self.fit_report_['noise']:.4g}"))
        return lines

    @classmethod
    def _from_saved(cls, saved: _files.SavedEstimator) -> Any:
        model, parameters, attributes = saved.single_part()
        estimator = cls(**parameters)
        estimator.summary_ = {}
        estimator.fit_report_ = {}
        estimator._matrix_errors = estimator._factor_errors = np.array([])
        estimator._restore(model, attributes, saved.name)
        return estimator

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        """Set the fitted attributes from a file."""
        raise NotImplementedError

    def _train_model(self, rows: _core.Rows, settings: _core.Settings) -> bytes:
        model, summary = _core.fit(rows, settings)
        for warning in summary["warnings"]:
            warnings.warn(warning, ConvergenceWarning, stacklevel=3)
        self._matrix_errors = np.array(summary.pop("matrix_errors", []))
        self._factor_errors = np.array(summary.pop("factor_errors", []))
        self.fit_report_ = {
            "status": summary.pop("status", None),
            "message": summary.pop("status_text", ""),
            "noise": summary["noise"],
            "outliers": summary.pop("outliers", 0),
        }
        self.summary_ = summary
        return model


def make_settings(estimator: Any, kind: str, rank: int) -> _core.Settings:
    """Return training options for a model of this kind and rank."""
    settings = _core.Settings()
    settings.kind = kind
    settings.rank = rank
    settings.seed = resolve_seed(estimator.random_state)
    settings.threads = resolve_threads(estimator.n_threads)
    return settings
