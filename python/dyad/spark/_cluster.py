"""Rows of a Spark DataFrame as partitions for distributed training."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from typing import Any, Optional

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .._distributed import Block, Request, add_responses, sample_blocks
from ._columns import check_numeric_column, check_vector_column, vector_structs
from ._workers import BLOCK_COLUMNS, cached_worker, deserialize_block, make_block_converter

# Approximate largest number of responses that one task or the driver adds. It determines the depth of the reduction
# tree.
_MAX_TREE_FAN_IN = 8


def broadcast_model(context: Any, model: bytes) -> Any:
    """Broadcast a model with a unique key, by which executors cache objects created from it."""
    return context.broadcast((uuid.uuid4().hex, model))


class NoRowsError(ValueError):
    """The DataFrame contains no rows of positive weight."""


class SparkPartitions:
    """Rows of a DataFrame as blocks that Spark caches in memory or on disk until `close`.

    Implements `dyad._distributed.Partitions`. Each call of `sample` and `send` is one Spark job. ``classes`` is the
    largest label plus 1; 0 for regression.
    """

    def __init__(
        self, frame: DataFrame, features: str, label: str, weight: Optional[str], is_classification: bool = False
    ) -> None:
        check_vector_column(frame, features)
        check_numeric_column(frame, label, "labelCol", "; index labels with StringIndexer")
        if weight is not None:
            check_numeric_column(frame, weight, "weightCol")
        columns = [vector_structs(features).alias("features"), F.col(label).cast("double").alias("label")]
        if weight is not None:
            columns.append(F.col(weight).cast("double").alias("weight"))
        names = (features, label, weight or "")
        converter = make_block_converter(names, weight is not None, is_classification)
        self._spark = frame.sparkSession
        self._frame = frame.select(*columns).mapInArrow(converter, BLOCK_COLUMNS)
        self._frame = self._frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._model_broadcast: Optional[tuple[bytes, Any]] = None  # model of the last request, and its broadcast
        try:
            self._create_blocks(features)
        except BaseException:
            self.close()
            raise

    def _create_blocks(self, features: str) -> None:
        """Convert all rows, raise the first error of an executor, and set the properties of the rows."""
        totals = self._frame.agg(
            F.first("error", ignorenulls=True),
            F.sum("rows"),
            F.min("width"),
            F.max("width"),
            F.max("is_sparse"),
            F.max("classes"),
        ).first()
        assert totals is not None
        error, rows, min_width, max_width, is_sparse, classes = totals
        if error is not None:
            raise ValueError(error)
        if not rows:
            raise NoRowsError("The DataFrame contains no row with a positive weight; expected at least one.")
        if min_width != max_width:
            raise ValueError(f"Column '{features}' contains vectors of different sizes: {min_width} and {max_width}.")
        self.rows, self.width, self.is_sparse = int(rows), int(max_width), bool(is_sparse)
        self.classes = int(classes or 0)
        partition_count = self._frame.rdd.getNumPartitions()
        self._tree_depth = max(2, math.ceil(math.log(max(partition_count, 1), _MAX_TREE_FAN_IN)))
        self._blocks = self._frame.select("data").rdd.map(lambda row: bytes(row[0]))

    def sample(self, share: float) -> list[Block]:
        """Return `sample_blocks` of all partitions."""
        is_sparse = self.is_sparse
        return self._blocks.flatMap(lambda data: sample_blocks([deserialize_block(data)], share, is_sparse)).collect()

    def send(self, request: Request) -> bytes:
        """Return the sum of the responses of all partitions."""
        context = self._spark.sparkContext
        if self._model_broadcast is None or self._model_broadcast[0] is not request.model:
            self._destroy_model_broadcast()
            self._model_broadcast = (request.model, broadcast_model(context, request.model))
        model = self._model_broadcast[1]
        message = context.broadcast((request.content, request.labels, request.is_sparse, request.positive))

        def compute_response(blocks: Iterable[bytes]) -> Iterable[bytes]:
            content, labels, is_sparse, positive = message.value
            received = Request(model.value[1], content, labels, is_sparse, positive=positive)
            worker = None if content is None else cached_worker(model)
            response = received.compute_response(map(deserialize_block, blocks), worker)
            return () if response is None else (response,)

        try:
            return self._blocks.mapPartitions(compute_response).treeReduce(add_responses, self._tree_depth)
        finally:
            message.destroy()

    def _destroy_model_broadcast(self) -> None:
        if self._model_broadcast is not None:
            self._model_broadcast[1].destroy()
            self._model_broadcast = None

    def close(self) -> None:
        """Remove the blocks from the cache of Spark."""
        self._destroy_model_broadcast()
        self._frame.unpersist()

    def __enter__(self) -> SparkPartitions:
        """Return the partitions."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the partitions."""
        self.close()
