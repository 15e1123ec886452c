"""Training on the partitions of a DataFrame of dask, by the protocol of distributed training."""

from __future__ import annotations

import functools
import operator
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _core, _distributed, _feature_statistics
from ._distributed import Block, Request
from ._tables import as_table

Floats = npt.NDArray[np.float64]

# Approximate number of rows on which the start model is trained, and the largest number of data passes of Gauss-Newton,
# as in the Spark estimators.
_SAMPLE_ROWS = 16_384
_MAX_DATA_PASSES = 100


class PartitionedRows:
    """Rows of a DataFrame of dask with more bytes than ``max_bytes``. All columns must be numbers without missing values.

    A partition is computed whenever a request needs its rows, so that the memory of a worker bounds the size of one
    partition. Implements `_distributed.Partitions`.
    """

    def __init__(self, frame: Any, sizes: list[int]) -> None:
        self._frame = frame
        self._sizes = sizes
        self._targets: Floats = np.zeros(sum(sizes))
        self._weights: Optional[Floats] = None
        self._labels: list[str] = []
        self.rows = sum(sizes)
        self.width = len(frame.columns)
        self.is_sparse = False
        self.shape = self.rows, self.width

    def set_targets(self, targets: Floats, labels: list[str]) -> None:
        """Set the targets. ``labels``: names of the classes 0 and 1; empty: regression."""
        self._targets, self._labels = targets, labels

    def set_weights(self, weights: Floats) -> None:
        """Set the weights of the rows."""
        self._weights = weights

    def train(self, settings: _core.Settings) -> tuple[bytes, dict[str, Any]]:
        """Train a model on the rows of all partitions."""
        arguments: dict[str, Any] = {
            "sample_rows": _SAMPLE_ROWS,
            "max_data_passes": _MAX_DATA_PASSES,
            "progress": lambda level, share, loss, held_out: None,
        }
        if len(self._labels) > 2:
            model, summary = _distributed.train_classes(self, lambda: _copy(settings), self._labels, **arguments)
        else:
            model, summary = _distributed.train(self, settings, self._labels, **arguments)
        return model, {"passes": 1, "noise": np.nan, "warnings": [], "all_rows": self.rows, **summary}

    def statistics(self, features: dict[str, Any]) -> _feature_statistics.FeatureStatistics:
        """Return the statistics of the features over the rows of all partitions."""
        parts: list[_feature_statistics.FeatureStatistics] = self._compute(
            functools.partial(_partition_statistics, features)
        )
        return functools.reduce(operator.add, parts[1:], parts[0])

    def sample(self, share: float) -> list[Block]:
        """Return `sample_blocks` of all partitions."""
        parts = self._compute(functools.partial(_sample_partition, share))
        return [block for part in parts for block in part]

    def send(self, request: Request) -> bytes:
        """Return the sum of the responses of all partitions."""
        responses: list[bytes] = [part for part in self._compute(functools.partial(_respond, request)) if part is not None]
        return functools.reduce(_distributed.add_responses, responses)

    def _compute(self, function: Any) -> Any:
        """Return function(block) for the blocks of all partitions with rows."""
        from dask.base import compute
        from dask.delayed import delayed

        delayed_function = delayed(_apply)
        tasks, first = [], 0
        for part, size in zip(self._frame.to_delayed(), self._sizes):
            rows = slice(first, first + size)
            weights = None if self._weights is None else self._weights[rows]
            if size:
                tasks.append(delayed_function(function, part, self._targets[rows], weights))
            first += size
        return compute(*tasks)  # type: ignore[no-untyped-call]


def _copy(settings: _core.Settings) -> _core.Settings:
    """Return a copy, because training changes the settings."""
    result = _core.Settings()
    for name in dir(settings):
        if not name.startswith("_"):
            setattr(result, name, getattr(settings, name))
    return result


def _apply(function: Any, frame: Any, targets: Floats, weights: Optional[Floats]) -> Any:
    values = as_table(frame).to_array().astype(np.float64)
    if np.isnan(values).any():
        raise ValueError(
            "X has missing values and more bytes than max_bytes; raise max_bytes, or train by partition: "
            "for part in X.partitions: model.partial_fit(part.compute(), ...)."
        )
    return function(Block(values.shape[1], values, targets, weights))


def _partition_statistics(features: dict[str, Any], block: Block) -> _feature_statistics.FeatureStatistics:
    return _feature_statistics.compute(features, block.values, block.weights)


def _sample_partition(share: float, block: Block) -> list[Block]:
    return _distributed.sample_blocks([block.with_hashes()], share, is_sparse=False)


def _respond(request: Request, block: Block) -> Optional[bytes]:
    return request.compute_response([block.with_hashes()])


def partition_sizes(frame: Any) -> list[int]:
    """Return the number of rows of each partition."""
    return [int(size) for size in frame.map_partitions(len).compute()]


def collect(values: Any) -> Any:
    """Return a collection of dask (targets, weights) as an array; other objects unchanged."""
    return values.compute() if type(values).__module__.startswith("dask.") else values
