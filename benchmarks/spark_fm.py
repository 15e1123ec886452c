"""Compares dyad.spark with the factorization machine of Spark ML on the same cluster and rows: spark_fm.py BUILD.

The cluster has two workers of one core each on this machine. Prints the tables of docs/spark.md and writes them to BUILD/spark.md.
"""

import pathlib
import sys
import tempfile
import time

import numpy as np
import scipy.sparse as sp

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "python" / "tests"), str(ROOT / "benchmarks" / "peers")]

import sets  # noqa: E402
import spark_cluster  # noqa: E402

STEP_SIZES = (1.0, 0.1, 0.01, 0.001)


def planted(name, center, spread, rows=200_000, d=10_000, rank=8, entries=10, noise=0.3):
    """Rows of a factorization machine within the model class of Spark ML: products of distinct features, weighted by entries of V V'.

    The entries of V are normal with mean `center` and standard deviation `spread`.
    """
    random = np.random.default_rng(1)
    field = d // entries
    columns = (random.integers(0, field, size=(rows, entries)) + field * np.arange(entries)).astype(np.int32)
    values = random.normal(size=(rows, entries))
    w, V = 0.3 * random.normal(size=d), spread * random.normal(size=(d, rank)) + center
    p = np.einsum("ij,ijk->ik", values, V[columns])
    diagonal = np.einsum("ij,ijk->ik", values**2, V[columns] ** 2)
    y = 1 + np.sum(values * w[columns], 1) + 0.5 * (p**2 - diagonal).sum(1) + noise * random.normal(size=rows)
    X = sp.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, rows * entries + 1, entries)), shape=(rows, d))
    return sets.split(name, X, y, [field] * entries)


def rmse(model, frame):
    from pyspark.sql import functions as F

    error = model.transform(frame).select(F.sqrt(F.avg((F.col("label") - F.col("prediction")) ** 2))).first()[0]
    return float(error) if error is not None else np.inf


def timed(estimator, train, test):
    start = time.perf_counter()
    model = estimator.fit(train)
    seconds = time.perf_counter() - start
    return seconds, rmse(model, test), model


def compare(spark, data):
    from pyspark.ml.regression import FMRegressor

    from dyad.spark import FactorizationRegressor

    train = spark_cluster.frame_of(spark, data.X, data.y).cache()
    test = spark_cluster.frame_of(spark, data.X_test, data.y_test).cache()
    train.count(), test.count()
    timed(FactorizationRegressor(rank=2, solver="kalman", sampleRows=2000), train, test)  # warm-up: starts all workers
    FMRegressor(factorSize=2, maxIter=2).fit(train)
    lines = [f"### {data.name}", "", "| system | options | test rmse | seconds |", "|---|---|---|---|"]

    def row(name, options, loss, seconds):
        lines.append(f"| {name} | {options} | {loss:.4f} | {seconds:.1f} |")
        print(lines[-1], flush=True)

    spark_runs = []
    for step_size in STEP_SIZES:
        seconds, loss, _ = timed(FMRegressor(factorSize=8, stepSize=step_size, seed=1), train, test)
        row("Spark ML", f"stepSize {step_size:g}", loss, seconds)
        spark_runs.append((loss if np.isfinite(loss) else np.inf, seconds))
    best, spark_seconds = min(spark_runs)
    one_pass, loss_of_pass, _ = timed(FactorizationRegressor(solver="kalman"), train, test)
    row("dyad", "solver kalman (one pass)", loss_of_pass, one_pass)
    seconds, loss, model = timed(FactorizationRegressor(), train, test)
    row("dyad", f"default ({model.summary['origin']}, {model.summary['requests']} jobs)", loss, seconds)
    reached = one_pass if loss_of_pass <= best else seconds
    slower = " (**slower**)" if reached > spark_seconds else ""
    ratio = spark_seconds / reached
    comparison = f"dyad reaches the best loss of Spark ML in {reached:.1f} s, {ratio:.1f} times as fast{slower}. Its default loss is "
    comparison += f"{100 * (1 - loss / best):.1f}% lower." if loss <= best else f"{100 * (loss / best - 1):.1f}% higher (**worse**)."
    lines += ["", comparison, ""]
    print(comparison, flush=True)
    train.unpersist(), test.unpersist()
    return lines


def main(build):
    with tempfile.TemporaryDirectory() as name:
        spark = spark_cluster.start(pathlib.Path(name), batch=10_000)
        datasets = [
            planted("planted, factors with mean 0: 200,000 rows, 10,000 features", 0.0, 0.25),
            planted("planted, factors with a common mean: 200,000 rows, 10,000 features", 0.15, 0.1),
        ]
        datasets += [data for data in sets.real() if data.name == "MovieTweetings"]
        lines = [line for data in datasets for line in compare(spark, data)]
        spark.stop()
    (build / "spark.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
