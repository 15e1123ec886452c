"""What one core does for a part of the rows, and what that means for a cluster: parts_rates.py prints docs/spark.md's tables."""

import math
import statistics
import time

import numpy as np

from dyad import _core, _parts

ROWS, D, ENTRIES, RANK, RUNS = 200_000, 10_000, 10, 8, 5
KINDS = {1: "one pass", 5: "slopes of Gauss-Newton", 6: "a product with J'HJ"}  # as in src/parts/question.h
CLUSTER_ROWS, CLUSTER_D = 1e9, 1e7
BYTES_PER_SECOND, JOB, WIDTH = 1.25e9, 0.2, 8


def blocks():
    random = np.random.default_rng(1)
    field = D // ENTRIES
    columns = (random.integers(0, field, (ROWS, ENTRIES)) + field * np.arange(ENTRIES)).astype(np.int32)
    values = random.normal(size=(ROWS, ENTRIES))
    w = random.normal(size=D)
    y = np.sum(values * w[columns], 1) + random.normal(size=ROWS)
    offsets = np.arange(0, 10_000 * ENTRIES + 1, ENTRIES, dtype=np.int64)
    return [
        _parts.Block(D, values[at : at + 10_000].ravel(), y[at : at + 10_000], None, columns[at : at + 10_000].ravel(), offsets)
        for at in range(0, ROWS, 10_000)
    ]


class Timed(_parts.LocalParts):
    """Remembers how long each question took, by its kind, for the rows that counted."""

    def __init__(self, parts):
        super().__init__(parts)
        self.rates = {}

    def ask(self, task):
        start = time.perf_counter()
        answer = super().ask(task)
        seconds = time.perf_counter() - start
        self.rates.setdefault(self.kind_of(task.question), []).append(_core.rows_of_statistics(answer) / seconds)
        return answer

    @staticmethod
    def kind_of(question):
        from safetensors.numpy import load

        return int(load(question)["about"][0])


def rates():
    settings = _core.Settings()
    settings.rank, settings.seed, settings.target, settings.precision = RANK, 1, "target", "double"
    settings.solver = None
    parts = Timed([blocks()])
    _parts.learn(parts, settings, [], sample_rows=1000, most_looks=30, report=lambda *_: None)
    found = {}
    print("| job | rows per second and core |\n|---|---|")
    for kind, name in KINDS.items():
        found[kind] = statistics.median(parts.rates[kind][-RUNS:])
        print(f"| {name} | {found[kind]:,.0f} |")
    return found


def seconds(rows_per_second, executors, to_all, from_each, rows):
    """A job: its schedule, the question by broadcast, the rows, the answers up a tree of machines."""
    levels = math.ceil(math.log(executors, WIDTH)) if executors > 1 else 0
    adding = levels * (WIDTH - 1) * from_each / BYTES_PER_SECOND
    asking = 2 * to_all / BYTES_PER_SECOND if executors > 1 else 0
    return JOB + asking + rows / executors / rows_per_second + adding


def model(found):
    k, d = RANK, CLUSTER_D
    rounds = math.ceil(math.log2(CLUSTER_ROWS / 16384))
    print("\n| executors | one pass, all rounds | of that, on the network | a step of Gauss-Newton (6 products) |\n|---|---|---|---|")
    for executors in (1, 100, 1000):
        question, answer = 8 * (2 * k + 6) * d, 16 * (k + 1) * d
        network = seconds(math.inf, executors, question, answer, 0) - JOB
        one_pass = rounds * seconds(math.inf, executors, question, answer, 0) + CLUSTER_ROWS / executors / found[1]
        products = 6 * seconds(found[6], executors, 8 * (2 * k + 3) * d, 8 * (k + 2) * d, CLUSTER_ROWS)
        slopes = seconds(found[5], executors, 8 * (k + 2) * d, 8 * (k + 2) * d, CLUSTER_ROWS)
        print(f"| {executors:,} | {one_pass:,.0f} s | {rounds * network:,.0f} s | {slopes + products:,.0f} s |")


if __name__ == "__main__":
    model(rates())
