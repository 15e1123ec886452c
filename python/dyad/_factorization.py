"""Base class of the factorization regressor and classifier: parameters, rows, models and files."""

from __future__ import annotations

import logging
import math
import numbers
import os
import warnings
from typing import Any, Callable, Literal, Optional, Union

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from . import _core, _dask, _feature_statistics, _files, _training
from ._base import BaseEstimator
from ._card import FactorizationCardMixin
from ._checks import check_choice, check_integer, check_prior_scale, resolve_jobs, resolve_seed
from ._encoding import CategoricalFeatures, ColumnEncoding, EncodedRows
from ._explain import ExplainMixin
from ._input import InputMixin, InputRows
from ._inspection import InspectionMixin
from ._plots import PlotMixin
from ._predictors import LazyPredictors

logger = logging.getLogger("dyad")

# Called with (stage, rows, level, loss), as documented in FactorizationRegressor.
Callback = Callable[[str, int, str, float], None]

Solver = Literal["auto", "anova", "moment", "kalman", "newton", "sampling", "variational"]
Diagonal = Literal["auto", "tied", "zero", "free"]

# Constructor parameters that do not affect the fitted model. They may change before training is continued.
_RUNTIME_PARAMETERS = ("max_bytes", "n_jobs", "warm_start", "verbose", "callback")


class BaseFactorization(
    FactorizationCardMixin, InputMixin, InspectionMixin, ExplainMixin, PlotMixin, BaseEstimator
):
    """Base class of `FactorizationRegressor` and `FactorizationClassifier`."""

    def __init__(
        self,
        rank: Optional[int] = None,
        *,
        solver: Solver = "auto",
        curves: Literal["auto", "off"] = "auto",
        diagonal: Diagonal = "auto",
        categorical_features: CategoricalFeatures = "from_dtype",
        date_encoding: Optional[Literal["calendar"]] = None,
        max_iter: Optional[int] = None,
        samples: Optional[int] = None,
        half_life: Optional[int] = None,
        prior_scale: Optional[float] = None,
        max_bytes: float = 1e9,
        precision: Literal["double", "single"] = "double",
        random_state: Optional[int] = None,
        n_jobs: Optional[int] = -1,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Optional[Callback] = None,
    ) -> None:
        self.rank = rank
        self.solver = solver
        self.curves = curves
        self.diagonal = diagonal
        self.categorical_features = categorical_features
        self.date_encoding = date_encoding
        self.max_iter = max_iter
        self.samples = samples
        self.half_life = half_life
        self.prior_scale = prior_scale
        self.max_bytes = max_bytes
        self.precision = precision
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling."""
        state = dict(super().__getstate__())
        state.pop("_predictors", None)
        state.pop("_class_predictor_cache", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of `__getstate__`."""
        super().__setstate__(state)
        if "_models" in state:
            self._predictors = LazyPredictors(self._models)

    def _settings(self) -> _core.Settings:
        """Validate the constructor parameters and convert them."""
        check_integer("rank", self.rank, 1, optional=True)
        check_integer("max_iter", self.max_iter, 1, optional=True)
        check_integer("samples", self.samples, 1, optional=True)
        check_integer("half_life", self.half_life, 1, optional=True)
        check_integer("verbose", int(self.verbose), 0)
        check_choice("solver", self.solver, ("auto", "anova", "moment", "kalman", "newton", "sampling", "variational"))
        check_choice("curves", self.curves, ("auto", "off"))
        check_choice("diagonal", self.diagonal, ("auto", "tied", "zero", "free"))
        if self.date_encoding is not None:
            check_choice("date_encoding", self.date_encoding, ("calendar",))
        check_choice("precision", self.precision, ("double", "single"))
        if not isinstance(self.max_bytes, numbers.Real) or not self.max_bytes >= 0:
            raise ValueError(f"max_bytes must be a number of bytes of at least 0, got {self.max_bytes!r}.")
        settings = _core.Settings()
        settings.rank = None if self.rank is None else int(self.rank)
        settings.curves = self.curves == "auto"
        settings.solver = None if self.solver == "auto" else self.solver
        settings.diagonal = None if self.diagonal == "auto" else self.diagonal
        settings.passes = None if self.max_iter is None else int(self.max_iter)
        settings.samples = None if self.samples is None else int(self.samples)
        settings.half_life = None if self.half_life is None else int(self.half_life)
        settings.prior_scale = check_prior_scale(self.prior_scale, self.solver)
        settings.memory = float(self.max_bytes)
        settings.precision = self.precision
        settings.seed = resolve_seed(self.random_state)
        settings.threads = resolve_jobs(self.n_jobs)
        settings.target = "target"
        return settings

    def _one_pass_settings(self) -> _core.Settings:
        """Return the settings of `partial_fit`: one pass with 'auto', and the default passes of other solvers."""
        settings = self._settings()
        settings.passes = 1 if settings.solver in (None, "auto") else None
        return settings

    def _make_prediction_rows(self, X: Any) -> _core.Rows:
        check_is_fitted(self)
        rows = self._read_rows(X, reset=False).rows
        assert isinstance(rows, _core.Rows)
        return rows

    def _continues_training(self, is_partial: bool) -> bool:
        """Return whether training continues from the fitted model.

        Raises
        ------
        ValueError
            If a parameter on which the model depends has changed since the model was fitted.
        """
        if not hasattr(self, "_models") or not (is_partial or self.warm_start):
            return False
        for name, fitted_value in self._fitted_parameters.items():
            value = getattr(self, name)
            # categorical_features may be an array.
            if value is not fitted_value and not np.array_equal(value, fitted_value):
                raise ValueError(
                    f"{name} is {value!r}, but training continues from a model that was fitted with {name}="
                    f"{fitted_value!r}; set {name} to that value, or fit a new model with warm_start=False."
                )
        return True

    def _train_model(
        self, rows: Union[_core.Rows, _dask.PartitionedRows], settings: _core.Settings, model: Optional[bytes]
    ) -> tuple[bytes, dict[str, Any]]:
        """Train a new model, or continue from ``model``. Return the model and the summary."""
        if isinstance(rows, _dask.PartitionedRows):
            return rows.train(settings)
        if model is not None:
            for name in ("rank", "solver", "diagonal", "passes", "samples", "half_life", "prior_scale", "precision", "seed", "range"):
                setattr(settings, name, None)
            settings.target = ""
        trained, summary = _training.fit(rows, settings, model, self._report_progress)
        for warning in summary["warnings"]:
            warnings.warn(warning, ConvergenceWarning, stacklevel=4)
        logger.info("%s rows in %.3f s; %s", summary["rows"], summary["seconds"], summary["origin"])
        return trained, summary

    def _report_progress(self, stage: str, rows: int, level: str, loss: float) -> None:
        if self.verbose:
            loss_text = "" if math.isnan(loss) else f", loss {loss:.6g}"  # NaN: not measured in this step
            print(f"dyad: {f'{rows} rows' if stage == 'pass' else level}{loss_text}")
        if self.callback is not None:
            self.callback(stage, rows, level, loss)

    def _set_models(self, trained: list[tuple[bytes, dict[str, Any]]]) -> None:
        """Store the models and summaries of a fit."""
        self._models = [model for model, _ in trained]
        self.summary_ = trained[0][1] if len(trained) == 1 else [summary for _, summary in trained]
        self._predictors = LazyPredictors(self._models)
        parameters = self.get_params(deep=False)
        self._fitted_parameters = {name: parameters[name] for name in parameters if name not in _RUNTIME_PARAMETERS}

    def _add_statistics(self, data: InputRows, sample_weight: Any, is_continued: bool) -> None:
        """Update the counts and moments of the features, for `weights` and ``feature_importances_``."""
        previous = self._statistics if is_continued else None
        self._statistics = None
        if self._predictors[0].is_anova() or (is_continued and previous is None):
            return
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weights is not None and weights.ndim == 0:
            weights = None
        features = _core.features(self._models[0])
        if isinstance(data.values, _dask.PartitionedRows):
            added = data.values.statistics(features)
        else:
            added = _feature_statistics.compute(features, data.values, weights)
        self._statistics = added if previous is None else previous + added

    @property
    def _threads(self) -> int:
        return resolve_jobs(self.n_jobs)

    def save(self, path: str | os.PathLike[str], class_index: Optional[int] = None) -> None:
        """Save the estimator to a file for `dyad.load` and the ``dyad`` command.

        Parameters
        ----------
        path : str or path-like
            File. It is replaced atomically; symbolic links and permissions are kept.
        class_index : int, optional
            For a classifier of more than two classes: save only the model of this class against the others. By
            default, the file contains the models of all classes.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        OSError
            If the file cannot be written.
        TypeError
            If the class labels have a type that cannot be saved.

        Warns
        -----
        UserWarning
            If a parameter cannot be saved: ``callback``, or a ``random_state`` that is a generator.

        See Also
        --------
        dyad.load : Load an estimator.

        Notes
        -----
        The file contains the constructor parameters and the class labels with their types. It does not contain
        ``summary_``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> import dyad
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dyad"
        >>> dyad.FactorizationRegressor(rank=1).fit(X, X[:, 0]).save(path)
        >>> dyad.load(path).n_features_in_
        2
        """
        check_is_fitted(self)
        if class_index is not None:
            _files.write(path, self._models[self._model_index(class_index)])
            return
        attributes = {"has_feature_names": hasattr(self, "feature_names_in_"), **self._saved_attributes()}
        if self._encoding is not None and self._encoding.dates:
            attributes["columns"] = self._encoding.names
            attributes["dates"] = self._encoding.dates
        _files.write(path, _files.to_bytes(self, self._saved_parts(), self.get_params(deep=False), attributes))

    def _saved_parts(self) -> list[bytes]:
        """Return the models that a file contains."""
        return self._models

    def _saved_attributes(self) -> dict[str, Any]:
        """Return the fitted attributes, besides the models, that a file contains."""
        return {}

    @classmethod
    def _from_saved(cls, saved: _files.SavedEstimator) -> Any:
        predictor = _core.Predictor.from_bytes(saved.parts[0], saved.name)
        attributes, parameters = saved.attributes, saved.parameters
        if parameters is None:
            parameters = {} if predictor.is_anova() else {"rank": len(predictor.parameters()["spectrum"])}
        estimator = cls(**parameters)
        estimator._layout = predictor.layout()
        names = predictor.column_names()
        estimator._encoding = None
        if estimator._layout == "table":
            saved_columns = attributes or {}
            names = saved_columns.get("columns", names)
            categorical = frozenset(predictor.categorical_columns()) & set(names)
            estimator._encoding = ColumnEncoding(names, categorical, saved_columns.get("dates", {}))
            if attributes is None or attributes["has_feature_names"]:
                estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator.n_features_in_ = len(names)
        estimator._statistics = None
        estimator._set_models([(part, {}) for part in saved.parts])
        estimator._restore(predictor, attributes, saved.content)
        return estimator

    def _restore(self, predictor: _core.Predictor, attributes: Optional[dict[str, Any]], content: bytes) -> None:
        """Set the fitted attributes of a subclass from a file."""


def check_target_given(y: Any) -> None:
    """Raise ValueError if y is None, with the message of scikit-learn."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")


def check_same_length(X: Any, y: Any) -> None:
    """Raise ValueError unless X and y have the same number of rows."""
    count = X.count if isinstance(X, EncodedRows) else _num_samples(X)
    if count != y.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {count}, y {y.shape[0]}.")


def set_weights(rows: Union[_core.Rows, _dask.PartitionedRows], sample_weight: Any, X: Any) -> None:
    """Validate the weights and set them, unless they are None."""
    if sample_weight is not None:
        rows.set_weights(np.require(_check_weights(sample_weight, X), requirements=["C", "A"]))


def set_relative_weights(
    rows: _core.Rows, sample_weight: Any, X: Any
) -> Optional[npt.NDArray[np.float64]]:
    """Validate the weights and set them, scaled to a mean of 1 over the positive ones. Return them, or None."""
    if sample_weight is None:
        return None
    weights = _check_weights(sample_weight, X)
    weights = np.require(weights / weights[weights > 0].mean(), np.float64, ["C", "A"])
    rows.set_weights(weights)
    return weights


def _check_weights(sample_weight: Any, X: Any) -> npt.NDArray[np.float64]:
    weights: npt.NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise ValueError("sample_weight must be positive for at least one row, got 0 for all rows.")
    return weights
