"""The rows of a DataFrame as parts: kept by Spark, asked by jobs."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from typing import Any, Optional

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .._parts import Block, Task, added, sample_of
from ._columns import require_number, require_vector, vectors
from ._workers import INFO, part_of, to_blocks, unpacked

MOST_ANSWERS = 8  # that anybody adds up at once, the driver included
INDEX_HINT = " StringIndexer makes numbers of them."


def share(context: Any, model: bytes) -> Any:
    """A model for all workers, with a key of its own."""
    return context.broadcast((uuid.uuid4().hex, model))


class NoRowsError(ValueError):
    """There is nothing to learn from."""


class SparkParts:
    """Rows of a DataFrame that Spark keeps as Arrow batches, in its own storage, until `close`."""

    def __init__(
        self, frame: DataFrame, features: str, label: str, weight: Optional[str], are_classes: bool = False
    ) -> None:
        require_vector(frame, features)
        require_number(frame, label, "labelCol", INDEX_HINT)
        if weight is not None:
            require_number(frame, weight, "weightCol")
        columns = [vectors(features).alias("features"), F.col(label).cast("double").alias("label")]
        if weight is not None:
            columns.append(F.col(weight).cast("double").alias("weight"))
        names = (features, label, weight or "")
        self._spark = frame.sparkSession
        self._frame = frame.select(*columns).mapInArrow(to_blocks(names, weight is not None, are_classes), INFO)
        self._frame = self._frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._base: Optional[tuple[bytes, Any]] = None
        try:
            self._look(features)
        except BaseException:
            self.close()
            raise

    def _look(self, features: str) -> None:
        found = self._frame.agg(
            F.first("problem", ignorenulls=True),
            F.sum("rows"),
            F.min("width"),
            F.max("width"),
            F.max("is_sparse"),
        ).first()
        assert found is not None
        problem, rows, narrowest, widest, is_sparse = found
        if problem is not None:
            raise ValueError(problem)
        if not rows:
            raise NoRowsError("There is no row to learn from; those without weight do not count.")
        if narrowest != widest:
            raise ValueError(f"The column '{features}' has vectors of different sizes: {narrowest} and {widest}.")
        self.rows, self.width, self.is_sparse = int(rows), int(widest), bool(is_sparse)
        parts = self._frame.rdd.getNumPartitions()
        self._depth = max(2, math.ceil(math.log(max(parts, 1), MOST_ANSWERS)))
        self._blocks = self._frame.select("data").rdd.map(lambda row: bytes(row[0]))

    def sample(self, share: float) -> list[Block]:
        is_sparse = self.is_sparse
        return self._blocks.flatMap(lambda data: sample_of([unpacked(data)], share, is_sparse)).collect()

    def ask(self, task: Task) -> bytes:
        context = self._spark.sparkContext
        if self._base is None or self._base[0] is not task.model:
            self._let_go_of_base()
            self._base = (task.model, share(context, task.model))
        model = self._base[1]
        question = context.broadcast((task.question, task.labels, task.is_sparse))

        def answer(blocks: Iterable[bytes]) -> Iterable[bytes]:
            asked, labels, is_sparse = question.value
            own = Task(model.value[1], asked, labels, is_sparse)
            part = None if asked is None else part_of(model)
            said = own.answer(map(unpacked, blocks), part)
            return () if said is None else (said,)

        try:
            return self._blocks.mapPartitions(answer).treeReduce(added, self._depth)
        finally:
            question.destroy()

    def _let_go_of_base(self) -> None:
        if self._base is not None:
            self._base[1].destroy()
            self._base = None

    def close(self) -> None:
        """Let Spark forget the rows."""
        self._let_go_of_base()
        self._frame.unpersist()

    def __enter__(self) -> SparkParts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
