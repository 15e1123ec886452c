"""The columns of a DataFrame: what can be known to be wrong with them before any job starts."""

from __future__ import annotations

from typing import Any

from pyspark.ml.linalg import VectorUDT
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, NumericType


def require_vector(frame: DataFrame, column: str) -> None:
    _require_column(frame, column, "featuresCol")
    kind = frame.schema[column].dataType
    if not isinstance(kind, VectorUDT):
        raise ValueError(
            f"The column '{column}' (featuresCol) must hold vectors, got {kind.simpleString()}; "
            "VectorAssembler makes vectors of columns of numbers."
        )


def require_number(frame: DataFrame, column: str, param: str, hint: str = "") -> None:
    _require_column(frame, column, param)
    kind: DataType = frame.schema[column].dataType
    if not isinstance(kind, (NumericType, BooleanType)):
        raise ValueError(f"The column '{column}' ({param}) must hold numbers, got {kind.simpleString()}.{hint}")


def _require_column(frame: DataFrame, column: str, param: str) -> None:
    if column not in frame.columns:
        raise ValueError(f"There is no column '{column}' ({param}); there are {', '.join(frame.columns)}.")


def vectors(column: str) -> Any:
    """A column of vectors as Arrow can carry it."""
    return F.unwrap_udt(F.col(column))
