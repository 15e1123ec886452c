"""dyad.spark beside Spark ML's own factorization machine on the same cluster and rows: spark_fm.py BUILD.

Two workers of one core each on this machine. Prints the tables of docs/spark.md, and leaves them in BUILD/spark.md.
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

STEPS = (1.0, 0.1, 0.01, 0.001)


def planted(name, centre, spread, rows=200_000, d=10_000, rank=8, entries=10, noise=0.3):
    """A factorization machine as Spark's can learn it: pairs of different features, M of positive sign. Factors lie
    around `centre`."""
    random = np.random.default_rng(1)
    field = d // entries
    columns = (random.integers(0, field, size=(rows, entries)) + field * np.arange(entries)).astype(np.int32)
    values = random.normal(size=(rows, entries))
    w, V = 0.3 * random.normal(size=d), spread * random.normal(size=(d, rank)) + centre
    p = np.einsum("ij,ijk->ik", values, V[columns])
    own = np.einsum("ij,ijk->ik", values**2, V[columns] ** 2)
    y = 1 + np.sum(values * w[columns], 1) + 0.5 * (p**2 - own).sum(1) + noise * random.normal(size=rows)
    X = sp.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, rows * entries + 1, entries)), shape=(rows, d))
    return sets.split(name, X, y, [field] * entries)


def rmse(model, frame):
    from pyspark.sql import functions as F

    found = model.transform(frame).select(F.sqrt(F.avg((F.col("label") - F.col("prediction")) ** 2))).first()[0]
    return float(found) if found is not None else np.inf


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
    timed(FactorizationRegressor(rank=2, solver="kalman", sampleRows=2000), train, test)  # all workers are up
    FMRegressor(factorSize=2, maxIter=2).fit(train)
    lines = [f"### {data.name}", "", "| system | options | test rmse | seconds |", "|---|---|---|---|"]

    def row(name, options, loss, seconds):
        lines.append(f"| {name} | {options} | {loss:.4f} | {seconds:.1f} |")
        print(lines[-1], flush=True)

    theirs = []
    for step in STEPS:
        seconds, loss, _ = timed(FMRegressor(factorSize=8, stepSize=step, seed=1), train, test)
        row("Spark ML", f"stepSize {step:g}", loss, seconds)
        theirs.append((loss if np.isfinite(loss) else np.inf, seconds))
    best, its_seconds = min(theirs)
    one_pass, loss_of_pass, _ = timed(FactorizationRegressor(solver="kalman"), train, test)
    row("dyad", "solver kalman: one pass, as the default begins", loss_of_pass, one_pass)
    seconds, loss, model = timed(FactorizationRegressor(), train, test)
    row("dyad", f"default ({model.summary['origin']}, {model.summary['questions']} jobs)", loss, seconds)
    reached = one_pass if loss_of_pass <= best else seconds
    behind = " (**behind**)" if reached > its_seconds else ""
    verdict = f"Spark ML's best loss is reached in {reached:.1f} s, {its_seconds / reached:.1f} times its speed{behind}; "
    verdict += "the default's loss "
    verdict += f"is {100 * (1 - loss / best):.1f}% less." if loss <= best else f"is {100 * (loss / best - 1):.1f}% more: **behind**."
    lines += ["", verdict, ""]
    print(verdict, flush=True)
    train.unpersist(), test.unpersist()
    return lines


def main(build):
    with tempfile.TemporaryDirectory() as name:
        spark = spark_cluster.start(pathlib.Path(name), batch=10_000)
        chosen = [
            planted("planted, factors around 0: 200,000 rows, 10,000 features", 0.0, 0.25),
            planted("planted, factors with a common part: the same size", 0.15, 0.1),
        ]
        chosen += [data for data in sets.real() if data.name == "MovieTweetings"]
        lines = [line for data in chosen for line in compare(spark, data)]
        spark.stop()
    (build / "spark.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
