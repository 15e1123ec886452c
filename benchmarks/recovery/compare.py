"""Compares recovery algorithms: compare.py BUILD measures success against the number of rows.

Writes recovery.csv to the build folder, docs/recovery-comparison.md and docs/plots/phase_transitions.svg.
"""

from __future__ import annotations

import csv
import functools
import math
import multiprocessing
import pathlib
import sys
import tempfile

import methods
import page
import plot
import problems
from problems import Problem
from records import Record

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Runs per point. Phase retrieval has more, because its runs are short and the transitions of its methods are close to each other.
PHASE_RUNS = 30
MATRIX_RUNS = 10
# Each point has its own seeds. With common seeds, the rows of a point would contain those of all smaller points, and a set of
# unusually difficult seeds would shift a whole curve.
SEEDS_PER_POINT = 100
PROCESSES = 2
# Rows per degree of freedom.
PHASE_RATIOS = (1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0)
MATRIX_RATIOS = (1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0)
PROBLEMS = [
    Problem("phase", dim=100, signs="positive"),
    *(Problem("sensing", dim=50, rank=3, condition=c, signs=signs) for signs in ("positive", "mixed") for c in (1, 20)),
    *(Problem("bilinear", dim=50, rank=3, condition=c) for c in (1, 20)),
]

Task = tuple[Problem, float, int]


def run_task(dyad: pathlib.Path, task: Task) -> list[Record]:
    """Generate the rows of one problem and run all methods on them."""
    problem, ratio, seed = task
    rows = math.ceil(ratio * problem.unknowns)
    with tempfile.TemporaryDirectory() as folder:
        planted = problems.simulate(dyad, problem, rows, seed, pathlib.Path(folder))
    tolerance = methods.tolerance(problem)
    return [
        Record(problem.name, result.method, ratio, rows, seed, result.error, result.error < tolerance, result.seconds)
        for result in methods.run_all(dyad, problem, planted, seed)
    ]


def print_progress(records: list[Record]) -> None:
    """Print the successes of each method at one point of the diagrams."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record.method] = counts.get(record.method, 0) + record.is_success
    text = ", ".join(f"{method} {count}" for method, count in counts.items())
    runs = len({record.seed for record in records})
    print(f"{records[0].problem}, {records[0].rows} rows: {text} of {runs}", file=sys.stderr, flush=True)


def points() -> list[list[Task]]:
    """Return the runs of each point of the diagrams."""
    result = []
    for problem in PROBLEMS:
        is_phase = problem.kind == "phase"
        for index, ratio in enumerate(PHASE_RATIOS if is_phase else MATRIX_RATIOS):
            first_seed = SEEDS_PER_POINT * index + 1
            seeds = range(first_seed, first_seed + (PHASE_RUNS if is_phase else MATRIX_RUNS))
            result.append([(problem, ratio, seed) for seed in seeds])
    return result


def measure(dyad: pathlib.Path) -> list[Record]:
    """Run all methods on all problems."""
    records: list[Record] = []
    with multiprocessing.Pool(PROCESSES) as pool:
        for tasks in points():
            results = pool.map(functools.partial(run_task, dyad), tasks, chunksize=1)
            point = [record for run in results for record in run]
            print_progress(point)
            records += point
    return records


def main(build: pathlib.Path) -> None:
    """Measure, and write the table, the plot and the page."""
    records = measure(build / "dyad")
    with open(build / "recovery.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Record._fields)
        writer.writerows(records)
    plot.draw(records, PROBLEMS, ROOT / "docs" / "plots" / "phase_transitions.svg")
    text = page.write(records, PROBLEMS, ROOT / "docs" / "recovery-comparison.md")
    print(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
