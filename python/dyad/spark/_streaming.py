"""Structured Streaming: batch after batch, each learned once."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any, Optional

from pyspark.sql import DataFrame

from ._classification import FactorizationClassifier
from ._cluster import NoRowsError
from ._regression import FactorizationRegressor
from ._shared import learn


class StreamLearner:
    """For ``writeStream.foreachBatch``: every batch is one more part of one pass.

    After each batch the model is in the folder as ``batch-<number>.dyad``, under its name only when it is complete. A
    query that starts again delivers its last batch again; a batch that is in the folder is not learned twice, and what
    was lost on the way to it is learned from the batch before.

    Parameters
    ----------
    estimator : FactorizationRegressor or FactorizationClassifier
        Of ``dyad.spark``, with solver 'auto' or 'kalman', which are one pass here. The first batch decides about scales
        and the range of the labels, so let it have some thousand rows.
    folder : str or path-like
        For the models, on a disk of the driver's, or one that outlives it. One folder for one query, beside its
        checkpoint.

    Examples
    --------
    ::

        learner = StreamLearner(FactorizationRegressor(rank=8), "models")
        query = clicks.writeStream.foreachBatch(learner).option("checkpointLocation", "checkpoint").start()
        learner.model().transform(frame)
    """

    kept = 2  # models, the last one and one before

    def __init__(
        self, estimator: FactorizationRegressor | FactorizationClassifier, folder: str | os.PathLike[str]
    ) -> None:
        if estimator.getSolver() not in ("auto", "kalman"):
            raise ValueError(f"solver must be 'auto' or 'kalman' for a stream, got {estimator.getSolver()!r}.")
        self._estimator = estimator.copy({estimator.solver: "kalman"})
        self._labels = estimator._labels
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Learn a batch, unless it has been learned."""
        last = self.last_batch
        if last is not None and batch < last:
            raise ValueError(
                f"Batch {batch} comes behind batch {last}, whose model is in {self._folder}: the query's checkpoint is "
                "another one. Give a new query a new folder."
            )
        if batch == last:
            return
        known = None if last is None else self._file(last).read_bytes()
        try:
            model, _ = learn(self._estimator, frame, self._labels, known)
        except NoRowsError:
            if known is None:
                return
            model = known
        self._save(model, batch)

    @property
    def last_batch(self) -> Optional[int]:
        """The number of the last batch that was learned; None before the first."""
        return max(self._batches(), default=None)

    def model(self) -> Any:
        """Return the model of all batches so far."""
        last = self.last_batch
        if last is None:
            raise ValueError("No batch has been learned yet.")
        return self._estimator._model_of(self._file(last).read_bytes(), {"batch": last})

    def _batches(self) -> list[int]:
        found = (re.fullmatch(r"batch-(\d+)\.dyad", path.name) for path in self._folder.iterdir())
        return [int(match[1]) for match in found if match]

    def _file(self, batch: int) -> pathlib.Path:
        return self._folder / f"batch-{batch}.dyad"

    def _save(self, model: bytes, batch: int) -> None:
        temporary = self._folder / f"batch-{batch}.dyad.part"
        with open(temporary, "wb") as file:
            file.write(model)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._file(batch))
        for old in sorted(self._batches())[: -self.kept]:
            self._file(old).unlink(missing_ok=True)
