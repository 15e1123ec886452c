"""Base class of the factorization regressor and classifier: parameters, rows, models and files."""

from __future__ import annotations

import logging
import math
import numbers
import os
import warnings
from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data

from . import _core, _files, _rows
from ._card import FactorizationCardMixin
from ._checks import check_choice, check_integer, resolve_seed, resolve_threads
from ._explain import ExplainMixin
from ._plots import PlotMixin
from ._predictors import LazyPredictors

logger = logging.getLogger("dyad")

# Called with (stage, rows, level, loss), as documented in FactorizationRegressor.
Callback = Callable[[str, int, str, float], None]

# Constructor parameters that do not affect the fitted model. They may change before training is continued.
_RUNTIME_PARAMETERS = ("memory", "n_threads", "warm_start", "verbose", "callback")


class BaseFactorization(FactorizationCardMixin, ExplainMixin, PlotMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of `FactorizationRegressor` and `FactorizationClassifier`."""

    def __init__(
        self,
        rank: Optional[int] = None,
        *,
        solver: str = "auto",
        curves: str = "auto",
        diagonal: str = "auto",
        passes: Optional[int] = None,
        samples: Optional[int] = None,
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
        self.curves = curves
        self.diagonal = diagonal
        self.passes = passes
        self.samples = samples
        self.half_life = half_life
        self.memory = memory
        self.precision = precision
        self.random_state = random_state
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
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
            # Pickles of version 0.1.0 do not contain these attributes.
            self.__dict__.setdefault("_fitted_parameters", {})
            self.__dict__.setdefault("_categorical", None)
            self.__dict__.setdefault("samples", None)

    def _settings(self) -> _core.Settings:
        """Validate the constructor parameters and convert them."""
        check_integer("rank", self.rank, 1, optional=True)
        check_integer("passes", self.passes, 1, optional=True)
        check_integer("samples", self.samples, 1, optional=True)
        check_integer("half_life", self.half_life, 1, optional=True)
        check_integer("verbose", int(self.verbose), 0)
        check_choice("solver", self.solver, ("auto", "anova", "moment", "kalman", "newton", "sampling", "variational"))
        check_choice("curves", self.curves, ("auto", "off"))
        check_choice("diagonal", self.diagonal, ("auto", "tied", "zero", "free"))
        check_choice("precision", self.precision, ("double", "single"))
        if not isinstance(self.memory, numbers.Real) or not self.memory >= 0:
            raise ValueError(f"memory must be a number of bytes of at least 0, got {self.memory!r}.")
        settings = _core.Settings()
        settings.rank = None if self.rank is None else int(self.rank)
        settings.curves = self.curves == "auto"
        settings.solver = None if self.solver == "auto" else self.solver
        settings.diagonal = None if self.diagonal == "auto" else self.diagonal
        settings.passes = None if self.passes is None else int(self.passes)
        settings.samples = None if self.samples is None else int(self.samples)
        settings.half_life = None if self.half_life is None else int(self.half_life)
        settings.memory = float(self.memory)
        settings.precision = self.precision
        settings.seed = resolve_seed(self.random_state)
        settings.threads = resolve_threads(self.n_threads)
        settings.target = "target"
        return settings

    def _one_pass_settings(self) -> _core.Settings:
        """Return the settings of `partial_fit`: one pass with 'auto', and the default passes of other solvers."""
        settings = self._settings()
        settings.passes = 1 if settings.solver in (None, "auto") else None
        return settings

    def _make_rows(self, X: Any, reset: bool) -> _core.Rows:
        """Validate X with scikit-learn and convert it. With ``reset``, store its layout and its feature names."""
        _rows.check_supported(X)
        if not _rows.is_table(X) or not (reset or self._layout == "table"):
            return self._make_array_rows(_rows.as_frame(X), reset)
        validate_data(self, _rows.column_header(X), reset=reset, skip_check_array=True)
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
        """Return whether X is a valid array for prediction, without a call of scikit-learn.

        The validation of scikit-learn takes longer than the prediction of a few rows.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _make_array_rows(self, X: Any, reset: bool) -> _core.Rows:
        if not reset and self._is_valid_array(X):
            return _rows.from_array(X)
        if sp.issparse(X):
            _rows.check_sparse(X)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if reset:
            self._layout = "sparse" if sp.issparse(X) else "matrix"
        return _rows.from_sparse(X) if sp.issparse(X) else _rows.from_array(X)

    def _make_prediction_rows(self, X: Any) -> _core.Rows:
        check_is_fitted(self)
        return self._make_rows(X, reset=False)

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
            if value is not fitted_value and value != fitted_value:
                raise ValueError(
                    f"{name} is {value!r}, but training continues from a model that was fitted with {name}="
                    f"{fitted_value!r}; set {name} to that value, or fit a new model with warm_start=False."
                )
        return True

    def _train_model(
        self, rows: _core.Rows, settings: _core.Settings, model: Optional[bytes]
    ) -> tuple[bytes, dict[str, Any]]:
        """Train a new model, or continue from ``model``. Return the model and the summary."""
        if model is not None:
            for name in ("rank", "solver", "diagonal", "passes", "samples", "half_life", "precision", "seed", "range"):
                setattr(settings, name, None)
            settings.target = ""
        trained, summary = _core.fit(rows, settings, model, self._report_progress)
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

    @property
    def _threads(self) -> int:
        return resolve_threads(self.n_threads)

    def _model_index(self, class_index: Optional[int]) -> int:
        """Return the index of the model of a class."""
        check_is_fitted(self)
        count = len(self._models)
        if class_index is None:
            if count > 1:
                raise ValueError(f"class_index must be given for more than two classes: 0 to {count - 1}.")
            return 0
        check_integer("class_index", class_index, 0)
        if class_index >= count:
            raise ValueError(f"class_index must be in [0, {count}), got {class_index}.")
        return int(class_index)

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
        """
        check_is_fitted(self)
        if class_index is not None:
            _files.write(path, self._models[self._model_index(class_index)])
            return
        attributes = {"has_feature_names": hasattr(self, "feature_names_in_"), **self._saved_attributes()}
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
        estimator._columns = predictor.column_names()
        estimator._categorical = frozenset(predictor.categorical_columns())
        estimator.n_features_in_ = len(estimator._columns)
        if estimator._layout == "table" and (attributes is None or attributes["has_feature_names"]):
            estimator.feature_names_in_ = np.array(estimator._columns, dtype=object)
        estimator._set_models([(part, {}) for part in saved.parts])
        estimator._restore(predictor, attributes, saved.content)
        return estimator

    def _restore(self, predictor: _core.Predictor, attributes: Optional[dict[str, Any]], content: bytes) -> None:
        """Set the fitted attributes of a subclass from a file."""

    def interactions(self, top: int = 20, class_index: Optional[int] = None) -> pd.DataFrame:
        """Return the strongest second-order terms.

        Parameters
        ----------
        top : int, default=20
            Number of terms.
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        pandas.DataFrame
            Terms by decreasing absolute effect. Columns: ``left`` and ``right``, the names of the features (equal for
            a square); ``coefficient``, in the units of the data; ``effect``, the change of the prediction per standard
            deviation of each numeric feature, or by the presence of each category. For a model of the solver 'anova',
            ``left`` and ``right`` are columns, ``effect`` is the standard deviation of the function of the pair over the
            training rows, and ``coefficient`` is NaN.

        Notes
        -----
        The strongest pairs are found by branch and bound. The matrix M is not formed.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 4))
        >>> model = FactorizationRegressor(rank=2).fit(X, 3 * X[:, 1] * X[:, 2])
        >>> print(model.interactions(top=1)[["left", "right", "coefficient"]].round(2).to_string(index=False))
        left right  coefficient
           1     2          3.0
        """
        check_integer("top", top, 0)
        index = self._model_index(class_index)
        if self._predictors[index].is_anova():
            effects = [effect for effect in self._predictors[index].inspect(_ALL)["effects"] if len(effect["axes"]) == 2]
            pairs = [(e["axes"][0][0], e["axes"][1][0], math.nan, e["spread"]) for e in effects[: int(top)]]
        else:
            pairs = self._predictors[index].inspect(int(top))["pairs"]
        return pd.DataFrame(pairs, columns=["left", "right", "coefficient", "effect"])

    def effects(self, top: int = 20, class_index: Optional[int] = None) -> list[dict[str, Any]]:
        """Return the functions of columns and pairs of a model of the solver 'anova'.

        Parameters
        ----------
        top : int, default=20
            Number of functions, by decreasing share of the explained variance.
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        list of dict
            - ``columns`` : tuple of one or two names.
            - ``positions`` : tuple of one or two arrays, the knots of a numeric column or the levels of a categorical
              one; missing values are the level ``'missing'``.
            - ``share`` : float, share of the sum of the variances of all functions over the training rows.
            - ``values`` : ndarray, the function at the positions, in the units of the target or as log-odds.
            - ``standard_errors`` : ndarray, posterior standard deviations of ``values``.

        Raises
        ------
        AttributeError
            If the model is a low-rank model, which has `interactions` and `parameters`.

        Notes
        -----
        The functions are linear between the knots and constant beyond them. Their mean over the training rows is 0.
        """
        check_integer("top", top, 0)
        predictor = self._predictors[self._model_index(class_index)]
        if not predictor.is_anova():
            raise AttributeError(
                "A low-rank model has no effects; use interactions() or parameters(), or fit with solver='anova'."
            )
        return [_describe_effect(effect) for effect in predictor.inspect(int(top))["effects"]]

    def noise_factors(self, top: int = 20) -> list[tuple[str, float, float]]:
        """Return the noise of categories and indicators of a regression model of the solver 'sampling'.

        The standard deviation of the noise of a row is a constant times the product of the factors of its features.

        Parameters
        ----------
        top : int, default=20
            Number of features, by decreasing ``|log(factor)|`` in standard errors.

        Returns
        -------
        list of (str, float, float)
            Name of the feature, factor and standard error of the factor.
        """
        check_integer("top", top, 0)
        factors: list[tuple[str, float, float]] = self._predictors[self._model_index(None)].inspect(int(top))["noise_factors"]
        return factors

    def parameters(self, class_index: Optional[int] = None) -> dict[str, Any]:
        """Return the parameters of the model for scaled features and the scaled target.

        Parameters
        ----------
        class_index : int, optional
            Index in ``classes_`` of the model. Required for classifiers of more than two classes.

        Returns
        -------
        dict
            - ``intercept`` : float, b.
            - ``weights`` : ndarray of shape (dim,), w.
            - ``factors`` : ndarray of shape (dim, rank), U with orthonormal columns.
            - ``spectrum`` : ndarray of shape (rank,), lambda.
            - ``squares`` : ndarray of shape (dim,), or empty if the diagonal is 'tied'.
            - ``left_dim`` : int, 0 for symmetric models.

        Notes
        -----
        With the scaled features z, the scaled target (or the log-odds of the positive class) is
        b + w'z + z' U diag(lambda) U' z + sum_j squares_j z_j^2. Categories are features of the value 0 or 1, so that
        ``dim`` can exceed ``n_features_in_``.
        """
        index = self._model_index(class_index)
        if self._predictors[index].is_anova():
            raise AttributeError(
                "A model of the solver 'anova' has functions instead of weights and factors; use effects(), or set rank to "
                "fit a low-rank model."
            )
        return self._predictors[index].parameters()


# More functions than any model has.
_ALL = 10**6


def _describe_effect(effect: dict[str, Any]) -> dict[str, Any]:
    """Return one entry of `BaseFactorization.effects`."""
    positions = []
    for _, knots, labels in effect["axes"]:
        has_numbers = not all(math.isnan(knot) for knot in knots)
        mixed = [label if math.isnan(knot) else knot for knot, label in zip(knots, labels)]
        is_numeric = has_numbers and not any(math.isnan(knot) for knot in knots)
        positions.append(np.array(mixed, dtype=np.float64 if is_numeric else object))
    shape = tuple(len(axis) for axis in positions)
    return {
        "columns": tuple(axis[0] for axis in effect["axes"]),
        "positions": tuple(positions),
        "share": effect["share"],
        "values": np.reshape(effect["values"], shape),
        "standard_errors": np.reshape(effect["standard_errors"], shape),
    }


def check_target_given(y: Any) -> None:
    """Raise ValueError if y is None, with the message of scikit-learn."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")


def check_same_length(X: Any, y: Any) -> None:
    """Raise ValueError unless X and y have the same number of rows."""
    count = _num_samples(X)
    if count != y.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {count}, y {y.shape[0]}.")


def set_weights(rows: _core.Rows, sample_weight: Any, X: Any) -> None:
    """Validate the weights and set them, unless they are None."""
    if sample_weight is not None:
        rows.set_weights(np.require(_check_weights(sample_weight, X), requirements=["C", "A"]))


def set_relative_weights(rows: _core.Rows, sample_weight: Any, X: Any) -> None:
    """Validate the weights and set them, scaled to a mean of 1 over the positive ones, unless they are None."""
    if sample_weight is not None:
        weights = _check_weights(sample_weight, X)
        rows.set_weights(np.require(weights / weights[weights > 0].mean(), requirements=["C", "A"]))


def _check_weights(sample_weight: Any, X: Any) -> npt.NDArray[np.float64]:
    weights: npt.NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise ValueError("sample_weight must be positive for at least one row, got 0 for all rows.")
    return weights
