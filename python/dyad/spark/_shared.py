"""What both estimators and both models share: params, learning, the model's file, prediction by Arrow batches."""

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

from .. import _core, _parts
from .._factorization import logger
from .._files import from_bytes
from .._parts import Block
from ._cluster import SparkParts, share
from ._columns import require_vector, vectors
from ._workers import RowError, block_of, predictor_of

MODEL_FILE = "model.dyad"
PREDICTED = "_dyad_predicted"
SOLVERS = ("auto", "kalman", "newton", "moment")
DIAGONALS = ("auto", "tied", "zero", "free")


class FactorizationParams(HasFeaturesCol, HasLabelCol, HasWeightCol, HasPredictionCol, HasSeed):
    """Params of estimators and models."""

    _input_kwargs: dict[str, Any]

    rank: Param[int] = Param(
        Params._dummy(), "rank", "the rank of M; more is hardly ever worse", typeConverter=TypeConverters.toInt
    )
    solver: Param[str] = Param(
        Params._dummy(), "solver", "who learns: " + ", ".join(SOLVERS), typeConverter=TypeConverters.toString
    )
    diagonal: Param[str] = Param(
        Params._dummy(), "diagonal", "what squares are: " + ", ".join(DIAGONALS), typeConverter=TypeConverters.toString
    )
    stdCol: Param[str] = Param(
        Params._dummy(),
        "stdCol",
        "column for the standard deviation of predictions, noise included; none unless set",
        typeConverter=TypeConverters.toString,
    )
    sampleRows: Param[int] = Param(
        Params._dummy(),
        "sampleRows",
        "about so many rows are learned on the driver, to begin with",
        typeConverter=TypeConverters.toInt,
    )
    maxLooks: Param[int] = Param(
        Params._dummy(), "maxLooks", "passes over all rows that Gauss-Newton may make", typeConverter=TypeConverters.toInt
    )

    def _set_defaults(self) -> None:
        self._setDefault(rank=8, solver="auto", diagonal="auto", sampleRows=16384, maxLooks=100, seed=1)

    def getRank(self) -> int:
        """Return the rank."""
        return self.getOrDefault(self.rank)

    def getSolver(self) -> str:
        """Return who learns."""
        return self.getOrDefault(self.solver)

    def _settings(self) -> _core.Settings:
        chosen = {name: self.getOrDefault(name) for name in ("rank", "solver", "diagonal", "sampleRows", "maxLooks", "seed")}
        for name, known in (("solver", SOLVERS), ("diagonal", DIAGONALS)):
            if chosen[name] not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {chosen[name]!r}.")
        for name, least in (("rank", 1), ("sampleRows", 1), ("maxLooks", 1), ("seed", 0)):
            if chosen[name] < least:
                raise ValueError(f"{name} must be at least {least}, got {chosen[name]}.")
        settings = _core.Settings()
        settings.rank = chosen["rank"]
        settings.seed = chosen["seed"]
        settings.target = "target"
        settings.precision = "double"
        settings.solver = None if chosen["solver"] == "auto" else chosen["solver"]
        settings.diagonal = None if chosen["diagonal"] == "auto" else chosen["diagonal"]
        return settings


def learn(
    estimator: FactorizationParams, frame: DataFrame, labels: list[str], known: Optional[bytes] = None
) -> tuple[bytes, dict[str, Any]]:
    """A model of all rows of the frame; or of what is known, and all these rows."""
    settings = estimator._settings()
    if labels and estimator.getSolver() == "moment":
        raise ValueError("solver 'moment' is for numbers as labels; 'auto' learns classes.")
    weight = estimator.getOrDefault("weightCol") if estimator.isDefined("weightCol") else None
    trace: list[dict[str, Any]] = []

    def report(level: str, share: float, loss: float, held_out: float) -> None:
        trace.append({"level": level, "share": share, "loss": loss, "held_out": held_out})
        logger.info("%s: %.0f%% of the rows, loss %.6g, held out %.6g", level, 100 * share, loss, held_out)

    columns = (estimator.getFeaturesCol(), estimator.getLabelCol(), weight)
    with SparkParts(frame, *columns, are_classes=bool(labels)) as parts:
        model, summary = _parts.learn(
            parts,
            settings,
            labels,
            sample_rows=estimator.getOrDefault("sampleRows"),
            most_looks=estimator.getOrDefault("maxLooks"),
            report=report,
            known=known,
        )
    return model, {**summary, "trace": trace}


class FactorizationModel(Model, FactorizationParams, MLReadable[Any], MLWritable):
    """A model's file, what is in it, and predictions by Arrow batches; ``summary`` says how it was learned."""

    def __init__(self, model: bytes = b"", summary: Optional[dict[str, Any]] = None) -> None:
        super().__init__()
        self._set_defaults()
        self._model = model
        self._broadcast: Optional[tuple[Any, Any]] = None
        self.summary = summary or {}

    def write(self) -> ModelWriter:
        """Return a writer; what it saves has the model's file in it."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> ModelReader:
        """Return a reader of what `write` has saved."""
        return ModelReader(cls)

    @property
    def numFeatures(self) -> int:
        """Return how many features the vectors have."""
        return len(_core.Predictor.from_bytes(self._model).column_names())

    def toBytes(self) -> bytes:
        """Return the model's file, as ``dyad predict`` and ``dyad.load`` read it."""
        return self._model

    def toLocal(self) -> Any:
        """Return the same model as an estimator of scikit-learn's kind, with `interactions`, `parameters` and plots."""
        return from_bytes(self._model)

    def _shared(self, context: Any) -> Any:
        """The model's broadcast, one for all predictions in a session."""
        if self._broadcast is None or self._broadcast[0] is not context:
            self._broadcast = (context, share(context, self._model))
        return self._broadcast[1]

    def _require_deviations(self) -> None:
        predictor = _core.Predictor.from_bytes(self._model)
        try:
            predictor.predict(_core.Rows.dense(np.zeros((1, len(predictor.column_names())))), True, 1)
        except ValueError as error:
            raise ValueError("stdCol: models of solver 'moment' have no error bars; those of 'auto' do.") from error

    def _with_columns(self, frame: DataFrame, columns: dict[str, Any]) -> DataFrame:
        """The frame with columns made of the struct `PREDICTED`: value and std."""
        column = self.getFeaturesCol()
        require_vector(frame, column)
        with_std = self.isDefined("stdCol")
        if with_std:
            self._require_deviations()
        model = self._shared(frame.sparkSession.sparkContext)
        names = (column, "", "")

        def predict(features: pa.Array) -> pa.Array:
            predictor = predictor_of(model)
            block = block_of(features, None, None, names).laid_out(predictor.layout() == "sparse")
            width = len(predictor.column_names())
            if len(block) == 0:
                block = Block(width, np.zeros((0, width)), np.zeros(0)).laid_out(block.is_sparse)
            if block.width != width:
                raise RowError(f"The column '{column}' has vectors of size {block.width}; the model is for {width}.")
            predicted = predictor.predict(block.rows([]), with_std, 1)
            values, deviations = predicted if with_std else (predicted, None)
            std = pa.nulls(len(values), pa.float64()) if deviations is None else pa.array(deviations)
            return pa.StructArray.from_arrays([pa.array(values), std], names=["value", "std"])

        predict.__annotations__ = {"features": pa.Array, "return": pa.Array}
        predicted = F.arrow_udf(predict, "value double, std double")  # type: ignore[attr-defined]
        if with_std:
            columns = {**columns, self.getOrDefault("stdCol"): F.col(PREDICTED + ".std")}
        return frame.withColumn(PREDICTED, predicted(vectors(column))).withColumns(columns).drop(PREDICTED)


LearnedModel = TypeVar("LearnedModel", bound=FactorizationModel)


class FactorizationEstimator(
    Estimator[LearnedModel], FactorizationParams, DefaultParamsReadable[Any], DefaultParamsWritable
):
    """Base of both estimators."""

    _labels: list[str] = []
    _model_type: type[LearnedModel]

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
    def setParams(self, **kwargs: Any) -> Any:
        """Set params by name."""
        return self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    def _fit(self, dataset: DataFrame) -> LearnedModel:
        return self._model_of(*learn(self, dataset, self._labels))

    def _model_of(self, model: bytes, summary: dict[str, Any]) -> LearnedModel:
        return self._copyValues(self._model_type(model, summary))


class ModelWriter(MLWriter):
    """Params as Spark writes them, and beside them the model's file."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        spark = SparkSession.active()
        DefaultParamsWriter.saveMetadata(self._instance, path, spark)
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        place = jvm.org.apache.hadoop.fs.Path(path, MODEL_FILE)
        system = place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        out = system.create(place, True)
        try:
            out.write(bytearray(self._instance._model))
        finally:
            out.close()


class ModelReader(MLReader[Any]):
    """The other way round."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> Any:
        spark = SparkSession.active()
        metadata = DefaultParamsReader.loadMetadata(path, spark, self._kind.__module__ + "." + self._kind.__name__)
        ((_, model),) = spark.sparkContext.binaryFiles(os.path.join(path, MODEL_FILE)).collect()
        instance = self._kind(bytes(model))
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance
