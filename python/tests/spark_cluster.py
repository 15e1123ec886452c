"""Spark cluster of two workers on this machine, for tests and benchmarks."""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason="requires pyspark; install it with: pip install dyad-ml[spark]")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("requires Java; install it with: scripts/install-dependencies spark", allow_module_level=True)


def start(folder, batch=2000):
    """Start a session with two executor processes of one core each, on the loopback address."""
    from pyspark.sql import SparkSession

    os.environ.update(
        PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=str(folder), SPARK_LOCAL_DIRS=str(folder)
    )
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path[1:] + [os.environ.get("PYTHONPATH", "")]),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(batch),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("dyad")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def frame_of(spark, X, y, partitions=2, **more):
    """Return the rows of a dense or sparse matrix as a DataFrame of vectors."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.ml.linalg import SparseVector, VectorUDT
    from pyspark.sql.types import DoubleType, StructField, StructType

    if isinstance(X, np.ndarray):
        table = pd.DataFrame({"x": list(X), "label": y, **more})
        frame = spark.createDataFrame(table).withColumn("features", array_to_vector("x")).drop("x")
    else:
        rows = [
            (SparseVector(X.shape[1], X.indices[a:b], X.data[a:b]), float(t))
            for a, b, t in zip(X.indptr, X.indptr[1:], y)
        ]
        schema = StructType([StructField("features", VectorUDT()), StructField("label", DoubleType())])
        frame = spark.createDataFrame(rows, schema)
    return frame.repartition(partitions)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    session = start(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
