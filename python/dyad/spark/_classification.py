"""Classification on Spark."""

from __future__ import annotations

from typing import Any

from pyspark import keyword_only
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._shared import PREDICTION_STRUCT, FactorizationEstimator, FactorizationModel, FactorizationParams

# Names of the classes in model files.
_LABELS = ["0", "1"]

# Smallest probability in logarithms, near the smallest normal double, 2.2e-308. Avoids log(0).
_MIN_PROBABILITY = 1e-300


class _ClassifierParams(FactorizationParams, HasRawPredictionCol, HasProbabilityCol):
    pass


class FactorizationClassificationModel(FactorizationModel, _ClassifierParams):
    """Model fitted by `FactorizationClassifier`.

    Attributes
    ----------
    summary : dict
        Summary of the training run, as for `FactorizationRegressionModel`.
    """

    @property
    def numClasses(self) -> int:
        """Number of classes, 2."""
        return 2

    def _transform(self, dataset: DataFrame) -> DataFrame:
        p = F.col(PREDICTION_STRUCT + ".value")
        smallest = F.lit(_MIN_PROBABILITY)
        log_odds = F.log(F.greatest(p, smallest)) - F.log(F.greatest(1 - p, smallest))
        columns = {
            self.getRawPredictionCol(): array_to_vector(F.array(-log_odds, log_odds)),
            self.getProbabilityCol(): array_to_vector(F.array(1 - p, p)),
            self.getPredictionCol(): F.when(p > 0.5, 1.0).otherwise(0.0),
        }
        return self._with_predictions(dataset, columns)


class FactorizationClassifier(FactorizationEstimator[FactorizationClassificationModel], _ClassifierParams):
    """Second-order classification on a DataFrame of vectors, for the labels 0 and 1.

    The log-odds of the label 1 are b + w'x + x'Mx with a symmetric matrix M of low rank and any sign.

    Parameters
    ----------
    probabilityCol : str, default='probability'
        Column for the probabilities of the labels 0 and 1, a vector.
    rawPredictionCol : str, default='rawPrediction'
        Column for the log-odds of the labels 0 and 1, a vector.
    **params
        Parameters of `FactorizationRegressor`. ``stdCol`` is a column for the standard deviation of the probability,
        and ``solver`` must not be 'moment'.

    See Also
    --------
    FactorizationRegressor : Regression.
    dyad.FactorizationClassifier : The estimator for one machine.

    Notes
    -----
    ``StringIndexer`` converts other labels to 0 and 1. ``OneVsRest`` trains models of more than two classes.

    Examples
    --------
    ::

        from dyad.spark import FactorizationClassifier

        model = FactorizationClassifier(rank=4, labelCol="clicked").fit(train)
        model.transform(test).select("probability", "prediction")
    """

    _labels = _LABELS
    _model_type = FactorizationClassificationModel

    @keyword_only
    def __init__(
        self, *, probabilityCol: str = "probability", rawPredictionCol: str = "rawPrediction", **params: Any
    ) -> None:
        columns = {name: value for name, value in self._input_kwargs.items() if name not in params}
        super().__init__(**params)
        self.setParams(**columns)
