"""Fitted attributes of scikit-learn: names, coefficients and importances."""

from __future__ import annotations

import math
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from . import _core, _importance
from ._checks import check_integer
from ._feature_statistics import FeatureStatistics
from ._predictors import LazyPredictors

Floats = npt.NDArray[np.float64]

# More terms than any model has.
ALL_TERMS = 10**9


class AttributesMixin:
    """Fitted attributes of `FactorizationRegressor` and `FactorizationClassifier`."""

    _models: list[bytes]
    _predictors: LazyPredictors
    _statistics: Optional[FeatureStatistics]
    summary_: Any
    n_features_in_: int

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

    def _low_rank_predictor(self, index: int) -> _core.Predictor:
        """Return the predictor of a low-rank model. Raise AttributeError for a model of the solver 'anova'."""
        if self._predictors[index].is_anova():
            raise AttributeError(
                "A model of the solver 'anova' has functions instead of weights and factors; use effects(), or set rank to "
                "fit a low-rank model."
            )
        return self._predictors[index]

    def _feature_counts(self, count: int) -> Floats:
        """Return the number of training rows of each feature; NaN if it is unknown."""
        if self._statistics is None:
            return np.full(count, math.nan)
        return np.pad(self._statistics.counts.astype(np.float64), (0, count - len(self._statistics.counts)))

    @property
    def coef_(self) -> Floats:
        """Coefficients of the linear terms, an array of shape (n_features_out,), or (n_classes, n_features_out).

        The prediction (classes: the log-odds) is ``intercept_`` plus the sum of ``coef_`` times the features of
        `get_feature_names_out`, plus the terms of `interactions`. Numbers have the units of the data. More than two
        classes: the log-odds of each class against the others, before the multiplication by ``temperature_``.

        Raises
        ------
        AttributeError
            If the model is of the solver 'anova', which has `effects`.
        """
        check_is_fitted(self)
        rows = []
        for index, model in enumerate(self._models):
            self._low_rank_predictor(index)
            rows.append(_core.features(model)["coefficients"])
        return rows[0] if len(rows) == 1 else np.array(rows)

    @property
    def intercept_(self) -> Union[float, Floats]:
        """Prediction (classes: log-odds) of a row of zeros without categories, a float, or an array of (n_classes,).

        With the solver 'anova', the constant to which the functions of `effects` are added.
        """
        check_is_fitted(self)
        values: list[float] = [predictor.inspect(0)["intercept"] for predictor in self._predictors]
        return values[0] if len(values) == 1 else np.array(values)

    @property
    def feature_importances_(self) -> Floats:
        """Share of the variance of the predictions that each column of X explains, an array of shape (n_features_in_,).

        The model (classes: the log-odds) is decomposed into functions of one column and of two columns with mean 0 over
        the training rows. A column explains the variance of its function and half of the variance of its functions of
        pairs. The variances are computed for independent columns (low-rank models) or over the training rows (solver
        'anova'), and divided by their sum. More than two classes: the variances of all classes are added.

        Raises
        ------
        AttributeError
            If the model is a low-rank model that was loaded from a file, which does not contain the distribution of the
            columns.
        """
        check_is_fitted(self)
        variances: Floats = np.sum([self._column_variances(index) for index in range(len(self._models))], axis=0)
        total = variances.sum()
        return variances / total if total > 0 else variances

    @property
    def n_iter_(self) -> int:
        """Number of passes over the rows: the first pass, and the regularization levels or sweeps after it."""
        check_is_fitted(self)
        summaries = self.summary_ if isinstance(self.summary_, list) else [self.summary_]
        if "passes" not in summaries[0]:
            raise AttributeError("n_iter_ is not available, because the model was loaded from a file.")
        return max(int(summary["passes"]) for summary in summaries)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features of the model, into which the columns of X are encoded.

        Parameters
        ----------
        input_features : None
            Ignored, for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str
            Names in the order of ``coef_``: the names of numeric columns, ``'column is missing'`` for indicators of
            missing values, and ``'column=category'`` for categories. Columns without names have the names '0', '1', ....

        Examples
        --------
        >>> import pandas as pd
        >>> from dyad import FactorizationRegressor
        >>> X = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0] * 5, "color": ["red", "blue"] * 10})
        >>> model = FactorizationRegressor(rank=1).fit(X, [1.0, 5.0, 3.0, 7.0] * 5)
        >>> model.get_feature_names_out().tolist()
        ['size', 'color=red', 'color=blue']
        """
        check_is_fitted(self)
        return np.array(_core.features(self._models[0])["names"], dtype=object)

    def _column_variances(self, index: int) -> Floats:
        """Return the variance of one model that each column of X explains."""
        predictor = self._predictors[index]
        result = np.zeros(self.n_features_in_)
        if predictor.is_anova():
            names = predictor.column_names()
            variances = _importance.anova_variances(predictor.inspect(ALL_TERMS)["effects"], names)
        elif self._statistics is None:
            raise AttributeError(
                "feature_importances_ is not available: the file of a low-rank model does not contain the distribution of "
                "the columns."
            )
        else:
            features = _core.features(self._models[index])
            variances = _importance.low_rank_variances(predictor.parameters(), features, self._statistics)
        inputs = self._input_columns()  # type: ignore[attr-defined]
        used = min(len(variances), len(inputs))
        np.add.at(result, inputs[:used], variances[:used])
        return result
