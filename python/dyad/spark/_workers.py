"""Functions that run on executors: blocks from Arrow batches, responses and predictions.

The module imports little, because every Python worker of Spark loads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

import numpy as np
import pyarrow as pa

from .. import _core
from .._distributed import Block

# Objects that this Python worker created from broadcast models. Maps the kind of an object to the key of its model and
# the object. One object of each kind is cached.
_cache: dict[str, tuple[str, Any]] = {}


def cached_worker(broadcast: Any) -> _core.Worker:
    """Return the worker for a broadcast model."""
    worker: _core.Worker = _cached("worker", broadcast, lambda model: _core.Worker(model, 1))
    return worker


def cached_predictor(broadcast: Any) -> _core.Predictor:
    """Return the predictor for a broadcast model."""
    predictor: _core.Predictor = _cached("predictor", broadcast, _core.Predictor.from_bytes)
    return predictor


def cached_class_predictor(broadcast: Any) -> _core.ClassPredictor:
    """Return the predictor for a broadcast model of more than two classes."""
    predictor: _core.ClassPredictor = _cached("class predictor", broadcast, _core.ClassPredictor.from_bytes)
    return predictor


def _cached(kind: str, broadcast: Any, create: Callable[[bytes], Any]) -> Any:
    key, model = broadcast.value
    if kind not in _cache or _cache[kind][0] != key:
        _cache[kind] = (key, create(model))
    return _cache[kind][1]


class RowError(ValueError):
    """Invalid row. The message names the column."""


def block_from_arrow(
    features: Any, targets: Optional[Any], weights: Optional[Any], names: tuple[str, str, str]
) -> Block:
    """Convert the columns of an Arrow batch to a block. Rows of weight 0 are omitted.

    Parameters
    ----------
    features : pyarrow.Array
        Structs of Spark's vectors.
    targets : pyarrow.Array, optional
        Labels; None: zeros.
    weights : pyarrow.Array, optional
        Weights; None: all weights are 1.
    names : tuple of str
        Names of the three columns, for error messages.

    Raises
    ------
    RowError
        If a value is null or not finite, vectors have different sizes, or a weight is negative.
    """
    width, values, indices, offsets = _vector_entries(features, names[0])
    y = np.zeros(len(features)) if targets is None else _finite_numbers(targets, names[1])
    row_weights = None if weights is None else _finite_numbers(weights, names[2])
    block = Block(width, values, y, row_weights, indices, offsets)
    if row_weights is not None:
        if (row_weights < 0).any():
            raise RowError(f"Column '{names[2]}' contains a negative weight; expected weights of at least 0.")
        if not row_weights.all():
            block = block.take_rows(np.flatnonzero(row_weights))
    return block


def _finite_numbers(array: Any, column: str) -> Any:
    if array.null_count:
        raise RowError(f"Column '{column}' contains null; expected a number in every row. Drop or fill these rows.")
    numbers = np.array(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise RowError(
            f"Column '{column}' contains NaN or infinity; expected a finite number in every row. Drop or fill these "
            "rows."
        )
    return numbers


def _vector_entries(features: Any, column: str) -> tuple[int, Any, Any, Any]:
    """Return width, values, indices and offsets of vectors.

    If all vectors are dense, values are a matrix, and indices and offsets are None.
    """
    if features.null_count:
        raise RowError(f"Column '{column}' contains null; expected a vector in every row. Drop these rows.")
    types, sizes, indices, values = features.flatten()
    is_dense = types.to_numpy(zero_copy_only=False) == 1  # types of VectorUDT: 0 is sparse, 1 is dense
    lengths = np.diff(values.offsets.to_numpy())
    flat = np.ascontiguousarray(values.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    widths = np.where(is_dense, lengths, np.nan_to_num(sizes.to_numpy(zero_copy_only=False))).astype(np.int64)
    if len(widths) and (widths != widths[0]).any():
        other = widths[widths != widths[0]][0]
        raise RowError(f"Column '{column}' contains vectors of different sizes: {widths[0]} and {other}.")
    width = int(widths[0]) if len(widths) else 0
    if not np.isfinite(flat).all():
        raise RowError(f"Column '{column}' contains NaN or infinity in a vector; replace missing values with Imputer.")
    if is_dense.all():
        return width, flat.reshape(len(lengths), width), None, None
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    is_dense_entry = np.repeat(is_dense, lengths)
    columns = (np.arange(len(flat)) - np.repeat(offsets[:-1], lengths)).astype(np.int32)
    columns[~is_dense_entry] = indices.flatten().to_numpy(zero_copy_only=False)
    is_nonzero = flat != 0  # zeros are not stored
    return width, flat[is_nonzero], columns[is_nonzero], np.concatenate([[0], np.cumsum(is_nonzero)])[offsets]


def serialize_block(block: Block) -> bytes:
    """Return the block as an Arrow stream, which is read without copying the arrays."""
    assert block.hashes is not None
    columns = {"targets": block.targets, "hashes": block.hashes, "values": block.values.reshape(-1)}
    for name in ("weights", "indices", "offsets"):
        if getattr(block, name) is not None:
            columns[name] = getattr(block, name)
    schema = pa.schema(
        [pa.field(name, pa.large_list(pa.from_numpy_dtype(array.dtype))) for name, array in columns.items()],
        metadata={"width": str(block.width)},
    )
    lists = [pa.LargeListArray.from_arrays([0, len(array)], array) for array in columns.values()]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(lists, schema=schema))
    return bytes(sink.getvalue())


def deserialize_block(data: bytes) -> Block:
    """Return the block of `serialize_block`."""
    with pa.ipc.open_stream(data) as reader:
        batch = reader.read_next_batch()
        width = int(reader.schema.metadata[b"width"])
    columns = {name: batch.column(name).values.to_numpy() for name in batch.schema.names}
    if "offsets" not in columns:
        columns["values"] = columns["values"].reshape(-1, width)
    return Block(width, **columns)


# Columns of the DataFrame of blocks: a serialized block and its properties, or the error of an invalid row.
BLOCK_COLUMNS = "data binary, rows long, width int, is_sparse boolean, classes int, error string"
_BLOCK_SCHEMA = pa.schema(
    {
        "data": pa.binary(),
        "rows": pa.int64(),
        "width": pa.int32(),
        "is_sparse": pa.bool_(),
        "classes": pa.int32(),
        "error": pa.string(),
    }
)

# Largest number of classes, as in Target::max_classes (src/encoding/target.h).
_MAX_CLASSES = 1000


def make_block_converter(names: tuple[str, str, str], has_weights: bool, is_classification: bool) -> Any:
    """Return a function for ``mapInArrow`` that converts each batch to one row of `BLOCK_COLUMNS`."""

    def convert(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            fields: dict[str, Any] = {}
            try:
                weights = batch.column(2) if has_weights else None
                block = block_from_arrow(batch.column(0), batch.column(1), weights, names)
                is_label = (block.targets == np.floor(block.targets)) & (block.targets >= 0)
                if is_classification and not (is_label & (block.targets < _MAX_CLASSES)).all():
                    raise RowError(
                        f"Column '{names[1]}' contains labels other than the integers 0, 1, 2, ... below "
                        f"{_MAX_CLASSES}; index labels with StringIndexer."
                    )
                if len(block) == 0:
                    continue
                data = serialize_block(block.with_hashes())
                fields["classes"] = int(block.targets.max()) + 1 if is_classification else 0
                fields.update(rows=len(block), width=block.width, is_sparse=block.is_sparse, data=data)
            except RowError as error:
                fields["error"] = str(error)
            except ValueError as error:
                fields["error"] = f"Column '{names[0]}' is invalid: {error}"
            yield pa.RecordBatch.from_pylist([fields], _BLOCK_SCHEMA)

    return convert
