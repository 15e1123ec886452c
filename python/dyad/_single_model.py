"""Base class of estimators with one model file."""

from __future__ import annotations

import os
import warnings
from typing import Any, Literal, Optional, TypedDict, cast

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _core, _files, _training
from ._base import BaseEstimator
from ._card import SummaryCardMixin
from ._checks import resolve_jobs, resolve_seed

Floats = npt.NDArray[np.float64]
FitStatus = Literal[
    "converged",
    "too_few_rows",
    "not_identifiable",
    "rank_too_small",
    "inconsistent_sign",
    "local_minimum",
    "outliers",
]


class FitReport(TypedDict):
    """Diagnosis of a fit, documented in the attributes of the estimators."""

    status: Optional[FitStatus]
    message: str
    noise: float
    residual: float
    degrees_of_freedom: int
    outliers: int


class SingleModelEstimator(SummaryCardMixin, BaseEstimator):
    """Estimator whose fitted state is one model file, ``_model``."""

    _model: bytes
    warm_start: bool
    _fitted_rank: int
    random_state: Optional[int]
    n_jobs: Optional[int]
    summary_: dict[str, Any]
    fit_report_: FitReport

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

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> import dyad
        >>> A = np.random.default_rng(0).normal(size=(60, 5))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dyad"
        >>> dyad.PhaseRetrieval().fit(A, A[:, 0] ** 2).save(path)
        >>> dyad.load(path)
        PhaseRetrieval()
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
        estimator.fit_report_ = cast(FitReport, {})
        estimator._fitted_rank = len(_core.Predictor.from_bytes(model).parameters()["spectrum"])
        estimator._matrix_errors = estimator._factor_errors = np.array([])
        estimator._restore(model, attributes, saved.name)
        return estimator

    def _count_unknowns(self) -> int:
        """Return the number of unknowns of the model."""
        raise NotImplementedError

    def _report_residual(self, targets: Floats, predictions: Floats, weights: Optional[Floats]) -> None:
        """Add the residual to ``fit_report_``."""
        residual = np.sqrt(np.average((targets - predictions) ** 2, weights=weights))
        self.fit_report_["residual"] = float(residual)

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        """Set the fitted attributes from a file."""
        raise NotImplementedError

    @property
    def _is_continued(self) -> bool:
        """Whether ``fit`` continues from the fitted model."""
        return self.warm_start and hasattr(self, "_model")

    def _train_model(self, rows: _core.Rows, settings: _core.Settings) -> bytes:
        """Train a model, or continue from the fitted one, and set ``summary_`` and ``fit_report_``."""
        if self._is_continued:
            if settings.rank != self._fitted_rank:
                raise ValueError(
                    f"rank must be that of the fitted model, {self._fitted_rank}, got {settings.rank}; set "
                    "warm_start=False to fit a new model."
                )
            settings.kind = settings.rank = settings.seed = None
            settings.right, settings.target = [], ""
        else:
            assert settings.rank is not None
            self._fitted_rank = settings.rank
        model, summary = _training.fit(rows, settings, self._model if self._is_continued else None)
        for warning in summary["warnings"]:
            warnings.warn(warning, ConvergenceWarning, stacklevel=3)
        self._matrix_errors = np.array(summary.pop("matrix_errors", []))
        self._factor_errors = np.array(summary.pop("factor_errors", []))
        self.fit_report_ = {
            "status": summary.pop("status", None),
            "message": summary.pop("status_text", ""),
            "noise": summary["noise"],
            "outliers": summary.pop("outliers", 0),
            "degrees_of_freedom": self._count_unknowns(),
            "residual": np.nan,  # set by _report_residual()
        }
        self.summary_ = summary
        return model


def make_settings(estimator: Any, kind: str, rank: int) -> _core.Settings:
    """Return training options for a model of this kind and rank."""
    settings = _core.Settings()
    settings.kind = kind
    settings.rank = rank
    settings.seed = resolve_seed(estimator.random_state)
    settings.threads = resolve_jobs(estimator.n_jobs)
    return settings
