"""Base classes of the Spark estimators and models: params, training, model files and prediction."""

from __future__ import annotations

import os
from typing import Any, Optional, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol, HasSeed, HasWeightCol
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .. import _core, _distributed
from .._distributed import Block
from .._factorization import logger
from .._files import from_bytes
from ._cluster import SparkPartitions, broadcast_model
from ._columns import check_vector_column, vector_structs
from ._workers import RowError, block_from_arrow, cached_predictor

# Name of the model file in the folder of a saved model.
MODEL_FILE = "model.dyad"

# Temporary column of predictions: a struct of value and std.
PREDICTION_STRUCT = "_dyad_predicted"

SOLVERS = ("auto", "anova", "kalman", "newton", "moment")
DIAGONALS = ("auto", "tied", "zero", "free")


class FactorizationParams(HasFeaturesCol, HasLabelCol, HasWeightCol, HasPredictionCol, HasSeed):
    """Params of the estimators and models."""

    _input_kwargs: dict[str, Any]

    rank: Param[int] = Param(Params._dummy(), "rank", "rank of M", typeConverter=TypeConverters.toInt)
    solver: Param[str] = Param(
        Params._dummy(), "solver", "algorithm: " + ", ".join(SOLVERS), typeConverter=TypeConverters.toString
    )
    diagonal: Param[str] = Param(
        Params._dummy(),
        "diagonal",
        "coefficients of the squares: " + ", ".join(DIAGONALS),
        typeConverter=TypeConverters.toString,
    )
    stdCol: Param[str] = Param(
        Params._dummy(),
        "stdCol",
        "column for the standard deviation of the target, including the noise; not computed unless set",
        typeConverter=TypeConverters.toString,
    )
    sampleRows: Param[int] = Param(
        Params._dummy(),
        "sampleRows",
        "approximate number of rows on which the driver trains the start model",
        typeConverter=TypeConverters.toInt,
    )
    maxLooks: Param[int] = Param(
        Params._dummy(),
        "maxLooks",
        "largest number of data passes of Gauss-Newton",
        typeConverter=TypeConverters.toInt,
    )

    def _set_defaults(self) -> None:
        self._setDefault(solver="auto", diagonal="auto", sampleRows=16384, maxLooks=100, seed=1)

    def getRank(self) -> Optional[int]:
        """Return the rank of M; None: not set."""
        return self.getOrDefault(self.rank) if self.isDefined(self.rank) else None

    def getSolver(self) -> str:
        """Return the name of the solver."""
        return self.getOrDefault(self.solver)

    def _settings(self) -> _core.Settings:
        names = ("solver", "diagonal", "sampleRows", "maxLooks", "seed")
        values = {name: self.getOrDefault(name) for name in names}
        values["rank"] = self.getRank()
        for name, choices in (("solver", SOLVERS), ("diagonal", DIAGONALS)):
            if values[name] not in choices:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {values[name]!r}.")
        for name, minimum in (("rank", 1), ("sampleRows", 1), ("maxLooks", 1), ("seed", 0)):
            if values[name] is not None and values[name] < minimum:
                raise ValueError(f"{name} must be at least {minimum}, got {values[name]}.")
        settings = _core.Settings()
        settings.rank = values["rank"]
        settings.seed = values["seed"]
        settings.target = "target"
        settings.precision = "double"
        settings.solver = None if values["solver"] == "auto" else values["solver"]
        settings.diagonal = None if values["diagonal"] == "auto" else values["diagonal"]
        return settings


def train(
    estimator: FactorizationParams, frame: DataFrame, is_classification: bool, start_model: Optional[bytes] = None
) -> tuple[bytes, dict[str, Any]]:
    """Train a model on the rows of a DataFrame, or continue from ``start_model``.

    Parameters
    ----------
    estimator : FactorizationParams
        Params.
    frame : DataFrame
        Rows.
    is_classification : bool
        Whether the labels are classes, 0, 1, 2, ....
    start_model : bytes, optional
        Model from which training continues.

    Returns
    -------
    model : bytes
        Model file.
    summary : dict
        Summary of the training run.
    """
    settings = estimator._settings()
    if is_classification and estimator.getSolver() == "moment":
        raise ValueError("solver must not be 'moment' for classification; use 'auto', 'kalman' or 'newton'.")
    weight = estimator.getOrDefault("weightCol") if estimator.isDefined("weightCol") else None
    trace: list[dict[str, Any]] = []

    def report_progress(level: str, share: float, loss: float, held_out: float) -> None:
        trace.append({"level": level, "share": share, "loss": loss, "held_out": held_out})
        logger.info("%s: %.0f%% of the rows, loss %.6g, held-out loss %.6g", level, 100 * share, loss, held_out)

    columns = (estimator.getFeaturesCol(), estimator.getLabelCol(), weight)
    options: dict[str, Any] = {
        "sample_rows": estimator.getOrDefault("sampleRows"),
        "max_data_passes": estimator.getOrDefault("maxLooks"),
        "progress": report_progress,
        "start_model": start_model,
    }
    with SparkPartitions(frame, *columns, is_classification=is_classification) as partitions:
        labels = _class_labels(partitions.classes, start_model) if is_classification else []
        if len(labels) > 2:
            model, summary = _distributed.train_classes(partitions, estimator._settings, labels, **options)
        else:
            model, summary = _distributed.train(partitions, settings, labels, **options)
    return model, {**summary, "trace": trace}


def _class_labels(classes: int, start_model: Optional[bytes]) -> list[str]:
    """Return the names of the classes in model files. Raise ValueError if the start model has fewer than ``classes``."""
    count = max(2, classes)
    if start_model is not None:
        is_several = _core.is_class_file(start_model)
        known = len(_core.ClassPredictor.from_bytes(start_model).labels()) if is_several else 2
        if count > known:
            raise ValueError(
                f"The rows contain the label {classes - 1}, but the model from which training continues has the labels "
                f"0 to {known - 1}; its first rows must contain the largest label."
            )
        count = known
    return [str(label) for label in range(count)]


class FactorizationModel(Model, FactorizationParams, MLReadable[Any], MLWritable):
    """Base class of fitted models.

    Attributes
    ----------
    summary : dict
        Summary of the training run; empty for a loaded model.
    """

    def __init__(self, model: bytes = b"", summary: Optional[dict[str, Any]] = None) -> None:
        super().__init__()
        self._set_defaults()
        self._model = model
        self._broadcast: Optional[tuple[Any, Any]] = None
        self.summary = summary or {}

    def write(self) -> ModelWriter:
        """Return a writer. The saved folder contains the params and the model file ``model.dyad``."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> ModelReader:
        """Return a reader of folders that `write` saved."""
        return ModelReader(cls)

    @property
    def numFeatures(self) -> int:
        """Number of features of a vector."""
        return len(self._first_predictor().column_names())

    def _first_predictor(self) -> _core.Predictor:
        """Return the predictor of the model, or of the first class of several."""
        return _core.Predictor.from_bytes(_core.unpack_container(self._model, "the model")[1][0])

    def toBytes(self) -> bytes:
        """Return the content of the model file, which ``dyad predict`` and `dyad.load` read."""
        return self._model

    def toLocal(self) -> Any:
        """Return the model as a fitted estimator for one machine.

        Returns
        -------
        dyad.FactorizationRegressor or dyad.FactorizationClassifier
            Estimator with the same predictions, and with ``interactions``, ``parameters`` and plots.
        """
        return from_bytes(self._model)

    def _broadcast_once(self, context: Any) -> Any:
        """Return the broadcast of the model, which all predictions of a session share."""
        if self._broadcast is None or self._broadcast[0] is not context:
            self._broadcast = (context, broadcast_model(context, self._model))
        return self._broadcast[1]

    def _check_has_deviations(self) -> None:
        predictor = self._first_predictor()
        try:
            predictor.predict(_core.Rows.dense(np.zeros((1, len(predictor.column_names())))), True, 1)
        except ValueError as error:
            raise ValueError(
                "stdCol must not be set for a model of the solver 'moment', which has no variances; use 'auto'."
            ) from error

    def _with_predictions(self, frame: DataFrame, columns: dict[str, Any]) -> DataFrame:
        """Return the frame with columns that are computed from `PREDICTION_STRUCT`."""
        column = self.getFeaturesCol()
        check_vector_column(frame, column)
        with_std = self.isDefined("stdCol")
        if with_std:
            self._check_has_deviations()
        model = self._broadcast_once(frame.sparkSession.sparkContext)
        def predict(features: pa.Array) -> pa.Array:
            predictor = cached_predictor(model)
            rows = prediction_rows(features, column, predictor.layout() == "sparse", len(predictor.column_names()))
            if with_std:
                values, deviations = predictor.predict(rows, True, 1)
                std = pa.array(deviations)
            else:
                values = predictor.predict(rows, False, 1)
                std = pa.nulls(len(values), pa.float64())
            return pa.StructArray.from_arrays([pa.array(values), std], names=["value", "std"])

        predict.__annotations__ = {"features": pa.Array, "return": pa.Array}
        predict_udf = F.arrow_udf(predict, "value double, std double")  # type: ignore[attr-defined]
        if with_std:
            columns = {**columns, self.getOrDefault("stdCol"): F.col(PREDICTION_STRUCT + ".std")}
        predicted = frame.withColumn(PREDICTION_STRUCT, predict_udf(vector_structs(column)))
        return predicted.withColumns(columns).drop(PREDICTION_STRUCT)


def prediction_rows(features: pa.Array, column: str, is_sparse: bool, width: int) -> _core.Rows:
    """Return rows for the extension. Raise RowError if vectors have another size than ``width``."""
    block = block_from_arrow(features, None, None, (column, "", "")).to_layout(is_sparse)
    if len(block) == 0:
        block = Block(width, np.zeros((0, width)), np.zeros(0)).to_layout(block.is_sparse)
    if block.width != width:
        raise RowError(f"Column '{column}' contains vectors of size {block.width}; the model has {width} features.")
    return block.to_rows([])


ModelType = TypeVar("ModelType", bound=FactorizationModel)


class FactorizationEstimator(
    Estimator[ModelType], FactorizationParams, DefaultParamsReadable[Any], DefaultParamsWritable
):
    """Base class of the estimators."""

    _is_classification = False
    _model_type: type[ModelType]

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        weightCol: Optional[str] = None,
        rank: Optional[int] = None,
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
    def setParams(self, **kwargs: Any) -> Any:
        """Set params by name; None leaves a param unchanged."""
        return self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    def _fit(self, dataset: DataFrame) -> ModelType:
        return self._create_model(*train(self, dataset, self._is_classification))

    def _create_model(self, model: bytes, summary: dict[str, Any]) -> ModelType:
        return self._copyValues(self._model_type(model, summary))


class ModelWriter(MLWriter):
    """Writer of the params in the format of Spark, and of the model file."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        """Write the params and the model file to a folder."""
        spark = SparkSession.active()
        DefaultParamsWriter.saveMetadata(self._instance, path, spark)
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        file = jvm.org.apache.hadoop.fs.Path(path, MODEL_FILE)
        file_system = file.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        output = file_system.create(file, True)
        try:
            output.write(bytearray(self._instance._model))
        finally:
            output.close()


class ModelReader(MLReader[Any]):
    """Reader of the folders that `ModelWriter` writes."""

    def __init__(self, model_class: Any) -> None:
        super().__init__()
        self._model_class = model_class

    def load(self, path: str) -> Any:
        """Read the params and the model file of a folder."""
        spark = SparkSession.active()
        class_name = self._model_class.__module__ + "." + self._model_class.__name__
        metadata = DefaultParamsReader.loadMetadata(path, spark, class_name)
        ((_, model),) = spark.sparkContext.binaryFiles(os.path.join(path, MODEL_FILE)).collect()
        instance = self._model_class(bytes(model))
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance
