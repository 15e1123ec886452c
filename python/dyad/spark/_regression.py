"""Regression on Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._shared import PREDICTED, FactorizationEstimator, FactorizationModel


class FactorizationRegressionModel(FactorizationModel):
    """What `FactorizationRegressor` learns; ``summary`` says how."""

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return self._with_columns(dataset, {self.getPredictionCol(): F.col(PREDICTED + ".value")})


class FactorizationRegressor(FactorizationEstimator[FactorizationRegressionModel]):
    """Second-order regression, y = b + w'x + x'Mx, from a DataFrame of vectors: the model of one machine, on many.

    Parameters
    ----------
    featuresCol, labelCol, weightCol, predictionCol : str
        As everywhere in Spark ML. Vectors that are all dense are centred and scaled; sparse ones are taken as they are.
    rank : int, default=8
        The rank of M.
    solver : {'auto', 'kalman', 'newton', 'moment'}, default='auto'
        'kalman' is one pass, in rounds that double; 'newton' are Gauss-Newton steps, each product one pass; 'auto' is
        one, then the other, where the held-out loss decreases; 'moment' is the paper's algorithm.
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

    _model_type = FactorizationRegressionModel
