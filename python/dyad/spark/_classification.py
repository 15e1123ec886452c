"""Classification on Spark."""

from __future__ import annotations

from typing import Any, Optional

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._shared import PREDICTED, FactorizationModel, FactorizationParams, learn

LABELS = ["0", "1"]


class _ClassifierParams(FactorizationParams, HasRawPredictionCol, HasProbabilityCol):
    pass


class FactorizationClassifier(
    Estimator["FactorizationClassificationModel"], _ClassifierParams, DefaultParamsReadable[Any], DefaultParamsWritable
):
    """Second-order classification: the log-odds of label 1 are b + w'x + x'Mx. Labels are 0 and 1.

    Parameters
    ----------
    featuresCol, labelCol, weightCol, predictionCol, rawPredictionCol, probabilityCol : str
        As everywhere in Spark ML.
    rank, solver, diagonal, stdCol, sampleRows, maxLooks, seed
        As for `FactorizationRegressor`; ``stdCol`` is that of the probability, and 'moment' is for numbers only.
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
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
    def setParams(self, **kwargs: Any) -> FactorizationClassifier:
        """Set params by name."""
        return self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    def _fit(self, dataset: DataFrame) -> FactorizationClassificationModel:
        return self._model_of(*learn(self, dataset, LABELS))

    def _model_of(self, model: bytes, summary: dict[str, Any]) -> FactorizationClassificationModel:
        return self._copyValues(FactorizationClassificationModel(model, summary))


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
