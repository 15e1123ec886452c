"""Regression on Spark."""

from __future__ import annotations

from typing import Any, Optional

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._shared import PREDICTED, FactorizationModel, FactorizationParams, learn


class FactorizationRegressor(
    Estimator["FactorizationRegressionModel"], FactorizationParams, DefaultParamsReadable[Any], DefaultParamsWritable
):
    """Second-order regression, y = b + w'x + x'Mx, from a DataFrame of vectors: the model of one machine, on many.

    Parameters
    ----------
    featuresCol, labelCol, weightCol, predictionCol : str
        As everywhere in Spark ML. Vectors that are all dense are centred and scaled; sparse ones are taken as they are.
    rank : int, default=8
        The rank of M.
    solver : {'auto', 'kalman', 'newton', 'moment'}, default='auto'
        'kalman' is one pass, in rounds that double; 'newton' are Gauss-Newton steps, each product one pass; 'auto' is
        one, then the other, where held-out rows say that it helps; 'moment' is the paper's algorithm.
    diagonal : {'auto', 'tied', 'zero', 'free'}, default='auto'
        What squares of features are: part of M, nothing, or weights of their own.
    stdCol : str, optional
        A column for the standard deviation of each prediction, noise included.
    sampleRows : int, default=16384
        About so many rows are learned on the driver to begin with; a frame of at most twice as many is learned there.
    maxLooks : int, default=100
        Passes that Gauss-Newton may make.
    seed : int, default=1
        Of the first factors. Which rows are in the sample or held out is decided by their content alone, however they are
        partitioned.
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        weightCol: Optional[str] = None,
        rank: int = 8,
        solver: str = "auto",
        diagonal: str = "auto",
        stdCol: Optional[str] = None,
        sampleRows: int = 16384,
        maxLooks: int = 100,
        seed: int = 1,
    ) -> None:
        super().__init__()
        self._set_defaults()
        self.setParams(**self._input_kwargs)

    @keyword_only
    def setParams(self, **kwargs: Any) -> FactorizationRegressor:
        """Set params by name."""
        return self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    def _fit(self, dataset: DataFrame) -> FactorizationRegressionModel:
        return self._model_of(*learn(self, dataset, []))

    def _model_of(self, model: bytes, summary: dict[str, Any]) -> FactorizationRegressionModel:
        return self._copyValues(FactorizationRegressionModel(model, summary))


class FactorizationRegressionModel(FactorizationModel):
    """What `FactorizationRegressor` learns; ``summary`` says how."""

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return self._with_columns(dataset, {self.getPredictionCol(): F.col(PREDICTED + ".value")})
