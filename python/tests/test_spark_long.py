"""dyad.spark with faults, invalid rows, cross-validation and streams. Run by `make check`."""

import os
import pathlib
import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse
from spark_cluster import frame_of, spark  # noqa: F401

from test_distributed import dense_partitions, fit, make_rows

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data(spark):
    X, y = make_rows(count=4000, d=6, noise=0.2)
    frame = frame_of(spark, X, y, partitions=4).cache()
    frame.count()
    return X, y, frame


def executors():
    """Return the process ids of Spark's executors on this machine."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def test_moment_equals_single_process(data):
    from dyad.spark import FactorizationRegressor

    X, y, frame = data
    model = FactorizationRegressor(rank=3, solver="moment", sampleRows=1000).fit(frame)
    one, _ = fit(dense_partitions(X, y, 1), "moment")
    np.testing.assert_allclose(model.toLocal().predict(X), one.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="stdCol"):
        model.copy({model.stdCol: "std"}).transform(frame)


def test_fit_does_not_depend_on_lost_executor(data):
    from dyad.spark import FactorizationRegressor

    X, y, frame = data
    estimator = FactorizationRegressor(rank=3, solver="newton", sampleRows=1000)
    before = estimator.fit(frame)
    alive = executors()
    assert len(alive) == 2
    killed = threading.Timer(2.0, lambda: os.kill(alive[0], signal.SIGKILL))
    killed.start()
    after = estimator.fit(frame)
    killed.join()
    deadline = time.time() + 30
    while alive[0] in executors() and time.time() < deadline:
        time.sleep(0.2)
    assert alive[0] not in executors()
    np.testing.assert_allclose(after.toLocal().predict(X), before.toLocal().predict(X), atol=1e-9)


def test_mixed_vectors_equal_sparse_vectors(spark):
    from pyspark.ml.linalg import DenseVector, SparseVector

    from dyad.spark import FactorizationRegressor

    random = np.random.default_rng(3)
    X = sparse.random(3000, 40, 0.1, "csr", random_state=random, data_rvs=random.standard_normal)
    a = random.normal(size=40)
    y = 1 + X @ random.normal(size=40) + (X @ a) ** 2 + 0.1 * random.normal(size=3000)
    estimator = FactorizationRegressor(rank=2, solver="newton", sampleRows=1000, diagonal="tied")
    of_sparse = estimator.fit(frame_of(spark, X, y)).toLocal().predict(X)
    dense = X.toarray()
    mixed = [
        (DenseVector(dense[i]) if i % 2 else SparseVector(40, X.indices[a:b], X.data[a:b]), float(y[i]))
        for i, (a, b) in enumerate(zip(X.indptr, X.indptr[1:]))
    ]
    of_mixed = estimator.fit(spark.createDataFrame(mixed, ["features", "label"]).repartition(3)).toLocal().predict(X)
    np.testing.assert_allclose(of_mixed, of_sparse, atol=1e-9)
    assert np.sqrt(np.mean((of_sparse - y) ** 2)) < 0.2


def test_classifier_works_in_cross_validator(spark):
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from dyad.spark import FactorizationClassificationModel, FactorizationClassifier

    random = np.random.default_rng(4)
    X = random.normal(size=(2000, 4))
    y = (random.random(2000) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))).astype(float)
    frame = frame_of(spark, X, y, importance=random.random(2000))
    estimator = FactorizationClassifier(weightCol="importance", sampleRows=500, solver="kalman", stdCol="std")
    grid = ParamGridBuilder().addGrid(estimator.rank, [1, 2]).build()
    found = CrossValidator(
        estimator=estimator, estimatorParamMaps=grid, evaluator=BinaryClassificationEvaluator(), numFolds=2
    ).fit(frame)
    assert max(found.avgMetrics) > 0.75
    assert isinstance(found.bestModel, FactorizationClassificationModel)
    out = found.bestModel.transform(frame)
    found_rows = out.select("probability", "rawPrediction", "prediction", "std").collect()
    p, raw, predicted, deviations = (np.array(column) for column in zip(*((r[0][1], r[1][1], r[2], r[3]) for r in found_rows)))
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-raw)), atol=1e-9)
    np.testing.assert_array_equal(predicted, (p > 0.5).astype(float))
    assert (deviations > 0).all()


def test_invalid_rows_raise_value_error_with_column(spark, data):
    from pyspark.ml.linalg import DenseVector, VectorUDT
    from pyspark.sql import functions as F
    from pyspark.sql.types import DoubleType, StructField, StructType

    from dyad.spark import FactorizationClassifier, FactorizationRegressor

    *_, frame = data
    schema = StructType([StructField("features", VectorUDT()), StructField("label", DoubleType())])

    def of(*pairs):
        return spark.createDataFrame([(None if x is None else DenseVector(x), y) for x, y in pairs], schema)

    good = [([1.0, 2.0], 1.0), ([2.0, 1.0], 0.0)]
    for estimator, wrong, message in [
        (FactorizationRegressor(), of(*good, (None, 1.0)), "'features'.*null"),
        (FactorizationRegressor(), of(*good, ([1.0, 2.0], None)), "'label'.*null"),
        (FactorizationRegressor(), of(*good, ([1.0, 2.0], float("nan"))), "'label'.*NaN"),
        (FactorizationRegressor(), of(*good, ([1.0, float("inf")], 1.0)), "'features'.*infinity"),
        (FactorizationRegressor(), of(*good, ([1.0], 1.0)), "'features'.*2 and 1|'features'.*1 and 2"),
        (FactorizationRegressor(weightCol="w"), of(*good).withColumn("w", F.lit(-1.0)), "'w'.*weight"),
        (FactorizationRegressor(weightCol="w"), of(*good).withColumn("w", F.lit(0.0)), "row"),
        (FactorizationRegressor(), of(*good).where("label > 5"), "row"),
        (FactorizationClassifier(), of(*good, ([1.0, 2.0], 0.5)), "'label'.*integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimator.fit(wrong)
    model = FactorizationRegressor(rank=1, sampleRows=1000, solver="kalman").fit(frame)
    with pytest.raises(Exception, match="'features'.*2.*6"):
        model.transform(of(*good)).collect()


def test_stream_learner_learns_each_batch_once_after_restart(spark, tmp_path):
    from dyad.spark import FactorizationRegressor, StreamLearner

    X, y = make_rows(count=6000, d=6, noise=0.2)
    source, models, checkpoint = (tmp_path / name for name in ("source", "models", "checkpoint"))

    def deliver(batch):
        rows = slice(1000 * batch, 1000 * (batch + 1))
        frame_of(spark, X[rows], y[rows]).coalesce(1).write.mode("append").parquet(str(source))

    def learn_all(learner):
        frame = spark.readStream.schema(frame_of(spark, X[:2], y[:2]).schema)
        stream = frame.option("maxFilesPerTrigger", 1).parquet(str(source))
        query = stream.writeStream.foreachBatch(learner).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()

    estimator = FactorizationRegressor(rank=3)
    for batch in range(3):
        deliver(batch)
    learner = StreamLearner(estimator, models)
    with pytest.raises(ValueError, match="models.*batch"):
        learner.model()
    learn_all(learner)
    assert learner.last_batch == 2
    # The query ended after the model was written and before its commit log was written. It delivers the batch again.
    (checkpoint / "commits" / "2").unlink()
    (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    before = StreamLearner(estimator, models).model().toBytes()
    learn_all(StreamLearner(estimator, models))
    assert StreamLearner(estimator, models).model().toBytes() == before
    # The query ended before the model was written. Training continues from the model of the previous batch.
    (models / "batch-2.dyad").unlink()
    (checkpoint / "commits" / "2").unlink()
    (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    learn_all(StreamLearner(estimator, models))
    assert StreamLearner(estimator, models).model().toBytes() == before
    for batch in range(3, 6):
        deliver(batch)
    learn_all(StreamLearner(estimator, models))
    model = StreamLearner(estimator, models).model()
    assert np.sqrt(np.mean((model.toLocal().predict(X) - y) ** 2)) < 0.25
    assert len(list(models.iterdir())) == StreamLearner.max_models
    with pytest.raises(ValueError, match="batch 1 .*batch 5"):
        StreamLearner(estimator, models)(frame_of(spark, X[:9], y[:9]), 1)
    with pytest.raises(ValueError, match="3.*6"):
        StreamLearner(estimator, models)(frame_of(spark, X[:9, :3], y[:9]), 6)
    StreamLearner(estimator, models)(frame_of(spark, X[:9], y[:9]).where("label > 1e9"), 6)
    assert StreamLearner(estimator, models).model().toBytes() == model.toBytes()
    StreamLearner(estimator, models)(frame_of(spark, sparse.csr_matrix(X[:900]), y[:900]), 7)  # another layout
    with pytest.raises(ValueError, match="solver"):
        StreamLearner(FactorizationRegressor(solver="newton"), models)
