"""Rates of distributed training on one core, and a model of its time on a cluster: distributed_rates.py prints the tables of docs/spark.md."""

import math
import statistics
import time

import numpy as np
from safetensors.numpy import load

from dyad import _core, _distributed

ROWS, D, ENTRIES, RANK = 200_000, 10_000, 10, 8  # ENTRIES: non-zeros per row
MEASURED_REQUESTS = 5  # the median is over the last requests of each type
BLOCK_ROWS = 10_000
PASS, GRADIENT, CURVATURE_PRODUCT = 1, 5, 6  # values of Request::Type in src/distributed/request.h
REQUEST_NAMES = {PASS: "one pass", GRADIENT: "gradient of Gauss-Newton", CURVATURE_PRODUCT: "product with J'HJ"}
# Assumptions of the cluster model.
CLUSTER_ROWS, CLUSTER_D = 1e9, 1e7
BYTES_PER_SECOND = 1.25e9  # network of each machine, 10 Gbit/s
JOB_SECONDS = 0.2  # scheduling time of a Spark job
TREE_WIDTH = 8  # of the aggregation of responses
PRODUCTS_PER_STEP = 6  # of Gauss-Newton


def generate_blocks():
    """Return blocks of sparse rows with a linear target."""
    random = np.random.default_rng(1)
    field = D // ENTRIES
    columns = (random.integers(0, field, (ROWS, ENTRIES)) + field * np.arange(ENTRIES)).astype(np.int32)
    values = random.normal(size=(ROWS, ENTRIES))
    w = random.normal(size=D)
    y = np.sum(values * w[columns], 1) + random.normal(size=ROWS)
    offsets = np.arange(0, BLOCK_ROWS * ENTRIES + 1, ENTRIES, dtype=np.int64)
    slices = [slice(first, first + BLOCK_ROWS) for first in range(0, ROWS, BLOCK_ROWS)]
    return [_distributed.Block(D, values[rows].ravel(), y[rows], None, columns[rows].ravel(), offsets) for rows in slices]


class TimedPartitions(_distributed.LocalPartitions):
    """Measures the rows per second of each request, by type."""

    def __init__(self, partitions):
        super().__init__(partitions)
        self.rates = {}

    def send(self, request):
        start = time.perf_counter()
        response = super().send(request)
        seconds = time.perf_counter() - start
        request_type = int(load(request.content)["about"][0])
        self.rates.setdefault(request_type, []).append(_core.count_rows(response) / seconds)
        return response


def measure_rates():
    """Train on one partition; print and return the median rate of the last requests of each type."""
    settings = _core.Settings()
    settings.rank, settings.seed, settings.target, settings.precision = RANK, 1, "target", "double"
    settings.solver = None
    partitions = TimedPartitions([generate_blocks()])
    _distributed.train(partitions, settings, [], sample_rows=1000, max_data_passes=30, progress=lambda *_: None)
    rates = {}
    print("| request | rows per second and core |\n|---|---|")
    for request_type, name in REQUEST_NAMES.items():
        rates[request_type] = statistics.median(partitions.rates[request_type][-MEASURED_REQUESTS:])
        print(f"| {name} | {rates[request_type]:,.0f} |")
    return rates


def job_seconds(rows_per_second, executors, request_bytes, response_bytes, rows):
    """Return the time of a job: scheduling, broadcast of the request, sums over the rows, tree aggregation of the responses."""
    levels = math.ceil(math.log(executors, TREE_WIDTH)) if executors > 1 else 0
    aggregation = levels * (TREE_WIDTH - 1) * response_bytes / BYTES_PER_SECOND
    # A broadcast takes twice the time of one copy.
    broadcast = 2 * request_bytes / BYTES_PER_SECOND if executors > 1 else 0
    return JOB_SECONDS + broadcast + rows / executors / rows_per_second + aggregation


def print_cluster_model(rates):
    k, d = RANK, CLUSTER_D
    rounds = math.ceil(math.log2(CLUSTER_ROWS / 16384))  # the rows double in each round, from the default of sampleRows
    print("\n| executors | one pass, all rounds | network time of it | a step of Gauss-Newton (6 products) |\n|---|---|---|---|")
    for executors in (1, 100, 1000):
        # Sizes in bytes: doubles per feature, times 8, times d.
        request, response = 8 * (2 * k + 6) * d, 16 * (k + 1) * d
        network = job_seconds(math.inf, executors, request, response, 0) - JOB_SECONDS
        one_pass = rounds * (network + JOB_SECONDS) + CLUSTER_ROWS / executors / rates[PASS]
        product = job_seconds(rates[CURVATURE_PRODUCT], executors, 8 * (2 * k + 3) * d, 8 * (k + 2) * d, CLUSTER_ROWS)
        gradient = job_seconds(rates[GRADIENT], executors, 8 * (k + 2) * d, 8 * (k + 2) * d, CLUSTER_ROWS)
        step = gradient + PRODUCTS_PER_STEP * product
        print(f"| {executors:,} | {one_pass:,.0f} s | {rounds * network:,.0f} s | {step:,.0f} s |")


if __name__ == "__main__":
    print_cluster_model(measure_rates())
