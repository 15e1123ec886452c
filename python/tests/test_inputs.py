"""Tables of polars, Arrow and dask, categorical columns, identifiers, dates and missing values."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dyad import FactorizationClassifier, FactorizationRegressor, load


def make_frame(count=400, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "color": random.choice(["red", "green", "blue"], size=count),
            "size": random.normal(10, 3, size=count),
            "rooms": random.integers(1, 9, size=count),
            "partial": np.where(random.random(count) < 0.1, np.nan, random.normal(size=count)),
            "garden": random.random(count) < 0.5,
        }
    )
    y = np.where(frame["color"] == "red", 2, -1) * (frame["size"] - 10) + frame["rooms"] + 0.1 * random.normal(size=count)
    return frame, y.to_numpy()


def polars_frame(frame):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({name: pl.Series(name, frame[name].tolist(), nan_to_null=True) for name in frame})


def polars_lazy(frame):
    return polars_frame(frame).lazy()


def arrow_table(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


def arrow_chunks(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.concat_tables([arrow_table(frame[:150]), arrow_table(frame[150:])])


def arrow_batch(frame):
    return arrow_table(frame).combine_chunks().to_batches()[0]


def dask_frame(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


FORMS = [polars_frame, polars_lazy, arrow_table, arrow_chunks, arrow_batch, dask_frame]


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("form", FORMS)
def test_tables_of_all_libraries_give_the_same_model(form, rank):
    frame, y = make_frame()
    expected = FactorizationRegressor(rank=rank, n_jobs=1).fit(frame, y)
    model = FactorizationRegressor(rank=rank, n_jobs=1).fit(form(frame), y)
    assert model._models == expected._models
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.predict(form(frame)), expected.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(form(frame.rename(columns={"size": "length"})))


@pytest.mark.parametrize("dtype", ["Float32", "Int8", "UInt64", "Decimal(10, 2)", "Boolean", "Categorical", "Enum", "Null"])
def test_polars_types(dtype):
    pl = pytest.importorskip("polars")
    numbers = [None if i % 10 == 0 else i % 2 for i in range(60)]
    y = np.arange(60) % 4 * 1.0
    if dtype in ("Categorical", "Enum"):
        words = [None if number is None else "xz"[number] for number in numbers]
        kind = pl.Enum(["unused", "z", "x"]) if dtype == "Enum" else pl.Categorical
        column, expected = pl.Series("b", words, dtype=kind), pd.Series(words, dtype=object)
    elif dtype == "Null":
        column, expected = pl.Series("b", [None] * 60), pd.Series([np.nan] * 60)
    else:
        kind = pl.Decimal(10, 2) if dtype.startswith("Decimal") else getattr(pl, dtype)
        column = pl.Series("b", [v if v is None or dtype != "Boolean" else bool(v) for v in numbers]).cast(kind)
        expected = pd.Series(numbers, dtype=float)
    a = np.arange(60) / 60
    model = FactorizationRegressor(rank=2).fit(pd.DataFrame({"a": a, "b": expected}), y)
    found = FactorizationRegressor(rank=2).fit(pl.DataFrame([pl.Series("a", a), column]), y)
    assert found._models == model._models


def test_other_exporters_of_arrow_streams_are_tables():
    pa = pytest.importorskip("pyarrow")
    frame, y = make_frame(60)

    class Exporter:
        def __arrow_c_stream__(self, requested_schema=None):
            return arrow_table(frame).__arrow_c_stream__(requested_schema)

    model = FactorizationRegressor(rank=1).fit(Exporter(), y)
    np.testing.assert_array_equal(model.predict(Exporter()), model.predict(frame))
    decimals = pa.table({"a": pa.array(np.arange(60)), "d": pa.array(["-12.375", "0.1", "99999999.999"] * 20).cast(pa.decimal128(20, 3))})
    floats = pd.DataFrame({"a": np.arange(60), "d": [-12.375, 0.1, 99999999.999] * 20})
    exact = FactorizationRegressor(rank=1).fit(floats, y)
    assert FactorizationRegressor(rank=1).fit(decimals, y)._models == exact._models


def test_dask_partitions_beyond_max_bytes_are_trained_by_workers():
    dd = pytest.importorskip("dask.dataframe")
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(600, 3)), columns=list("abc"))
    y = X["a"] - 2 * X["b"] * X["c"] + 0.1 * random.normal(size=600)
    parts = dd.from_pandas(X, npartitions=4)
    model = FactorizationRegressor(rank=2, max_bytes=1e4).fit(parts, dd.from_pandas(y, npartitions=4))
    assert model.score(parts, y) > 0.99
    assert model.summary_["rows"] == 600
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.weights()["count"], 600)
    classifier = FactorizationClassifier(rank=2, max_bytes=1e4).fit(parts, np.where(y > 0, "up", "down"))
    assert classifier.score(X, np.where(y > 0, "up", "down")) > 0.9
    for wrong in (X.assign(a="text"), X.assign(a=np.where(X["a"] > 2, np.nan, X["a"]))):
        with pytest.raises(ValueError, match="max_bytes"):
            FactorizationRegressor(rank=2, max_bytes=1e4).fit(dd.from_pandas(wrong, npartitions=4), y)


@pytest.mark.parametrize("declared", [["user", "item"], [0, 1], np.array([True, True, False]), ("user", "item")])
def test_categorical_features_equal_strings(declared):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"user": random.integers(20, size=800), "item": random.integers(15, size=800), "x": random.normal(size=800)})
    factors = random.normal(size=(35, 2))
    y = (factors[frame["user"]] * factors[20 + frame["item"]]).sum(axis=1) + 0.1 * random.normal(size=800)
    texts = frame.astype({"user": str, "item": str})
    expected = FactorizationRegressor(rank=2, n_jobs=1).fit(texts, y)
    model = FactorizationRegressor(rank=2, n_jobs=1, categorical_features=declared).fit(frame, y)
    assert model._models == expected._models
    np.testing.assert_array_equal(model.predict(frame[:9]), expected.predict(texts[:9]))
    if not isinstance(declared[0], str):
        arrays = FactorizationRegressor(rank=2, n_jobs=1, categorical_features=declared).fit(frame.to_numpy(), y)
        np.testing.assert_array_equal(arrays.predict(frame.to_numpy()), model.predict(frame))


@pytest.mark.parametrize("declared", [["height"], [7], [-1], [True], [1.5], "user", [["user"]]])
def test_invalid_categorical_features_raise(declared):
    frame, y = make_frame(60)
    with pytest.raises(ValueError, match="categorical_features"):
        FactorizationRegressor(categorical_features=declared).fit(frame, y)
    with pytest.raises(ValueError, match="categorical_features"):
        FactorizationRegressor(categorical_features=["a"]).fit(np.ones((9, 2)), np.arange(9.0))
    with pytest.raises(ValueError, match="categorical_features"):
        FactorizationRegressor(categorical_features=[0]).fit(sp.eye(9, format="csr"), np.arange(9.0))
    with pytest.raises(ValueError, match="2\\^53"):
        FactorizationRegressor(categorical_features=["a"]).fit(pd.DataFrame({"a": np.arange(9) + 2**60}), np.arange(9.0))


def test_integers_without_smooth_effect_warn():
    random = np.random.default_rng(0)
    user = random.integers(100, size=3000)
    effects = random.normal(size=100)
    y = effects[user] + 0.5 * random.normal(size=3000)
    frame = pd.DataFrame({"user": user, "x": random.normal(size=3000)})
    with pytest.warns(UserWarning, match="'user'"):
        FactorizationRegressor(rank=1, solver="kalman").fit(frame, y)
    with pytest.warns(UserWarning, match="'0'"):
        FactorizationClassifier(rank=1, solver="kalman").fit(user[:, None], y > 0)


def test_integers_with_smooth_or_no_effect_do_not_warn(recwarn):
    random = np.random.default_rng(0)
    day = random.integers(366, size=3000)
    frame = pd.DataFrame({"day": day, "noise": random.integers(100, size=3000), "id": np.arange(3000)})
    y = np.sin(day / 366 * 2 * np.pi) + 0.3 * random.normal(size=3000)
    FactorizationRegressor(rank=1, solver="kalman").fit(frame, y)
    FactorizationRegressor(rank=1, solver="kalman", categorical_features=["noise"]).fit(frame.assign(noise=random.integers(100, size=3000)), y)
    assert not [warning for warning in recwarn if "identifier" in str(warning.message)]


@pytest.mark.parametrize("rank", [None, 2])
def test_missing_values_in_arrays_equal_those_in_frames(rank, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    gaps = np.where(random.random(X.shape) < 0.1, np.nan, X)
    frame = pd.DataFrame(gaps, columns=["0", "1", "2"])
    expected = FactorizationRegressor(rank=rank).fit(frame, y)
    model = FactorizationRegressor(rank=rank).fit(gaps, y)
    assert model._models == expected._models
    np.testing.assert_array_equal(model.predict(gaps), expected.predict(frame))
    np.testing.assert_array_equal(model.predict(X), expected.predict(pd.DataFrame(X, columns=frame.columns)))
    model.save(tmp_path / "model.dyad")
    np.testing.assert_array_equal(load(tmp_path / "model.dyad").predict(gaps), model.predict(gaps))
    complete = FactorizationRegressor(rank=rank).fit(X, y)
    by_frame = FactorizationRegressor(rank=rank).fit(pd.DataFrame(X, columns=frame.columns), y)
    np.testing.assert_allclose(complete.predict(gaps), by_frame.predict(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 3), np.inf))


def make_dates(count=1000):
    random = np.random.default_rng(0)
    minutes = random.integers(3 * 365 * 24 * 60, size=count)
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(minutes, unit="min")
    weekend = np.asarray(when.day_of_week >= 5)
    y = 3 * weekend + np.sin(2 * np.pi * np.asarray(when.hour) / 24) + np.asarray(minutes) / 1e6
    return pd.DataFrame({"when": when, "x": random.normal(size=count)}), y


def test_dates_are_encoded_on_request(tmp_path):
    frame, y = make_dates()
    with pytest.raises(ValueError, match="date_encoding='calendar'"):
        FactorizationRegressor().fit(frame, y)
    model = FactorizationRegressor(date_encoding="calendar").fit(frame, y)
    assert model.score(frame, y) > 0.95
    assert list(model.feature_names_in_) == ["when", "x"] and model.n_features_in_ == 2
    assert len(model.feature_importances_) == 2 and model.feature_importances_[0] > 0.95
    model.save(tmp_path / "model.dyad")
    restored = load(tmp_path / "model.dyad")
    np.testing.assert_array_equal(restored.predict(frame), model.predict(frame))
    assert list(restored.feature_names_in_) == ["when", "x"]
    gaps = frame.assign(when=frame["when"].where(frame["x"] < 1))
    assert np.isfinite(model.predict(gaps)).all()
    assert np.isfinite(model.predict(frame.assign(when=pd.NaT))).all()
    with pytest.raises(ValueError, match="'when'"):
        model.predict(frame.assign(when=1.0))
    with pytest.raises(ValueError, match="'x'"):
        model.predict(frame.assign(x=frame["when"]))
    with pytest.raises(ValueError, match="date_encoding"):
        FactorizationRegressor(date_encoding="cyclic").fit(frame, y)


@pytest.mark.parametrize("form", ["seconds", "zone", "objects", "arrow", "arrow ns zone", "polars", "polars date"])
def test_dates_of_all_types_are_equal(form):
    frame, y = make_dates(200)
    if form in ("objects", "polars date"):
        frame["when"] = frame["when"].dt.normalize()
    expected = FactorizationRegressor(rank=2, date_encoding="calendar").fit(frame, y)
    zoned = frame.assign(when=frame["when"].dt.tz_localize("Asia/Tokyo"))
    if form == "seconds":
        changed = frame.astype({"when": "datetime64[s]"})
    elif form == "zone":
        changed = zoned
    elif form == "objects":
        changed = frame.assign(when=pd.Series(frame["when"].dt.date, dtype=object))
    elif form == "arrow":
        changed = arrow_table(frame)
    elif form == "arrow ns zone":
        changed = arrow_table(zoned.astype({"when": "datetime64[ns, Asia/Tokyo]"}))
    else:
        pl = pytest.importorskip("polars")
        changed = pl.DataFrame({"when": frame["when"].dt.to_pydatetime().tolist(), "x": frame["x"].to_numpy()})
        if form == "polars date":
            changed = changed.with_columns(pl.col("when").cast(pl.Date))
    found = FactorizationRegressor(rank=2, date_encoding="calendar").fit(changed, y)
    assert found._models == expected._models


def test_import_is_light():
    code = "import sys, dyad; print(*{name.split('.')[0] for name in sys.modules})"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "dyad" in modules
    assert not {"pandas", "polars", "pyarrow", "dask", "matplotlib", "sklearn", "scipy"} & set(modules)


def test_arrays_of_categorical_features_are_saved_and_compared(tmp_path):
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(20, size=400), random.normal(size=400)])
    y = random.normal(size=20)[X[:, 0].astype(int)] + X[:, 1]
    model = FactorizationRegressor(rank=1, categorical_features=np.array([True, False])).partial_fit(X, y).partial_fit(X, y)
    assert model.summary_["all_rows"] == 800
    model.save(tmp_path / "model.dyad")
    restored = load(tmp_path / "model.dyad")
    assert restored.categorical_features == [True, False]
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="categorical_features"):
        model.set_params(categorical_features=[1]).partial_fit(X, y)
