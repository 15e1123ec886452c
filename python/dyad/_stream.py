"""Iteration over the rows of files and Arrow batches in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np
import pandas as pd
import scipy.sparse as sp

from . import _core
from ._checks import check_integer

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
# Arguments of _core.open_files after paths: format, target_paths, categorical, rows, max_line_bytes, max_columns.
_OpenArguments = tuple[Optional[str], list[str], list[str], int, Optional[int], Optional[int]]


class Stream:
    """Iterable over blocks of rows, returned by `stream`.

    Each block is a tuple ``(X, y)``: X is a DataFrame (csv and tsv), an Arrow table (Parquet and Arrow), a sparse
    matrix (libsvm) or an array (npy), and y is an array of targets, or None for npy files without target files.

    Notes
    -----
    Every iteration reads the files, tables or datasets from the start. Readers and iterators of Arrow batches, and
    standard input, can be read once.
    """

    def __init__(self, open_source: Callable[[], Iterator[tuple[Any, Any]]]) -> None:
        self._open = open_source

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Open the source and iterate over its blocks."""
        return self._open()


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
    r"""Read files in blocks of rows, in memory that does not depend on their size.

    Parameters
    ----------
    files : path, list of paths, or Arrow batches
        Files in the formats of the ``dyad`` command (csv, tsv, libsvm, npy, also compressed by gzip or zstd), "-" for
        standard input, or Parquet files. Arrow data: a RecordBatchReader, a table, a dataset, an iterable of record
        batches, or an object with ``__arrow_c_stream__``.
    target : str, optional
        Name of the target column. Required for csv, tsv, Parquet and Arrow; not allowed for libsvm and npy.
    format : {'csv', 'tsv', 'libsvm', 'npy', 'parquet'}, optional
        Format of the files. By default, it is determined by their extensions.
    target_files : path or list of paths, optional
        npy: one file of targets for each file of rows.
    categorical : list of str
        csv and tsv: columns that are categorical although they contain numbers. A name that ends with ``*`` matches all
        columns with this prefix.
    ignore : list of str
        Columns that are not read.
    n_features : int, optional
        libsvm: number of columns of each block. By default, it is the largest index of the first block plus 1.
    rows : int, default=50_000
        Number of rows in a block; the last block may have fewer. Arrow batches keep their size.
    max_line_bytes : int, optional
        csv, tsv, libsvm: largest number of bytes in a line; default 2**26.
    max_columns : int, optional
        csv, tsv, npy: largest number of columns; default 2**18.

    Returns
    -------
    Stream
        Iterable over tuples ``(X, y)`` for ``partial_fit``.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If an argument is invalid, a column does not exist, or the format cannot be determined. The content of files is
        checked during the iteration.
    DataError
        During the iteration, if a row is invalid or exceeds a limit.

    See Also
    --------
    FactorizationRegressor.partial_fit : Train on a block of rows.

    Examples
    --------
    >>> import dyad, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("size,color,price\n1,red,2\n3,blue,4\n5,red,6\n")
    >>> for X, y in dyad.stream(path, target="price", rows=2):
    ...     print(list(X.columns), y)
    ['size', 'color'] [2. 4.]
    ['size', 'color'] [6.]
    """
    check_integer("rows", rows, 1)
    check_integer("n_features", n_features, 1, optional=True)
    check_integer("max_line_bytes", max_line_bytes, 1, optional=True)
    check_integer("max_columns", max_columns, 1, optional=True)
    if isinstance(ignore, str) or isinstance(categorical, str):
        raise ValueError("categorical and ignore must be lists of column names, got a string.")
    if not _are_paths(files):
        return _arrow_stream(files, target, list(ignore), rows)
    paths = _path_list(files)
    if format == "parquet" or (format is None and paths and all(path.endswith(".parquet") for path in paths)):
        _check_target_name(target)
        _check_files_exist(paths)
        return Stream(lambda: _arrow_blocks(_parquet_batches(paths, rows), str(target), list(ignore)))
    arguments: _OpenArguments = (format, _path_list(target_files), list(categorical), rows, max_line_bytes, max_columns)
    _check_files_exist(paths + arguments[1])
    _core.open_files(paths, *arguments)  # raises ValueError if the format cannot be determined
    return Stream(lambda: _file_blocks(paths, arguments, target, list(ignore), n_features))


def _are_paths(files: Any) -> bool:
    return isinstance(files, (str, os.PathLike)) or (
        isinstance(files, (list, tuple)) and all(isinstance(file, (str, os.PathLike)) for file in files)
    )


def _path_list(files: Any) -> list[str]:
    return [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(file) for file in files]


def _check_files_exist(paths: list[str]) -> None:
    """Raise FileNotFoundError for the first file that does not exist."""
    for path in paths:
        if path != "-":
            os.stat(path)


def _check_target_name(target: Optional[str]) -> None:
    if target is None:
        raise ValueError("target must be the name of the target column, got None.")


def _feature_names(names: list[str], target: str, ignore: list[str]) -> list[str]:
    for name in [target, *ignore]:
        if name not in names:
            argument = "target" if name == target else "ignore"
            raise ValueError(f"{argument}: there is no column {name!r}; the columns are {', '.join(names[:20])}.")
    return [name for name in names if name != target and name not in ignore]


def _file_blocks(
    paths: list[str],
    arguments: _OpenArguments,
    target: Optional[str],
    ignore: list[str],
    n_features: Optional[int],
) -> Iterator[tuple[Any, Any]]:
    _check_files_exist(paths + arguments[1])
    reader = _core.open_files(paths, *arguments)
    while (block := reader.next()) is not None:
        if block["columns"]:
            _check_target_name(target)
            table = {name: _column(values, categories) for name, values, categories in block["columns"]}
            features = _feature_names(list(table), str(target), ignore)
            y = table[str(target)]
            yield pd.DataFrame({name: table[name] for name in features}), np.asarray(y)
            continue
        if target is not None or ignore:
            raise ValueError("target and ignore must be omitted for libsvm and npy files, whose columns have no names.")
        y = block["targets"] if len(block["targets"]) else None
        if len(block["offsets"]) == 0:
            yield block["values"].reshape(block["count"], block["width"]), y
            continue
        n_features = n_features or block["width"]
        if block["width"] > n_features:
            raise ValueError(f"n_features must exceed the largest index, {block['width'] - 1}, got {n_features}.")
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

    _check_target_name(target)
    if hasattr(source, "to_batches"):  # tables and datasets, which can be read repeatedly
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
            raise ValueError(f"files must contain pyarrow.RecordBatch objects, got {type(batch).__name__}.")
        if batch.num_rows == 0:
            continue
        table = pa.Table.from_batches([batch])
        features = _feature_names(table.schema.names, target, ignore)
        yield table.select(features), table.column(target).to_numpy()
