"""Regression on Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._shared import PREDICTION_STRUCT, FactorizationEstimator, FactorizationModel


class FactorizationRegressionModel(FactorizationModel):
    """Model fitted by `FactorizationRegressor`.

    Attributes
    ----------
    summary : dict
        Summary of the training run: ``rows``, ``seconds``, ``solver``, ``origin`` (how the model was estimated),
        ``requests`` (number of requests to the workers, each one Spark job), ``one_pass`` and ``multi_pass`` (losses of
        held-out rows; -1: not measured) and ``trace`` (the progress, a list of dict). Empty for a loaded model.
    """

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return self._with_predictions(dataset, {self.getPredictionCol(): F.col(PREDICTION_STRUCT + ".value")})


class FactorizationRegressor(FactorizationEstimator[FactorizationRegressionModel]):
    """Second-order regression on a DataFrame of vectors.

    The model is y = b + w'x + x'Mx with a symmetric matrix M of low rank and any sign.

    Parameters
    ----------
    featuresCol : str, default='features'
        Column of vectors. If all vectors are dense, the features are standardized; sparse vectors are not.
    labelCol : str, default='label'
        Column of targets.
    predictionCol : str, default='prediction'
        Column for the predictions.
    weightCol : str, optional
        Column of row weights. Rows of weight 0 are skipped.
    rank : int, optional
        Rank of M. Selects a low-rank model. By default, dense vectors are fitted by the solver 'anova', which has no rank,
        and other models have the rank 8.
    solver : {'auto', 'anova', 'kalman', 'newton', 'moment'}, default='auto'
        Algorithm. 'anova': functions of single columns and pairs, from the sums of all partitions. 'kalman': one pass, in rounds; each round has twice as many rows as the previous one. 'newton':
        Gauss-Newton, one Spark job per product with the Hessian. 'auto': 'anova' for dense vectors; otherwise 'kalman', then
        'newton' if that decreases the loss of held-out rows. 'moment': the method of moments of Lin and Ye [1]_.
    diagonal : {'auto', 'tied', 'zero', 'free'}, default='auto'
        Coefficient of the square x_j^2. 'tied': M_jj. 'zero': 0. 'free': one parameter per feature, independent of M.
        'auto': 'free' for numeric features, 'zero' for indicators.
    stdCol : str, optional
        Column for the standard deviation of the target, including the noise. By default, it is not computed.
    sampleRows : int, default=16384
        Approximate number of rows on which the driver trains the start model. A DataFrame of at most twice as many
        rows is trained on the driver alone.
    maxLooks : int, default=100
        Largest number of data passes of Gauss-Newton.
    seed : int, default=1
        Seed of the random start.

    See Also
    --------
    dyad.FactorizationRegressor : The estimator for one machine.

    Notes
    -----
    Workers compute sums over the rows of their partitions, and the driver computes the next model from the total. The
    sample and the held-out rows are selected by a hash of each row, so that they do not depend on the partitioning.

    References
    ----------
    .. [1] M. Lin and J. Ye, "A Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix
       Sensing", Advances in Neural Information Processing Systems 29, 2016.

    Examples
    --------
    ::

        from dyad.spark import FactorizationRegressor

        model = FactorizationRegressor(rank=8, labelCol="rating", stdCol="std").fit(train)
        model.transform(test).select("prediction", "std")
    """

    _model_type = FactorizationRegressionModel
