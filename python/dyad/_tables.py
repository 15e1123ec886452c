"""Tables of pandas, and of all libraries that export Arrow streams (polars, pyarrow, duckdb), as columns."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Optional

from . import _columns, _core
from ._columns import Column

# Conversion of the tables of other libraries to supported ones, by top-level package.
_CONVERSIONS = {
    "cudf": "X.to_pandas()",
    "ibis": "X.to_pyarrow()",
    "pyspark": "X.toPandas(), or use an estimator of dyad.spark",
    "vaex": "X.to_arrow_table()",
}


@dataclasses.dataclass
class Table:
    """Named columns of the same length.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    columns : list of Column
        Values of the columns.
    count : int
        Number of rows.
    header : object
        Object with the column names, from which scikit-learn validates feature names.
    """

    names: list[str]
    columns: list[Column]
    count: int
    header: Any

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.count, len(self.names)

    def to_array(self) -> Any:
        """Return the values as an array with one column for each column. Raise ValueError unless they are numbers."""
        import numpy as np

        for name, column in zip(self.names, self.columns):
            if column.categories is not None or column.is_date:
                raise ValueError(
                    f"Column {name!r} of X must contain numbers, because the model was fitted to rows without categories."
                )
        return np.column_stack([column.values for column in self.columns]) if self.columns else np.empty((self.count, 0))


def concatenate(tables: list[Table]) -> Table:
    """Return the rows of several tables with the same columns."""
    columns = [_columns.concatenate(list(parts)) for parts in zip(*(table.columns for table in tables))]
    return Table(tables[0].names, columns, sum(len(table) for table in tables), tables[0].header)


def _is_pandas(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def is_dask(X: Any) -> bool:
    """Return whether X is a DataFrame of dask."""
    return type(X).__module__.startswith("dask.") and hasattr(X, "npartitions") and hasattr(X, "columns")


def as_table(X: Any) -> Any:
    """Convert a table of any supported library to a `Table`; return arrays and sparse matrices unchanged.

    Raises
    ------
    TypeError
        If X is a table that is not supported. The message states the conversion.
    ValueError
        If the column names are not unique, or the type of a column is not supported.
    """
    if isinstance(X, Table):
        return X
    if _is_pandas(X):
        names = [str(name) for name in X.columns]
        _check_unique(names)
        columns = [_columns.convert_series(name, X.iloc[:, index]) for index, name in enumerate(names)]
        return Table(names, columns, len(X), X.iloc[:0])
    if is_dask(X):
        return concatenate([as_table(part.compute()) for part in X.partitions])
    if type(X).__module__.startswith("polars.") and hasattr(X, "collect"):
        X = X.collect()
    table = _read_arrow(X)
    if table is None:
        _check_supported(X)
    return X if table is None else table


def read_matrix(estimator: Any, X: Any, reset: bool) -> Any:
    """Validate X with scikit-learn. Return an array of numbers, or a CSR matrix."""
    import numpy as np
    from sklearn.utils.validation import check_array, validate_data

    table = as_table(X)
    if isinstance(table, Table):
        validate_data(estimator, table.header, reset=reset, skip_check_array=True)
        return check_array(table.to_array(), input_name="X", estimator=estimator)
    return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])


def _check_unique(names: list[str]) -> None:
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"X must have unique column names; {', '.join(map(repr, repeated))} occur more than once.")


def _read_arrow(X: Any) -> Optional[Table]:
    """Read a table through the Arrow PyCapsule interface. Return None if X has no such interface or is no table."""
    export = getattr(X, "__arrow_c_stream__", None)
    if not callable(export) or type(X).__name__ == "RecordBatchReader":  # a reader has no rows after it is read
        return None
    content = _core.read_arrow_stream(export())
    if content is None:
        return None
    count, columns = content
    names = [name for name, *_ in columns]
    _check_unique(names)
    import pandas as pd

    return Table(names, [_columns.convert_arrow(*column) for column in columns], count, pd.DataFrame(columns=names))


def _check_supported(X: Any) -> None:
    """Raise TypeError for tables of other libraries. The message states the conversion."""
    package = type(X).__module__.split(".")[0]
    if package in _CONVERSIONS:
        conversion = _CONVERSIONS[package]
    elif package == "pyarrow":
        conversion = "a pyarrow.Table, such as reader.read_all() or dataset.to_table()"
    elif package != "pandas" and (
        (hasattr(X, "columns") and hasattr(X, "dtypes"))
        or any(hasattr(X, name) for name in ("__dataframe__", "__arrow_c_stream__"))
    ):
        conversion = "a pandas.DataFrame or a pyarrow.Table"
    else:
        return
    raise TypeError(
        f"X is a {type(X).__module__}.{type(X).__qualname__}, which is not supported; pass {conversion} (supported: NumPy "
        "array, SciPy sparse matrix, pandas.DataFrame, polars.DataFrame, pyarrow.Table, and other tables with the method "
        "__arrow_c_stream__)."
    )
