"""dyad.spark on a small cluster. Slower tests are in test_spark_long.py."""

import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
from spark_cluster import frame_of, spark  # noqa: F401

from dyad import FactorizationRegressor as Local
from dyad import load
from test_distributed import dense_partitions, fit, make_curves, make_rows


def test_examples_of_the_page_run(spark, tmp_path, monkeypatch):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    batch, stream = re.findall(r"```python\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    X, y = make_rows(count=2000, d=4, noise=0.2)
    frame = frame_of(spark, X, y).withColumnRenamed("label", "rating")
    # Spark resolves relative paths by the folder in which its process started.
    batch = batch.replace('"models/ratings"', repr(str(tmp_path / "models")))
    stream = stream.replace('"checkpoint"', repr(str(tmp_path / "checkpoint")))
    folder = str(tmp_path / "ratings")
    exec(batch, {"train": frame, "test": frame})
    frame.write.parquet(folder)
    names = {"ratings": spark.readStream.schema(frame.schema).parquet(folder), "frame": frame}
    names["ratings"] = names["ratings"].withColumnRenamed("rating", "label")
    code, last = stream.rstrip().rsplit("\n", 1)
    exec(code, names)
    names["query"].processAllAvailable()
    names["query"].stop()
    exec(last, names)


@pytest.fixture(scope="module")
def data(spark):
    X, y = make_rows(count=3000, d=6, noise=0.2)
    frame = frame_of(spark, X, y).cache()
    return X, y, frame


def test_newton_equals_single_process(data):
    from dyad.spark import FactorizationRegressor

    X, y, frame = data
    model = FactorizationRegressor(rank=3, solver="newton", sampleRows=1000).fit(frame)
    one, _ = fit(dense_partitions(X, y, 1), "newton")
    np.testing.assert_allclose(model.toLocal().predict(X), one.predict(X), atol=1e-9)


def test_sums_of_functions_do_not_depend_on_spark_partitions(spark):
    from dyad.spark import FactorizationRegressor

    X, y = make_curves(count=3000)
    frame = frame_of(spark, X, y)
    models = [FactorizationRegressor(sampleRows=1000).fit(frame.repartition(count)).toLocal() for count in (1, 3, 7)]
    expected = models[0].predict(X)
    for model in models[1:]:
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)


def test_kalman_is_accurate_and_saved_model_predicts_identically(spark, data, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    from dyad.spark import FactorizationRegressor

    X, y, frame = data
    estimator = FactorizationRegressor(rank=3, solver="kalman", sampleRows=1000, stdCol="std")
    pipeline = Pipeline(stages=[estimator]).fit(frame)
    model = pipeline.stages[0]
    loss = np.sqrt(np.mean((model.toLocal().predict(X) - y) ** 2))
    one = Local(rank=3, solver="kalman").fit(X, y)
    assert loss < 1.01 * np.sqrt(np.mean((one.predict(X) - y) ** 2))

    pipeline.write().save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    found = loaded.transform(frame).select("features", "prediction", "std").collect()
    vectors = np.array([row[0].toArray() for row in found])
    (file,) = (tmp_path / "pipeline" / "stages").glob("*/model.dyad")
    local = load(file)
    values, deviations = local.predict(vectors, return_std=True)
    np.testing.assert_allclose([row[1] for row in found], values, rtol=1e-12)
    np.testing.assert_allclose([row[2] for row in found], deviations, rtol=1e-12)
    if "DYAD_COMMAND" in os.environ:
        np.save(tmp_path / "x.npy", vectors)
        result = subprocess.run(
            [os.environ["DYAD_COMMAND"], "predict", "-m", file, tmp_path / "x.npy", "--quiet"],
            check=True, capture_output=True, text=True,
        )
        np.testing.assert_allclose(np.array(result.stdout.split(), float), values, rtol=1e-12)


def test_invalid_columns_raise_value_error(spark, data):
    from pyspark.sql import functions as F

    from dyad.spark import FactorizationClassifier, FactorizationRegressor

    *_, frame = data
    for estimator, wrong, message in [
        (FactorizationRegressor(labelCol="price"), frame, "labelCol.*'price'"),
        (FactorizationRegressor(featuresCol="x"), frame, "featuresCol.*'x'"),
        (FactorizationRegressor(), frame.withColumn("label", F.lit("a")), "'label'.*labelCol.*StringIndexer"),
        (FactorizationRegressor(featuresCol="label"), frame, "'label'.*featuresCol.*VectorAssembler"),
        (FactorizationRegressor(weightCol="w"), frame, "weightCol.*'w'"),
        (FactorizationRegressor(solver="magic"), frame, "solver.*'magic'"),
        (FactorizationRegressor(rank=0), frame, "rank.*1.*0"),
        (FactorizationClassifier(solver="moment"), frame, "solver.*'moment'"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimator.fit(wrong)


@pytest.mark.parametrize("sample_rows", [500, 10_000])
def test_several_classes(spark, tmp_path, sample_rows):
    from dyad.spark import FactorizationClassificationModel, FactorizationClassifier

    X, y = make_rows(count=1500, d=4, noise=0.2)
    codes = np.digitize(y, [0, 2]).astype(float)
    frame = frame_of(spark, X, codes)
    estimator = FactorizationClassifier(rank=2, solver="kalman", sampleRows=sample_rows, stdCol="std")
    model = estimator.fit(frame)
    assert (model.numClasses, model.numFeatures) == (3, 4)
    model.write().save(str(tmp_path / "model"))
    loaded = FactorizationClassificationModel.load(str(tmp_path / "model"))
    found = loaded.transform(frame).select("features", "probability", "rawPrediction", "prediction", "std").collect()
    vectors = np.array([row[0].toArray() for row in found])
    local = model.toLocal()
    probabilities, deviations = local.predict_proba(vectors, return_std=True)
    np.testing.assert_allclose([row[1].toArray() for row in found], probabilities, rtol=1e-12)
    np.testing.assert_allclose([row[2].toArray() for row in found], local.decision_function(vectors), rtol=1e-12)
    np.testing.assert_array_equal([row[3] for row in found], probabilities.argmax(axis=1))
    np.testing.assert_allclose([row[4].toArray() for row in found], deviations, rtol=1e-12)
    assert np.mean(probabilities.argmax(axis=1) == np.array(local.predict(vectors), dtype=float)) == 1
    assert np.mean(local.predict(X) == codes) > 0.8
