"""Distributed training: blocks of rows, the requests to workers, and the driver.

The rows are divided into partitions. The driver sends a request to the workers of all partitions and adds their
responses, which are sums over rows. `Partitions` is the interface to the engine that holds the rows, for example Spark.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterable
from typing import Any, Callable, Optional, Protocol

import numpy as np
import numpy.typing as npt

from . import _core

Array = npt.NDArray[Any]

# Number of different 64-bit hashes.
_HASH_COUNT = 2.0**64

# Largest number of iterations of the moment solver. Each step takes two.
_MAX_MOMENT_ITERATIONS = 60

# Number of iterations of the moment solver without an improvement of the rmse after which it ends.
_MOMENT_PATIENCE_ITERATIONS = 6

# Smallest relative decrease of the rmse that counts as an improvement.
_MIN_MOMENT_IMPROVEMENT = 1e-4

# Rmse, in the units of the target, below which a fit is treated as exact and the moment solver ends.
_EXACT_MOMENT_RMSE = 1e-12


@dataclasses.dataclass
class Block:
    """Rows of one partition, dense or sparse.

    Attributes
    ----------
    width : int
        Number of features.
    values : ndarray
        Dense: matrix of shape (n_rows, width). Sparse: value of each entry.
    targets : ndarray of shape (n_rows,)
        Targets.
    weights : ndarray of shape (n_rows,), optional
        Weights; None: all weights are 1.
    indices : ndarray, optional
        Sparse: column of each entry, increasing within a row.
    offsets : ndarray of shape (n_rows + 1,), optional
        Sparse: first entry of each row, and the number of entries.
    hashes : ndarray of shape (n_rows,), optional
        Hash of the features and the target of each row.
    """

    width: int
    values: Array
    targets: Array
    weights: Optional[Array] = None
    indices: Optional[Array] = None
    offsets: Optional[Array] = None
    hashes: Optional[Array] = None

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are in compressed sparse form."""
        return self.offsets is not None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.targets)

    def to_sparse(self) -> Block:
        """Return the rows in compressed sparse form."""
        if self.is_sparse:
            return self
        rows, columns = np.nonzero(self.values)
        offsets = np.searchsorted(rows, np.arange(len(self) + 1)).astype(np.int64)
        indices = columns.astype(np.int32)
        return dataclasses.replace(self, values=self.values[rows, columns], indices=indices, offsets=offsets)

    def to_dense(self) -> Block:
        """Return the rows as a matrix."""
        if self.offsets is None or self.indices is None:
            return self
        values = np.zeros((len(self), self.width))
        values[np.repeat(np.arange(len(self)), np.diff(self.offsets)), self.indices] = self.values
        return dataclasses.replace(self, values=values, indices=None, offsets=None)

    def to_layout(self, is_sparse: bool) -> Block:
        """Return the rows in compressed sparse form or as a matrix."""
        return self.to_sparse() if is_sparse else self.to_dense()

    def to_rows(self, labels: list[str], positive: Optional[int] = None) -> _core.Rows:
        """Return rows for the extension.

        Parameters
        ----------
        labels : list of str
            Names of the classes 0, 1, ...; empty: regression.
        positive : int, optional
            Target that is class 1 of two; all others are class 0. By default, the targets are the classes.
        """
        if self.offsets is None or self.indices is None:
            rows = _core.Rows.dense(self.values)
        else:
            rows = _core.Rows.sparse(self.offsets, self.indices, self.values, self.width)
        rows.set_targets(self.targets if positive is None else (self.targets == positive).astype(np.float64), labels)
        if self.weights is not None:
            rows.set_weights(self.weights)
        return rows

    def with_hashes(self) -> Block:
        """Return the block with the hashes of its rows."""
        return dataclasses.replace(self, hashes=_core.hash_rows(self.to_rows([])))

    def take_rows(self, indices: Array) -> Block:
        """Return the rows with these indices, in this order."""
        weights = None if self.weights is None else self.weights[indices]
        hashes = None if self.hashes is None else self.hashes[indices]
        targets = self.targets[indices]
        if self.offsets is None or self.indices is None:
            return Block(self.width, self.values[indices], targets, weights, hashes=hashes)
        counts = np.diff(self.offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(self.offsets[:-1][indices] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Block(self.width, self.values[entries], targets, weights, self.indices[entries], offsets, hashes)


def concatenate_by_hash(blocks: list[Block]) -> Block:
    """Concatenate blocks of the same layout and sort the rows by hash, so that the partitioning has no effect."""
    has_weights = any(block.weights is not None for block in blocks)
    weights = [np.ones(len(block)) if block.weights is None else block.weights for block in blocks]
    result = Block(
        blocks[0].width,
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.targets for block in blocks]),
        np.concatenate(weights) if has_weights else None,
        hashes=np.concatenate([block.hashes for block in blocks if block.hashes is not None]),
    )
    if blocks[0].is_sparse:
        result.indices = np.concatenate([block.indices for block in blocks if block.indices is not None])
        counts = np.concatenate([np.diff(block.offsets) for block in blocks if block.offsets is not None])
        result.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    assert result.hashes is not None
    return result.take_rows(np.argsort(result.hashes, kind="stable"))


def sample_blocks(blocks: Iterable[Block], share: float, is_sparse: bool) -> list[Block]:
    """Return the rows whose hash is below ``share`` * 2^64, in the given layout."""
    sample = []
    for block in blocks:
        assert block.hashes is not None
        chosen = np.flatnonzero(block.hashes < share * _HASH_COUNT) if share < 1 else np.arange(len(block))
        if len(chosen):
            sample.append(block.to_layout(is_sparse).take_rows(chosen))
    return sample


@dataclasses.dataclass
class Request:
    """Request of the driver to the workers of all partitions.

    Attributes
    ----------
    model : bytes
        Model to which the request refers: the result of `_core.start_workers`, or the current model of the moment
        solver.
    content : bytes, optional
        Request of `_core.train_distributed`; None: the statistics of the moment solver.
    labels : list of str
        Names of the classes 0 and 1; empty: regression.
    is_sparse : bool
        Whether the model requires sparse rows. Blocks are converted to this layout.
    threads : int
        Number of threads of one worker; 0: all cores.
    positive : int, optional
        As in `Block.to_rows`.
    """

    model: bytes
    content: Optional[bytes]
    labels: list[str]
    is_sparse: bool
    threads: int = 1
    positive: Optional[int] = None

    def compute_response(self, blocks: Iterable[Block], worker: Optional[_core.Worker] = None) -> Optional[bytes]:
        """Return the sums over the rows of one partition, or None if the moment solver has no rows.

        Parameters
        ----------
        blocks : iterable of Block
            Rows of the partition, with hashes.
        worker : _core.Worker, optional
            Worker that was created for ``model``. By default, a new one is created.
        """
        if self.content is None:
            total: Optional[bytes] = None
            for block in blocks:
                statistics = _core.partial_statistics(self.model, self._to_rows(block), self.threads)
                total = statistics if total is None else add_responses(total, statistics)
            return total
        worker = worker or _core.Worker(self.model, self.threads)
        worker.handle(self.content)
        for block in blocks:
            assert block.hashes is not None
            worker.add_rows(self._to_rows(block), block.hashes)
        return worker.response()

    def _to_rows(self, block: Block) -> _core.Rows:
        return block.to_layout(self.is_sparse).to_rows(self.labels, self.positive)


def add_responses(left: bytes, right: bytes) -> bytes:
    """Return the sum of two responses to the same request."""
    return _core.add_statistics(left, right)


class Partitions(Protocol):
    """Partitioned rows.

    Attributes
    ----------
    rows : int
        Number of rows in all partitions.
    width : int
        Number of features.
    is_sparse : bool
        Whether any block is sparse.
    """

    rows: int
    width: int
    is_sparse: bool

    def sample(self, share: float) -> list[Block]:
        """Return `sample_blocks` of all partitions."""
        ...

    def send(self, request: Request) -> bytes:
        """Return the sum of the responses of all partitions."""
        ...


class LocalPartitions:
    """Partitions in the memory of this process, for tests and measurements."""

    def __init__(self, partitions: list[list[Block]]) -> None:
        self._partitions = [[block.with_hashes() for block in partition] for partition in partitions]
        blocks = [block for partition in self._partitions for block in partition]
        self.rows = sum(len(block) for block in blocks)
        self.width = blocks[0].width
        self.is_sparse = any(block.is_sparse for block in blocks)

    def sample(self, share: float) -> list[Block]:
        """Return `sample_blocks` of all partitions."""
        return [
            block for partition in self._partitions for block in sample_blocks(partition, share, self.is_sparse)
        ]

    def send(self, request: Request) -> bytes:
        """Return the sum of the responses of all partitions."""
        responses = [request.compute_response(partition) for partition in self._partitions]
        return functools.reduce(add_responses, [response for response in responses if response is not None])


# Called with (level, share, loss, held_out), the fields of DistributedProgress in include/dyad/distributed.h.
ProgressCallback = Callable[[str, float, float, float], None]


def train(
    partitions: Partitions,
    settings: _core.Settings,
    labels: list[str],
    *,
    sample_rows: int,
    max_data_passes: int,
    progress: ProgressCallback,
    start_model: Optional[bytes] = None,
    positive: Optional[int] = None,
) -> tuple[bytes, dict[str, Any]]:
    """Train a model on the rows of all partitions.

    Parameters
    ----------
    partitions : Partitions
        Rows.
    settings : _core.Settings
        Training options.
    labels : list of str
        Names of the classes 0 and 1; empty: regression.
    sample_rows : int
        Approximate number of rows on which the driver trains the start model. If there are at most twice as many rows
        in total, the driver trains on all of them without workers.
    max_data_passes : int
        Limit on the data passes of Gauss-Newton.
    progress : callable
        Called after each iteration.
    start_model : bytes, optional
        Model from which training continues. By default, the start model is trained on a sample.
    positive : int, optional
        As in `Block.to_rows`.

    Returns
    -------
    model : bytes
        Model file.
    summary : dict
        Summary of the training run.
    """
    start_time = time.perf_counter()
    share = 0.0  # share of the rows on which the start model was trained
    is_sparse = partitions.is_sparse
    solver = settings.solver or "auto"
    summary: dict[str, Any] = {}
    if start_model is not None:
        is_sparse = _check_start_model(start_model, partitions)
        model = start_model
    else:
        sample, share = _take_sample(partitions, sample_rows)
        can_use_anova = not is_sparse and settings.rank is None and settings.diagonal is None
        if share < 1 and solver not in ("moment", "anova") and not (solver == "auto" and can_use_anova):
            settings.passes = 1
            settings.solver = "kalman" if solver == "kalman" else None
        model, summary = _core.fit(sample.to_rows(labels, positive), settings, None, None)
    if solver == "moment":
        model, summary = _train_moment(partitions, model, labels, is_sparse, progress)
    elif share < 1:
        worker_start_model = _core.start_workers(model)

        def send(content: bytes) -> bytes:
            return partitions.send(Request(worker_start_model, content, labels, is_sparse, positive=positive))

        model, summary = _core.train_distributed(worker_start_model, solver, share, max_data_passes, send, progress)
    summary.update(rows=partitions.rows, seconds=time.perf_counter() - start_time, solver=solver)
    return model, summary


def _take_sample(partitions: Partitions, sample_rows: int) -> tuple[Block, float]:
    """Return a random sample of about ``sample_rows`` rows and its share of all rows; all of at most twice as many."""
    share = sample_rows / partitions.rows if partitions.rows > 2 * sample_rows else 1.0
    while not (sample := partitions.sample(share)):  # may be empty, because equal rows have the same hash
        share = min(1.0, 2 * share)
    return concatenate_by_hash(sample), share


def train_classes(
    partitions: Partitions,
    make_settings: Callable[[], _core.Settings],
    labels: list[str],
    *,
    sample_rows: int,
    max_data_passes: int,
    progress: ProgressCallback,
    start_model: Optional[bytes] = None,
) -> tuple[bytes, dict[str, Any]]:
    """Train a model of more than two classes on the rows of all partitions.

    One model of each class against the others is trained. The temperature of their softmax minimizes the log-loss of
    held-out rows of the sample. Training that continues from ``start_model`` keeps its temperature.

    Parameters
    ----------
    partitions : Partitions
        Rows, with the indices of the labels as targets.
    make_settings : callable
        Returns new training options.
    labels : list of str
        Names of the classes.
    sample_rows, max_data_passes, progress, start_model
        As in `train`.

    Returns
    -------
    model : bytes
        Model file.
    summary : dict
        Summary of the training run. Its ``classes`` are the summaries of the models of each class.
    """
    start_time = time.perf_counter()
    settings = make_settings()
    if start_model is None:
        sample, share = _take_sample(partitions, sample_rows)
        if share < 1 and settings.solver is None:  # the solver of the distributed rows
            can_use_anova = not partitions.is_sparse and settings.rank is None and settings.diagonal is None
            settings.solver = "anova" if can_use_anova else "kalman"
        container, summary = _core.fit(sample.to_rows(labels), settings, None, None)
        if share == 1:
            return container, {**summary, "rows": partitions.rows, "seconds": time.perf_counter() - start_time}
        starts: list[Optional[bytes]] = [None] * len(labels)
    else:
        container = start_model
        starts = list(_core.unpack_container(start_model, "the model")[1])
    trained = []
    for index, (label, start) in enumerate(zip(labels, starts)):

        def report(level: str, share: float, loss: float, held_out: float, label: str = label) -> None:
            progress(f"class {label}: {level}", share, loss, held_out)

        trained.append(
            train(
                partitions,
                make_settings(),
                [f"not {label}", label],
                sample_rows=sample_rows,
                max_data_passes=max_data_passes,
                progress=report,
                start_model=start,
                positive=index,
            )
        )
    temperature = _core.ClassPredictor.from_bytes(container).temperature()
    model = _core.pack_classes(labels, [part for part, _ in trained], temperature, 4.0)
    summaries = [summary for _, summary in trained]
    return model, {
        **summaries[0],
        "classes": summaries,
        "temperature": temperature,
        "requests": sum(summary.get("requests", 0) for summary in summaries),
        "seconds": time.perf_counter() - start_time,
    }


def _check_start_model(model: bytes, partitions: Partitions) -> bool:
    """Return whether the rows of the model are sparse. Raise ValueError if the number of features differs."""
    predictor = _core.Predictor.from_bytes(model)
    width = len(predictor.column_names())
    if partitions.width != width:
        raise ValueError(
            f"The feature vectors have size {partitions.width}; the model from which training continues has {width} "
            "features."
        )
    return predictor.layout() == "sparse"


def _train_moment(
    partitions: Partitions, model: bytes, labels: list[str], is_sparse: bool, progress: ProgressCallback
) -> tuple[bytes, dict[str, Any]]:
    """Iterate the moment solver of Lin and Ye (2016) until the rmse does not decrease any more."""
    best_rmse, stalled_iterations = np.inf, 0
    summary: dict[str, Any] = {}
    for iteration in range(1, _MAX_MOMENT_ITERATIONS + 1):
        statistics = partitions.send(Request(model, None, labels, is_sparse))
        model, summary = _core.apply_statistics(model, statistics)
        rmse = summary["rmse"]
        progress(f"iteration {iteration}", 1.0, rmse, -1.0)  # -1: there is no held-out loss
        stalled_iterations = 0 if rmse < (1 - _MIN_MOMENT_IMPROVEMENT) * best_rmse else stalled_iterations + 1
        best_rmse = min(best_rmse, rmse)
        if stalled_iterations >= _MOMENT_PATIENCE_ITERATIONS or best_rmse < _EXACT_MOMENT_RMSE:
            break
    return model, {**summary, "requests": iteration, "origin": "moment solver on the rows of all workers"}
