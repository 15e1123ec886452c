"""Classification on Spark."""

from __future__ import annotations

from typing import Any

from pyspark import keyword_only
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._shared import PREDICTED, FactorizationEstimator, FactorizationModel, FactorizationParams

LABELS = ["0", "1"]


class _ClassifierParams(FactorizationParams, HasRawPredictionCol, HasProbabilityCol):
    pass


class FactorizationClassificationModel(FactorizationModel, _ClassifierParams):
    """What `FactorizationClassifier` learns; ``summary`` says how."""

    @property
    def numClasses(self) -> int:
        """Return 2."""
        return 2

    def _transform(self, dataset: DataFrame) -> DataFrame:
        p = F.col(PREDICTED + ".value")
        least = 1e-300
        odds = F.log(F.greatest(p, F.lit(least))) - F.log(F.greatest(1 - p, F.lit(least)))
        columns = {
            self.getRawPredictionCol(): array_to_vector(F.array(-odds, odds)),
            self.getProbabilityCol(): array_to_vector(F.array(1 - p, p)),
            self.getPredictionCol(): F.when(p > 0.5, 1.0).otherwise(0.0),
        }
        return self._with_columns(dataset, columns)


class FactorizationClassifier(FactorizationEstimator[FactorizationClassificationModel], _ClassifierParams):
    """Second-order classification: the log-odds of label 1 are b + w'x + x'Mx. Labels are 0 and 1.

    Parameters
    ----------
    featuresCol, labelCol, weightCol, predictionCol, rawPredictionCol, probabilityCol : str
        As everywhere in Spark ML.
    rank, solver, diagonal, stdCol, sampleRows, maxLooks, seed
        As for `FactorizationRegressor`; ``stdCol`` is that of the probability, and 'moment' is for numbers only.
    """

    _labels = LABELS
    _model_type = FactorizationClassificationModel

    @keyword_only
    def __init__(
        self, *, probabilityCol: str = "probability", rawPredictionCol: str = "rawPrediction", **params: Any
    ) -> None:
        columns = {name: value for name, value in self._input_kwargs.items() if name not in params}
        super().__init__(**params)
        self.setParams(**columns)
