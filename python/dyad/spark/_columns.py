"""Checks of DataFrame columns that do not start a Spark job."""

from __future__ import annotations

from typing import Any

from pyspark.ml.linalg import VectorUDT
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, NumericType


def check_vector_column(frame: DataFrame, column: str) -> None:
    """Raise ValueError unless the column exists and contains vectors."""
    _check_column_exists(frame, column, "featuresCol")
    data_type = frame.schema[column].dataType
    if not isinstance(data_type, VectorUDT):
        raise ValueError(
            f"Column '{column}' (featuresCol) must contain vectors, got {data_type.simpleString()}; create vectors "
            "with VectorAssembler."
        )


def check_numeric_column(frame: DataFrame, column: str, param: str, hint: str = "") -> None:
    """Raise ValueError unless the column exists and contains numbers. ``hint`` is appended to the message."""
    _check_column_exists(frame, column, param)
    data_type: DataType = frame.schema[column].dataType
    if not isinstance(data_type, (NumericType, BooleanType)):
        raise ValueError(f"Column '{column}' ({param}) must contain numbers, got {data_type.simpleString()}{hint}.")


def _check_column_exists(frame: DataFrame, column: str, param: str) -> None:
    if column not in frame.columns:
        raise ValueError(f"{param}: there is no column '{column}'; the columns are {', '.join(frame.columns)}.")


def vector_structs(column: str) -> Any:
    """Return a column of vectors as structs, which Arrow supports."""
    return F.unwrap_udt(F.col(column))
