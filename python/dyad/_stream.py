"""Files and Arrow batches as a stream of blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np
import pandas as pd
import scipy.sparse as sp

from . import _core
from ._checks import require_whole

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
# Arguments of _core.open_files behind the paths: format, target files, categorical, rows, max_line_bytes, max_columns.
_FileSettings = tuple[Optional[str], list[str], list[str], int, Optional[int], Optional[int]]


class Stream:
    """Blocks of rows, ``(X, y)``, of what `stream` was given; begins anew with every loop, where the source can."""

    def __init__(self, open_source: Any) -> None:
        self._open = open_source

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        source: Iterator[tuple[Any, Any]] = self._open()
        return source


def stream(
    files: Any,
    target: Optional[str] = None,
    *,
    format: Optional[str] = None,
    target_files: Paths = (),
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    n_features: Optional[int] = None,
    rows: int = 50_000,
    max_line_bytes: Optional[int] = None,
    max_columns: Optional[int] = None,
) -> Stream:
    """Read files a block at a time, as the ``dyad`` command reads them, in memory that does not grow with them.

    Parameters
    ----------
    files : path, list of paths, or Arrow batches
        Files of csv, tsv, libsvm or npy, also packed by gzip or zstd, or "-" for standard input; Parquet; or what
        pyarrow can read batch by batch: a RecordBatchReader, a dataset, or anything with ``__arrow_c_stream__``.
    target : str, optional
        The column to be predicted; needed for all that has names.
    format : {'csv', 'tsv', 'libsvm', 'npy', 'parquet'}, optional
        By the names of the files unless given.
    target_files : path or list of paths, optional
        npy: the targets, an array for each file.
    categorical : list of str
        csv and tsv: columns whose numbers are names; a star at the end stands for all that begin so.
    ignore : list of str
        Columns to leave out.
    n_features : int, optional
        libsvm: how many columns blocks have; as many as the first one needs unless given.
    rows : int, default=50_000
        Of a block.
    max_line_bytes : int, optional
        csv, tsv, libsvm: a longer line is an error; 64 MiB unless given.
    max_columns : int, optional
        csv, tsv, npy: more columns are an error; 2**18 unless given.

    Returns
    -------
    Stream
        To loop over: pairs of X (a DataFrame, an Arrow table, sparse rows or an array) and y, for ``partial_fit``.

    Examples
    --------
    >>> import dyad, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("size,colour,price\\n1,red,2\\n3,blue,4\\n5,red,6\\n")
    >>> for X, y in dyad.stream(path, target="price", rows=2):
    ...     print(list(X.columns), y)
    ['size', 'colour'] [2. 4.]
    ['size', 'colour'] [6.]
    """
    require_whole("rows", rows, 1)
    require_whole("n_features", n_features, 1, optional=True)
    require_whole("max_line_bytes", max_line_bytes, 1, optional=True)
    require_whole("max_columns", max_columns, 1, optional=True)
    if isinstance(ignore, str) or isinstance(categorical, str):
        raise ValueError("categorical and ignore must be lists of names.")
    if not _is_paths(files):
        return _arrow_stream(files, target, list(ignore), rows)
    paths = _paths(files)
    if format == "parquet" or (format is None and paths and all(path.endswith(".parquet") for path in paths)):
        _require_target_name(target)
        _require_files(paths)
        return Stream(lambda: _arrow_blocks(_parquet_batches(paths, rows), str(target), list(ignore)))
    settings: _FileSettings = (format, _paths(target_files), list(categorical), rows, max_line_bytes, max_columns)
    _require_files(paths + settings[1])
    _core.open_files(paths, *settings)  # what is wrong with the names is told at once
    return Stream(lambda: _file_blocks(paths, settings, target, list(ignore), n_features))


def _is_paths(files: Any) -> bool:
    return isinstance(files, (str, os.PathLike)) or (
        isinstance(files, (list, tuple)) and all(isinstance(file, (str, os.PathLike)) for file in files)
    )


def _paths(files: Any) -> list[str]:
    return [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(file) for file in files]


def _require_files(paths: list[str]) -> None:
    """Raise FileNotFoundError for the first that is missing."""
    for path in paths:
        if path != "-":
            os.stat(path)


def _require_target_name(target: Optional[str]) -> None:
    if target is None:
        raise ValueError("target must name the column to be predicted.")


def _kept(names: list[str], target: str, ignore: list[str]) -> list[str]:
    for name in [target, *ignore]:
        if name not in names:
            raise ValueError(f"There is no column {name!r}; the columns are {', '.join(names[:20])}.")
    return [name for name in names if name != target and name not in ignore]


def _file_blocks(
    paths: list[str],
    settings: _FileSettings,
    target: Optional[str],
    ignore: list[str],
    n_features: Optional[int],
) -> Iterator[tuple[Any, Any]]:
    _require_files(paths + settings[1])
    reader = _core.open_files(paths, *settings)
    while (block := reader.next()) is not None:
        if block["columns"]:
            _require_target_name(target)
            table = {name: _column(values, categories) for name, values, categories in block["columns"]}
            kept = _kept(list(table), str(target), ignore)
            y = table[str(target)]
            yield pd.DataFrame({name: table[name] for name in kept}), np.asarray(y)
            continue
        if target is not None or ignore:
            raise ValueError("target and ignore name columns of csv, tsv, Parquet and Arrow; these rows have no names.")
        y = block["targets"] if len(block["targets"]) else None
        if len(block["offsets"]) == 0:
            yield block["values"].reshape(block["count"], block["width"]), y
            continue
        n_features = n_features or block["width"]
        if block["width"] > n_features:
            raise ValueError(f"An index is {block['width'] - 1}, beyond n_features={n_features}; pass n_features.")
        entries = (block["values"], block["indices"], block["offsets"])
        yield sp.csr_matrix(entries, shape=(block["count"], n_features)), y


def _column(values: Any, categories: Optional[list[str]]) -> Any:
    return values if categories is None else pd.Categorical.from_codes(values, categories=categories)


def _parquet_batches(paths: list[str], rows: int) -> Iterator[Any]:
    import pyarrow.parquet as parquet

    for path in paths:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=rows)


def _arrow_stream(source: Any, target: Optional[str], ignore: list[str], rows: int) -> Stream:
    import pyarrow as pa

    _require_target_name(target)
    if hasattr(source, "to_batches"):  # tables and datasets, which can be read again
        return Stream(lambda: _arrow_blocks(iter(source.to_batches()), str(target), ignore))
    if not isinstance(source, pa.RecordBatchReader) and hasattr(source, "__arrow_c_stream__"):
        return Stream(
            lambda: _arrow_blocks(iter(pa.RecordBatchReader.from_stream(source)), str(target), ignore)
        )
    if not isinstance(source, Iterable):
        raise ValueError(f"files must be paths or Arrow batches, got {type(source).__name__}.")
    return Stream(lambda: _arrow_blocks(iter(source), str(target), ignore))


def _arrow_blocks(batches: Iterator[Any], target: str, ignore: list[str]) -> Iterator[tuple[Any, Any]]:
    import pyarrow as pa

    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise ValueError(f"files must be paths or Arrow batches, got {type(batch).__name__}.")
        if batch.num_rows == 0:
            continue
        table = pa.Table.from_batches([batch])
        kept = _kept(table.schema.names, target, ignore)
        yield table.select(kept), table.column(target).to_numpy()
