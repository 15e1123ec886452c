"""The common part of regression and classification: parameters, rows, models and files."""

from __future__ import annotations

import logging
import math
import numbers
import os
import warnings
from typing import Any, Callable, Optional

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data

from . import _core, _files, _rows
from ._checks import require_choice, require_whole, seed_of, threads_of
from ._plots import Plots
from ._predictors import Predictors

logger = logging.getLogger("dyad")

Callback = Callable[[str, int, str, float], None]

# That of the library, which lowers it without a warning to the number of features, unless a rank is given.
DEFAULT_RANK = 8

# What a fitted model does not depend on.
_FREE_PARAMETERS = ("memory", "n_threads", "warm_start", "verbose", "callback")


class Factorization(Plots, BaseEstimator):
    """Base class of the regressor and the classifier."""

    def __init__(
        self,
        rank: int = DEFAULT_RANK,
        *,
        solver: str = "auto",
        diagonal: str = "auto",
        passes: Optional[int] = None,
        half_life: Optional[int] = None,
        memory: float = 1e9,
        precision: str = "double",
        random_state: Optional[int] = None,
        n_threads: Optional[int] = None,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Optional[Callback] = None,
    ) -> None:
        self.rank = rank
        self.solver = solver
        self.diagonal = diagonal
        self.passes = passes
        self.half_life = half_life
        self.memory = memory
        self.precision = precision
        self.random_state = random_state
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_predictors", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_models" in state:
            self._predictors = Predictors(self._models)
            # Version 0.1.0 did not pickle these.
            self.__dict__.setdefault("_fitted_parameters", {})
            self.__dict__.setdefault("_categorical", None)

    def _settings(self) -> _core.Settings:
        require_whole("rank", self.rank, 1)
        require_whole("passes", self.passes, 1, optional=True)
        require_whole("half_life", self.half_life, 1, optional=True)
        require_whole("verbose", int(self.verbose), 0)
        require_choice("solver", self.solver, ("auto", "moment", "kalman", "newton", "variational"))
        require_choice("diagonal", self.diagonal, ("auto", "tied", "zero", "free"))
        require_choice("precision", self.precision, ("double", "single"))
        if not isinstance(self.memory, numbers.Real) or not self.memory >= 0:
            raise ValueError(f"memory must be a number of bytes, at least 0, got {self.memory!r}.")
        settings = _core.Settings()
        settings.rank = None if self.rank == DEFAULT_RANK else int(self.rank)
        settings.solver = None if self.solver == "auto" else self.solver
        settings.diagonal = None if self.diagonal == "auto" else self.diagonal
        settings.passes = None if self.passes is None else int(self.passes)
        settings.half_life = None if self.half_life is None else int(self.half_life)
        settings.memory = float(self.memory)
        settings.precision = self.precision
        settings.seed = seed_of(self.random_state)
        settings.threads = threads_of(self.n_threads)
        settings.target = "target"
        return settings

    def _one_pass_settings(self) -> _core.Settings:
        settings = self._settings()
        settings.passes = 1 if settings.solver in (None, "auto") else None
        return settings

    def _rows_of(self, X: Any, reset: bool) -> _core.Rows:
        """Check X as scikit-learn does; with ``reset``, store the layout of the rows."""
        _rows.require_supported(X)
        if not _rows.is_table(X) or not (reset or self._layout == "table"):
            return self._rows_of_array(_rows.as_frame(X), reset)
        validate_data(self, _rows.header(X), reset=reset, skip_check_array=True)
        if len(X) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        names = _rows.column_names(X)
        if not names:
            raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
        rows, categorical = _rows.from_table(X, None if reset else self._categorical)
        if reset:
            self._layout: str = "table"
            self._columns = names
            self._categorical: Optional[frozenset[str]] = categorical
        return rows

    def _is_valid_array(self, X: Any) -> bool:
        """Whether X passes the checks of scikit-learn, which take three times as long as predicting one row."""
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _rows_of_array(self, X: Any, reset: bool) -> _core.Rows:
        if not reset and self._is_valid_array(X):
            return _rows.from_array(X)
        if sp.issparse(X):
            _rows.require_valid_sparse(X)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if reset:
            self._layout = "sparse" if sp.issparse(X) else "matrix"
        return _rows.from_sparse(X) if sp.issparse(X) else _rows.from_array(X)

    def _rows_to_predict(self, X: Any) -> _core.Rows:
        check_is_fitted(self)
        return self._rows_of(X, reset=False)

    def _is_continued(self, is_partial: bool) -> bool:
        """Whether training goes on from the present model, which keeps the parameters that it was fitted with."""
        if not hasattr(self, "_models") or not (is_partial or self.warm_start):
            return False
        for name, before in self._fitted_parameters.items():
            now = getattr(self, name)
            if now is not before and now != before:
                raise ValueError(
                    f"{name} is {now!r}, but the model was fitted with {before!r} and keeps it when training goes on: "
                    f"set {name} back, or fit a new model with warm_start=False."
                )
        return True

    def _learn(self, rows: _core.Rows, settings: _core.Settings, model: Optional[bytes]) -> tuple[bytes, dict[str, Any]]:
        if model is not None:
            for name in ("rank", "solver", "diagonal", "passes", "half_life", "precision", "seed", "range"):
                setattr(settings, name, None)
            settings.target = ""
        learned, summary = _core.fit(rows, settings, model, self._report)
        for warning in summary["warnings"]:
            warnings.warn(warning, ConvergenceWarning, stacklevel=4)
        logger.info("%s rows in %.3f s; %s", summary["rows"], summary["seconds"], summary["origin"])
        return learned, summary

    def _report(self, stage: str, rows: int, level: str, loss: float) -> None:
        if self.verbose:
            known_loss = "" if math.isnan(loss) else f", loss {loss:.6g}"  # NaN: this step has not measured it
            print(f"dyad: {f'{rows} rows' if stage == 'pass' else level}{known_loss}")
        if self.callback is not None:
            self.callback(stage, rows, level, loss)

    def _keep(self, learned: list[tuple[bytes, dict[str, Any]]]) -> None:
        self._models = [model for model, _ in learned]
        self.summary_ = learned[0][1] if len(learned) == 1 else [summary for _, summary in learned]
        self._predictors = Predictors(self._models)
        parameters = self.get_params(deep=False)
        self._fitted_parameters = {name: parameters[name] for name in parameters if name not in _FREE_PARAMETERS}

    @property
    def _threads(self) -> int:
        return threads_of(self.n_threads)

    def _of_class(self, class_index: Optional[int]) -> int:
        check_is_fitted(self)
        count = len(self._models)
        if class_index is None:
            if count > 1:
                raise ValueError(f"There is one model for each class: choose class_index from 0 to {count - 1}.")
            return 0
        require_whole("class_index", class_index, 0)
        if class_index >= count:
            raise ValueError(f"class_index must lie in [0, {count}), got {class_index}.")
        return int(class_index)

    def save(self, path: str | os.PathLike[str], class_index: Optional[int] = None) -> None:
        """Write the estimator to a file for `dyad.load`, and for the ``dyad`` command if it has one model.

        Parameters of the constructor and types of class labels are kept; ``summary_`` is not. A ``callback`` and a
        ``random_state`` that is a generator cannot be saved.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced as a whole, or not at all. Links and permissions are kept.
        class_index : int, optional
            Of a classifier with more than two classes, write only the model of this class against the others, which
            the ``dyad`` command reads. Without it, the file is a container of all models.
        """
        check_is_fitted(self)
        if class_index is not None:
            _files.write(path, self._models[self._of_class(class_index)])
            return
        attributes = {"has_feature_names": hasattr(self, "feature_names_in_"), **self._attributes()}
        _files.write(path, _files.to_bytes(self, self._models, self.get_params(deep=False), attributes))

    def _attributes(self) -> dict[str, Any]:
        """What a file holds besides models and parameters."""
        return {}

    @classmethod
    def _from_saved(cls, saved: _files.Saved) -> Any:
        predictor = _core.Predictor.from_bytes(saved.parts[0], saved.name)
        attributes, parameters = saved.attributes, saved.parameters
        if parameters is None:
            parameters = {"rank": len(predictor.parameters()["spectrum"])}
        estimator = cls(**parameters)
        estimator._layout = predictor.layout()
        estimator._columns = predictor.column_names()
        estimator._categorical = frozenset(predictor.categorical_columns())
        estimator.n_features_in_ = len(estimator._columns)
        if estimator._layout == "table" and (attributes is None or attributes["has_feature_names"]):
            estimator.feature_names_in_ = np.array(estimator._columns, dtype=object)
        estimator._keep([(part, {}) for part in saved.parts])
        estimator._restore(predictor, attributes)
        return estimator

    def _restore(self, predictor: _core.Predictor, attributes: Optional[dict[str, Any]]) -> None:
        pass

    def interactions(self, top: int = 20, class_index: Optional[int] = None) -> Any:
        """Return the strongest pairs of features as a table.

        Parameters
        ----------
        top : int, default=20
            How many.
        class_index : int, optional
            Which class's model, where a classifier has more than two classes.

        Returns
        -------
        pandas.DataFrame
            With the columns ``left``, ``right``, ``coefficient`` (in the units of the data) and ``effect`` (of one
            standard deviation of each, or of being in a category).
        """
        require_whole("top", top, 0)
        place = self._of_class(class_index)
        found = self._predictors[place].inspect(int(top))
        return pd.DataFrame(found["pairs"], columns=["left", "right", "coefficient", "effect"])

    def parameters(self, class_index: Optional[int] = None) -> dict[str, Any]:
        """Return the model's arrays: ``intercept``, ``weights``, ``factors``, ``spectrum`` and ``squares``.

        They are those of scaled features and the scaled target: y = b + w'z + z'(U diag(spectrum) U')z + squares'z**2.
        """
        place = self._of_class(class_index)
        return self._predictors[place].parameters()


def require_target(y: Any) -> None:
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")


def require_same_length(X: Any, y: Any) -> None:
    count = _num_samples(X)
    if count != y.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {count}, y {y.shape[0]}.")


def set_weights(rows: _core.Rows, sample_weight: Any, X: Any) -> None:
    if sample_weight is None:
        return
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must not be 0 for all rows.")
    rows.set_weights(np.require(weights, requirements=["C", "A"]))
