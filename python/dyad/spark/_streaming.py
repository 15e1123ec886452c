"""Training on micro-batches of Structured Streaming."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any, Optional

from pyspark.sql import DataFrame

from ._classification import FactorizationClassifier
from ._cluster import NoRowsError
from ._regression import FactorizationRegressor
from ._shared import train


class StreamLearner:
    """Function for ``writeStream.foreachBatch`` that trains one model on all batches, each read once.

    Parameters
    ----------
    estimator : FactorizationRegressor or FactorizationClassifier
        Estimator of ``dyad.spark`` with the solver 'auto' or 'kalman'. 'auto' is replaced by 'kalman'. The first batch
        determines the scales of the features, the range of the labels and the number of classes. It should have at least a thousand rows.
    folder : str or path-like
        Folder of the model files, on a file system of the driver that survives a restart of the query. Each query
        requires its own folder, as it requires its own checkpoint.

    Attributes
    ----------
    last_batch : int or None
        Number of the last learned batch.

    Raises
    ------
    ValueError
        If the solver of the estimator is neither 'auto' nor 'kalman'.

    Notes
    -----
    After each batch, the model is stored as ``batch-<number>.dyad``. The file is renamed to this name when it is
    complete and synced. A restarted query delivers its last batch again. If the folder contains the model of that
    batch, the batch is skipped; otherwise training continues from the model of the previous batch. Each batch is
    therefore learned exactly once.

    Examples
    --------
    ::

        learner = StreamLearner(FactorizationRegressor(rank=8), "models")
        query = clicks.writeStream.foreachBatch(learner).option("checkpointLocation", "checkpoint").start()
        learner.model().transform(frame)
    """

    #: Number of model files that are kept: the last one, and the one before for a batch that is delivered again.
    max_models = 2

    def __init__(
        self, estimator: FactorizationRegressor | FactorizationClassifier, folder: str | os.PathLike[str]
    ) -> None:
        if estimator.getSolver() not in ("auto", "kalman"):
            raise ValueError(f"solver must be 'auto' or 'kalman' for a stream, got {estimator.getSolver()!r}.")
        self._estimator = estimator.copy({estimator.solver: "kalman"})
        self._is_classification = estimator._is_classification
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Train on a batch, unless its model is in the folder.

        Parameters
        ----------
        frame : DataFrame
            Rows of the batch.
        batch : int
            Number of the batch.

        Raises
        ------
        ValueError
            If the folder contains the model of a later batch, or if the rows are invalid.
        """
        last = self.last_batch
        if last is not None and batch < last:
            raise ValueError(
                f"batch {batch} precedes batch {last}, whose model is in {self._folder}; the query uses another "
                "checkpoint. Pass a new folder for a new query."
            )
        if batch == last:
            return
        start_model = None if last is None else self._file(last).read_bytes()
        try:
            model, _ = train(self._estimator, frame, self._is_classification, start_model)
        except NoRowsError:
            if start_model is None:
                return
            model = start_model
        self._save(model, batch)

    @property
    def last_batch(self) -> Optional[int]:
        """Number of the last learned batch; None before the first."""
        return max(self._batches(), default=None)

    def model(self) -> Any:
        """Return the model of all batches so far.

        Returns
        -------
        FactorizationRegressionModel or FactorizationClassificationModel
            Model with the params of the estimator. Its ``summary`` contains the number of the last ``batch``.

        Raises
        ------
        ValueError
            If no batch has been learned.
        """
        last = self.last_batch
        if last is None:
            raise ValueError(f"The folder {self._folder} contains no model, because no batch has been learned yet.")
        return self._estimator._create_model(self._file(last).read_bytes(), {"batch": last})

    def _batches(self) -> list[int]:
        matches = (re.fullmatch(r"batch-(\d+)\.dyad", path.name) for path in self._folder.iterdir())
        return [int(match[1]) for match in matches if match]

    def _file(self, batch: int) -> pathlib.Path:
        return self._folder / f"batch-{batch}.dyad"

    def _save(self, model: bytes, batch: int) -> None:
        temporary = self._folder / f"batch-{batch}.dyad.part"
        with open(temporary, "wb") as file:
            file.write(model)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._file(batch))
        for old in sorted(self._batches())[: -self.max_models]:
            self._file(old).unlink(missing_ok=True)
