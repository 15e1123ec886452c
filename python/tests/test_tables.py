"""Numeric, categorical and unsupported columns of pandas and Arrow tables."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dyad import FactorizationRegressor


def numeric(count, seed=0):
    random = np.random.default_rng(seed)
    a, b = random.integers(-40, 40, size=count) / 8, random.integers(-40, 40, size=count) / 8
    return a, b, a * b + a


FORMS = {
    "float": lambda values: [float(value) for value in values],
    "decimal": lambda values: [decimal.Decimal(float(value)) for value in values],
    "fraction": lambda values: [fractions.Fraction(float(value)) for value in values],
    "numpy": lambda values: [np.float32(value) for value in values],
    "mixture of numbers": lambda values: [int(v) if v == int(v) else decimal.Decimal(float(v)) for v in values],
}


@pytest.mark.parametrize("form", FORMS)
def test_object_columns_of_numbers_are_numeric(form):
    a, b, y = numeric(300)
    model = FactorizationRegressor(rank=2).fit(pd.DataFrame({"a": a, "b": pd.Series(FORMS[form](b), dtype=object)}), y)
    fresh = numeric(100, seed=1)
    frame = pd.DataFrame({"a": fresh[0], "b": pd.Series(FORMS[form](fresh[1]), dtype=object)})
    assert model.score(frame, fresh[2]) > 0.999
    np.testing.assert_array_equal(model.predict(frame), model.predict(pd.DataFrame({"a": fresh[0], "b": fresh[1]})))


def test_object_columns_support_missing_values():
    a, b, y = numeric(300)
    for gap in (None, np.nan, pd.NA, decimal.Decimal("NaN")):
        partial = pd.Series(b.tolist(), dtype=object)
        partial[::10] = gap
        expected = pd.to_numeric(pd.Series(np.where(np.arange(300) % 10 == 0, np.nan, b)))
        model = FactorizationRegressor(rank=2).fit(pd.DataFrame({"a": a, "b": expected}), y)
        np.testing.assert_array_equal(
            model.predict(pd.DataFrame({"a": a, "b": partial})), model.predict(pd.DataFrame({"a": a, "b": expected}))
        )


def test_unsupported_object_columns_raise():
    y = np.arange(4.0)

    def check_rejected(values, kind, match):
        frame = pd.DataFrame({"good": y, "bad": pd.Series(values, dtype=object)})
        with pytest.raises(kind, match=match):
            FactorizationRegressor(rank=1).fit(frame, y)

    check_rejected([1, 2, "three", 4], TypeError, "'bad'.*'three'")
    check_rejected(["1", "2", 3.5, None], TypeError, "'bad'")
    check_rejected([datetime.date(2026, 1, 1)] * 4, ValueError, "'bad'.*date")
    check_rejected([[1], [2], [3], [4]], ValueError, "'bad'.*list")
    check_rejected([1j, 2j, 3j, 4j], ValueError, "'bad'.*complex")
    check_rejected([10**400, 1, 2, 3], ValueError, "'bad'.*float64")


def test_object_columns_of_strings_and_booleans_are_supported():
    y = np.arange(40.0) % 2
    text = pd.DataFrame({"a": pd.Series(["x", "z"] * 20, dtype=object)})
    assert FactorizationRegressor(rank=1).fit(text, y).score(text, y) > 0.99
    flags = pd.DataFrame({"a": pd.Series([False, True] * 20, dtype=object)})
    model = FactorizationRegressor(rank=1).fit(flags.astype(bool), y)
    np.testing.assert_array_equal(model.predict(flags), model.predict(flags.astype(bool)))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e100])
@pytest.mark.parametrize("row", [0, 7])
def test_infinite_value_error_names_column_and_row(value, row):
    a, b, y = numeric(50)
    model = FactorizationRegressor(rank=1).fit(pd.DataFrame({"a": a, "size of b": b}), y)
    b[row] = value
    frame = pd.DataFrame({"a": a, "size of b": b})
    for call in (lambda: model.predict(frame), lambda: FactorizationRegressor().fit(frame, y)):
        with pytest.raises(ValueError, match=rf"'size of b', row {row}\b"):
            call()
        with pytest.raises(ValueError, match=rf"'size of b', row {row}\b"):
            FactorizationRegressor().fit(pa.Table.from_pandas(frame), y)
    if np.isfinite(value):
        model = FactorizationRegressor(rank=1).fit(np.column_stack([a, a]), y)
        with pytest.raises(ValueError, match=rf"X\[{row}, 1\]"):
            model.predict(np.column_stack([a, b]))


def arrow(column, **more):
    return pa.table({"a": np.arange(60) / 60, "b": column, **more})


def fitted_and_predicted(column, y):
    table = arrow(column)
    model = FactorizationRegressor(rank=2).fit(table, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    batch = table.combine_chunks().to_batches()[0]
    np.testing.assert_array_equal(model.predict(batch), model.predict(table))
    return model.predict(table)


WORDS = ["x", "z", None, "y"] * 15
TARGETS = np.arange(60) % 4 * 1.0


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int64()])
def test_arrow_dictionaries_support_all_index_types(index):
    expected = fitted_and_predicted(pa.array(WORDS), TARGETS)
    encoded = pa.array(WORDS).dictionary_encode().cast(pa.dictionary(index, pa.string()))
    np.testing.assert_array_equal(fitted_and_predicted(encoded, TARGETS), expected)


@pytest.mark.parametrize("form", ["large_string", "string_view", "chunks", "null in dictionary", "sliced", "pandas"])
def test_arrow_strings_equal_dictionaries(form):
    expected = fitted_and_predicted(pa.array(WORDS), TARGETS)
    words = pa.array(WORDS)
    if form == "chunks":  # with different dictionaries
        words = pa.chunked_array([pa.array(WORDS[:7]).dictionary_encode(), pa.array(WORDS[7:]).dictionary_encode()])
    elif form == "null in dictionary":
        codes = {"x": 0, "z": 1, "y": 2, None: 3}
        words = pa.DictionaryArray.from_arrays([codes[word] for word in WORDS], pa.array(["x", "z", "y", None]))
    elif form == "sliced":
        words = pa.array(["w", *WORDS, "w"]).slice(1, 60)
    elif form == "pandas":
        frame = pd.DataFrame({"a": np.arange(60) / 60, "b": pd.Series(WORDS, dtype=pd.ArrowDtype(pa.string()))})
        np.testing.assert_array_equal(FactorizationRegressor(rank=2).fit(frame, TARGETS).predict(frame), expected)
        return
    else:
        words = words.cast(getattr(pa, form)())
    np.testing.assert_array_equal(fitted_and_predicted(words, TARGETS), expected)


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "int8", "uint64", "decimal128", "decimal256", "bool", "pandas decimal", "pandas Int64"]
)
def test_arrow_number_types_equal_float64(kind):
    values = [None if i % 10 == 0 else i % 2 for i in range(60)]
    expected = fitted_and_predicted(pa.array(values, pa.float64()), TARGETS)
    if kind.startswith("pandas"):
        dtype = pd.ArrowDtype(pa.decimal128(10, 2)) if "decimal" in kind else "Int64"
        column = pd.Series([None if v is None else decimal.Decimal(v) for v in values] if "decimal" in kind else values, dtype=dtype)
        frame = pd.DataFrame({"a": np.arange(60) / 60, "b": column})
        np.testing.assert_array_equal(FactorizationRegressor(rank=2).fit(frame, TARGETS).predict(frame), expected)
        return
    types = {"decimal128": pa.decimal128(10, 2), "decimal256": pa.decimal256(40, 2), "bool": pa.bool_(), "float16": pa.float16()}
    if kind == "float16":
        column = pa.array([None if v is None else np.float16(v) for v in values], pa.float16())
    elif kind.startswith("decimal"):
        column = pa.array([None if v is None else decimal.Decimal(v) for v in values], types[kind])
    elif kind == "bool":
        column = pa.array([None if v is None else bool(v) for v in values], pa.bool_())
    else:
        column = pa.array(values, getattr(pa, kind)())
    np.testing.assert_array_equal(fitted_and_predicted(column, TARGETS), expected)


def test_arrow_large_integers_are_supported():
    values = np.arange(60) + 2**60
    table = arrow(pa.array([None, *values[1:].tolist()], pa.int64()))
    assert np.isfinite(FactorizationRegressor(rank=1).fit(table, TARGETS).predict(table)).all()


def test_columns_without_values_keep_type_of_model():
    empty = pa.nulls(60)
    assert np.isfinite(fitted_and_predicted(empty, TARGETS)).all()
    for column in (pa.array(WORDS), pa.array(np.arange(60.0))):
        model = FactorizationRegressor(rank=2).fit(arrow(column), TARGETS)
        missing = pa.array([None] * 60, column.type)
        np.testing.assert_array_equal(model.predict(arrow(empty)), model.predict(arrow(missing)))
        frame = arrow(empty).to_pandas()
        for dtype in (object, float):
            np.testing.assert_array_equal(model.predict(frame.astype({"b": dtype})), model.predict(arrow(missing)))


def test_record_batches_have_feature_names():
    batch = arrow(pa.array(WORDS)).combine_chunks().to_batches()[0]
    model = FactorizationRegressor(rank=2).fit(batch, TARGETS)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(batch.rename_columns(["a", "c"]))
    array_model = FactorizationRegressor(rank=1).fit(np.column_stack([np.arange(60.0)] * 2), TARGETS)
    numbers = pa.table({"a": np.arange(60.0), "b": np.arange(60.0)})
    with pytest.warns(UserWarning, match="feature names"):
        array_model.predict(numbers)


@pytest.mark.parametrize("column", [pa.array([b"x"] * 60), pa.array([datetime.date(2026, 1, 1)] * 60), pa.array([[1]] * 60)])
def test_unsupported_arrow_types_raise_value_error(column):
    with pytest.raises(ValueError, match="'b'"):
        FactorizationRegressor().fit(arrow(column), TARGETS)


def stand_in(module, name, **attributes):
    """Return an object with the module, name and attributes of a table of another library."""
    return type(name, (), {"__module__": module, **attributes})()


@pytest.mark.parametrize(
    "table, conversion",
    [
        (stand_in("cudf.core.dataframe", "DataFrame", columns=["a"], dtypes=[]), "to_pandas"),
        (pa.chunked_array([[1.0, 2.0]]), "pyarrow.Table"),
        (stand_in("pyspark.sql.classic.dataframe", "DataFrame", columns=["a"], dtypes=[]), "toPandas"),
        (stand_in("frames", "Frame", columns=["a"], dtypes=[]), "pandas.DataFrame"),
        (stand_in("frames", "Exporter", __arrow_c_stream__=None), "pyarrow.Table"),
        (pa.array([1.0, 2.0]), "pyarrow.Table"),
        (pa.RecordBatchReader.from_batches(pa.schema([]), []), "read_all"),
    ],
)
def test_unsupported_tables_error_names_conversion(table, conversion):
    model = FactorizationRegressor(rank=1).fit(np.arange(20.0).reshape(10, 2), np.arange(10.0))
    for call in (lambda: model.predict(table), lambda: FactorizationRegressor().fit(table, [1.0])):
        with pytest.raises(TypeError, match=conversion) as raised:
            call()
        assert type(table).__name__ in str(raised.value)


def test_empty_frames_raise_value_error():
    with pytest.raises(ValueError, match="0 feature"):
        FactorizationRegressor().fit(pd.DataFrame(index=range(3)), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="0 sample"):
        FactorizationRegressor().fit(pd.DataFrame({"a": []}), [])


def test_pandas_sparse_columns_equal_dense():
    a, b, y = numeric(60)
    dense = pd.DataFrame({"a": a, "b": np.where(b > 0, b, 0)})
    sparse = dense.astype({"b": pd.SparseDtype(float, 0)})
    expected = FactorizationRegressor(rank=1).fit(dense, y).predict(dense)
    np.testing.assert_array_equal(FactorizationRegressor(rank=1).fit(sparse, y).predict(sparse), expected)
