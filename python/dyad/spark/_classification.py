"""Classification on Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import keyword_only
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import _core
from ._columns import check_vector_column, vector_structs
from ._shared import (
    PREDICTION_STRUCT,
    FactorizationEstimator,
    FactorizationModel,
    FactorizationParams,
    prediction_rows,
)
from ._workers import cached_class_predictor

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
        """Number of classes."""
        return len(_core.ClassPredictor.from_bytes(self._model).labels()) if self._has_several_classes else 2

    @property
    def _has_several_classes(self) -> bool:
        return _core.is_class_file(self._model)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        if self._has_several_classes:
            return self._transform_classes(dataset)
        p = F.col(PREDICTION_STRUCT + ".value")
        smallest = F.lit(_MIN_PROBABILITY)
        log_odds = F.log(F.greatest(p, smallest)) - F.log(F.greatest(1 - p, smallest))
        columns = {
            self.getRawPredictionCol(): array_to_vector(F.array(-log_odds, log_odds)),
            self.getProbabilityCol(): array_to_vector(F.array(1 - p, p)),
            self.getPredictionCol(): F.when(p > 0.5, 1.0).otherwise(0.0),
        }
        return self._with_predictions(dataset, columns)

    def _transform_classes(self, dataset: DataFrame) -> DataFrame:
        """Return the frame with the predictions of more than two classes."""
        column = self.getFeaturesCol()
        check_vector_column(dataset, column)
        with_std = self.isDefined("stdCol")
        if with_std:
            self._check_has_deviations()
        model = self._broadcast_once(dataset.sparkSession.sparkContext)
        first = self._first_predictor()
        is_sparse, width = first.layout() == "sparse", len(first.column_names())

        def predict(features: pa.Array) -> pa.Array:
            predictor = cached_class_predictor(model)
            rows = prediction_rows(features, column, is_sparse, width)
            if with_std:
                probabilities, deviations = predictor.predict(rows, True, 1)
            else:
                probabilities = deviations = predictor.predict(rows, False, 1)
            scores = predictor.predict_scores(rows, 1)
            labels = pa.array(probabilities.argmax(axis=1).astype(np.float64))
            fields = [_list_array(probabilities), _list_array(scores), _list_array(deviations), labels]
            return pa.StructArray.from_arrays(fields, names=["probability", "raw", "std", "label"])

        predict.__annotations__ = {"features": pa.Array, "return": pa.Array}
        struct = "probability array<double>, raw array<double>, std array<double>, label double"
        predict_udf = F.arrow_udf(predict, struct)  # type: ignore[attr-defined]
        field = PREDICTION_STRUCT + "."
        columns = {
            self.getRawPredictionCol(): array_to_vector(F.col(field + "raw")),
            self.getProbabilityCol(): array_to_vector(F.col(field + "probability")),
            self.getPredictionCol(): F.col(field + "label"),
        }
        if with_std:
            columns[self.getOrDefault("stdCol")] = array_to_vector(F.col(field + "std"))
        predicted = dataset.withColumn(PREDICTION_STRUCT, predict_udf(vector_structs(column)))
        return predicted.withColumns(columns).drop(PREDICTION_STRUCT)


def _list_array(table: Any) -> pa.Array:
    """Return the rows of a matrix as lists."""
    offsets = np.arange(len(table) + 1, dtype=np.int32) * table.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(table.ravel()))


class FactorizationClassifier(FactorizationEstimator[FactorizationClassificationModel], _ClassifierParams):
    """Second-order classification on a DataFrame of vectors, for the labels 0, 1, 2, ....

    For two labels, the log-odds of the label 1 are b + w'x + x'Mx with a symmetric matrix M of low rank and any sign.
    The number of classes is the largest label plus 1, and at least 2. For more than two classes, one model of each class
    against the others is trained. The probabilities are the softmax of their log-odds times a temperature that minimizes
    the log-loss of held-out rows of the sample.

    Parameters
    ----------
    probabilityCol : str, default='probability'
        Column for the probabilities of the labels, a vector.
    rawPredictionCol : str, default='rawPrediction'
        Column for the log-odds of the labels 0 and 1, a vector. For more than two classes, the log-odds of each class
        against the others times the temperature, whose softmax is the column of probabilities.
    **params
        Parameters of `FactorizationRegressor`. ``stdCol`` is a column for the standard deviation of the probability (a
        vector for more than two classes), and ``solver`` must not be 'moment'.

    See Also
    --------
    FactorizationRegressor : Regression.
    dyad.FactorizationClassifier : The estimator for one machine.

    Notes
    -----
    ``StringIndexer`` converts other labels to 0, 1, 2, ....

    Examples
    --------
    ::

        from dyad.spark import FactorizationClassifier

        model = FactorizationClassifier(rank=4, labelCol="clicked").fit(train)
        model.transform(test).select("probability", "prediction")
    """

    _is_classification = True
    _model_type = FactorizationClassificationModel

    @keyword_only
    def __init__(
        self, *, probabilityCol: str = "probability", rawPredictionCol: str = "rawPrediction", **params: Any
    ) -> None:
        columns = {name: value for name, value in self._input_kwargs.items() if name not in params}
        super().__init__(**params)
        self.setParams(**columns)
