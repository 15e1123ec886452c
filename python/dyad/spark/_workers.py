"""What executors do: Arrow batches to blocks of rows, answers and predictions. It loads little: every worker has to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

import numpy as np
import pyarrow as pa

from .. import _core
from .._parts import Block

# A Python worker keeps what it has last made of a model that was broadcast: its key, and that.
_made: dict[str, tuple[str, Any]] = {}


def part_of(shared: Any) -> _core.Part:
    """On an executor: who answers for its rows."""
    part: _core.Part = _made_of("part", shared, lambda model: _core.Part(model, 1))
    return part


def predictor_of(shared: Any) -> _core.Predictor:
    """On an executor: who predicts."""
    predictor: _core.Predictor = _made_of("predictor", shared, _core.Predictor.from_bytes)
    return predictor


def _made_of(what: str, shared: Any, make: Callable[[bytes], Any]) -> Any:
    key, model = shared.value
    if what not in _made or _made[what][0] != key:
        _made[what] = (key, make(model))
    return _made[what][1]


class RowError(ValueError):
    """A row that cannot be learned from."""


def block_of(features: Any, targets: Optional[Any], weights: Optional[Any], names: tuple[str, str, str]) -> Block:
    """Rows of one Arrow batch; those without weight are left out. Raises `RowError`, which names the column."""
    width, values, indices, offsets = _entries(features, names[0])
    count = len(features)
    y = np.zeros(count) if targets is None else _numbers(targets, names[1])
    block = Block(width, values, y, None if weights is None else _numbers(weights, names[2]), indices, offsets)
    if block.weights is not None:
        if (block.weights < 0).any():
            raise RowError(f"The column '{names[2]}' has a weight below 0.")
        if not block.weights.all():
            block = block.only(np.flatnonzero(block.weights))
    return block


def _numbers(array: Any, column: str) -> Any:
    if array.null_count:
        raise RowError(f"The column '{column}' has nulls; expected a number in every row.")
    numbers = np.array(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise RowError(f"The column '{column}' has NaN or infinity; expected a number in every row.")
    return numbers


def _entries(features: Any, column: str) -> tuple[int, Any, Any, Any]:
    """Width, values, indices and offsets; a matrix, which has neither indices nor offsets, where all are dense."""
    if features.null_count:
        raise RowError(f"The column '{column}' has nulls; expected a vector in every row.")
    kinds, sizes, indices, values = features.flatten()
    is_dense = kinds.to_numpy(zero_copy_only=False) == 1
    lengths = np.diff(values.offsets.to_numpy())
    flat = np.ascontiguousarray(values.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    widths = np.where(is_dense, lengths, np.nan_to_num(sizes.to_numpy(zero_copy_only=False))).astype(np.int64)
    if len(widths) and (widths != widths[0]).any():
        other = widths[widths != widths[0]][0]
        raise RowError(f"The column '{column}' has vectors of different sizes: {widths[0]} and {other}.")
    width = int(widths[0]) if len(widths) else 0
    if not np.isfinite(flat).all():
        raise RowError(f"The column '{column}' has NaN or infinity in a vector; Imputer fills gaps.")
    if is_dense.all():
        return width, flat.reshape(len(lengths), width), None, None
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    of_dense = np.repeat(is_dense, lengths)
    places = (np.arange(len(flat)) - np.repeat(offsets[:-1], lengths)).astype(np.int32)
    places[~of_dense] = indices.flatten().to_numpy(zero_copy_only=False)
    there = flat != 0
    return width, flat[there], places[there], np.concatenate([[0], np.cumsum(there)])[offsets]


def packed(block: Block) -> bytes:
    """A block as Arrow's own bytes, to be kept by Spark and read again without copying."""
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


def unpacked(data: bytes) -> Block:
    with pa.ipc.open_stream(data) as reader:
        batch = reader.read_next_batch()
        width = int(reader.schema.metadata[b"width"])
    columns = {name: batch.column(name).values.to_numpy() for name in batch.schema.names}
    if "offsets" not in columns:
        columns["values"] = columns["values"].reshape(-1, width)
    return Block(width, **columns)


INFO = "data binary, rows long, width int, is_sparse boolean, problem string"
INFO_SCHEMA = pa.schema(
    {"data": pa.binary(), "rows": pa.int64(), "width": pa.int32(), "is_sparse": pa.bool_(), "problem": pa.string()}
)


def to_blocks(names: tuple[str, str, str], has_weights: bool, are_classes: bool) -> Any:
    """For ``mapInArrow``: a block for each batch, with what the driver has to know of it."""

    def blocks(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            info: dict[str, Any] = {}
            try:
                block = block_of(batch.column(0), batch.column(1), batch.column(2) if has_weights else None, names)
                if are_classes and not np.isin(block.targets, (0, 1)).all():
                    raise RowError(
                        f"The column '{names[1]}' has other labels than 0 and 1; "
                        "StringIndexer makes such labels, OneVsRest learns more than two classes."
                    )
                if len(block) == 0:
                    continue
                data = packed(block.with_hashes())
                info.update(rows=len(block), width=block.width, is_sparse=block.is_sparse, data=data)
            except RowError as error:
                info["problem"] = str(error)
            except ValueError as error:
                info["problem"] = f"The column '{names[0]}' cannot be learned from: {error}"
            yield pa.RecordBatch.from_pylist([info], INFO_SCHEMA)

    return blocks
