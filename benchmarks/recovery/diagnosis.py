"""Counts correct diagnoses of planted failures and false reports: diagnosis.py BUILD [FIRST_SEED].

Each cause of docs/recovery.md is planted in 10 instances per kind of model. 100 runs with noise have enough rows for a reliable fit.
The rows come from `dyad recover`, or from `dyad simulate` if they are changed before `dyad train`.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np

from measurements import Array

INSTANCES = 10
GOOD_RUNS = 100
# A fit with noise s has an error of about s sqrt(unknowns / rows). Runs with errors above this multiple are failures, not good runs.
MAX_ERROR_RATIO = 5.0
# Largest error of a good run for any noise. w and M have norm 1.
MAX_GOOD_ERROR = 0.5
# Largest error of an exact recovery. Problems without noise that have larger errors are local minima.
MAX_EXACT_ERROR = 1e-3
# Largest number of runs in the search for local minima, most of which recover the model.
MAX_LOCAL_MINIMUM_RUNS = 12 * INSTANCES


@dataclasses.dataclass(frozen=True)
class Model:
    """Planted model.

    Attributes
    ----------
    kind : str
        KIND of `dyad recover`.
    dim : int
        Number of features; of each side if the model is bilinear.
    rank : int
        Rank of M.
    """

    kind: str
    dim: int
    rank: int = 1

    @property
    def unknowns(self) -> int:
        """Degrees of freedom."""
        d, k = self.dim, self.rank
        if self.kind == "bilinear":
            return k * (2 * d - k) + 2 * d
        return d * k - k * (k - 1) // 2 + (d if self.kind == "gfm" else 0)

    def arguments(self, rows_per_unknown: float, seed: int, options: dict[str, float | str]) -> list[str]:
        """Return the arguments of `dyad simulate` and `dyad recover`."""
        dim = f"{self.dim}x{self.dim}" if self.kind == "bilinear" else str(self.dim)
        rows = math.ceil(rows_per_unknown * self.unknowns)
        values = {"dim": dim, "rank": self.rank, "rows": rows, "seed": seed, "threads": 1, **options}
        return [self.kind, *(f"--{name}={value}" for name, value in values.items()), "--quiet"]


@dataclasses.dataclass(frozen=True)
class Report:
    """Reported status, and the error of w and M (phase: of the signal) if the solution is known."""

    status: str
    error: float = math.nan


def run_json(command: list[str]) -> dict[str, float | str | None]:
    """Run a command that prints JSON."""
    summary: dict[str, float | str | None] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    return summary


def recover(dyad: pathlib.Path, model: Model, rows_per_unknown: float, seed: int, **options: float | str) -> Report:
    """Run `dyad recover`."""
    summary = run_json([str(dyad), "recover", *model.arguments(rows_per_unknown, seed, options), "--json"])
    errors = [summary["error_a"]] if model.kind == "phase" else [summary["error_w"], summary["error_M"]]
    error = math.inf if None in errors else sum(float(value or 0) for value in errors)
    return Report(str(summary["status"]), error)


def train(
    dyad: pathlib.Path,
    planted: Model,
    fitted: Model,
    seed: int,
    change: Callable[[Array, Array], tuple[Array, Array]] = lambda X, y: (X, y),
    rows_per_unknown: float = 4,
    noise: float = 0.1,
) -> Report:
    """Run `dyad train` on changed rows of `dyad simulate`."""
    with tempfile.TemporaryDirectory() as folder:
        data, target, output = (str(pathlib.Path(folder) / name) for name in ("rows.npy", "target.npy", "model.dyad"))
        arguments = planted.arguments(rows_per_unknown, seed, {"noise": noise})
        subprocess.run([str(dyad), "simulate", *arguments, "-o", data, "--target-file", target], check=True)
        X, y = change(np.load(data), np.load(target))
        np.save(data, X)
        np.save(target, y)
        options = ["--kind", fitted.kind, "--rank", str(fitted.rank), "--target-file", target, "-m", output]
        summary = run_json([str(dyad), "train", data, *options, "--threads", "1", "--quiet", "--json"])
    return Report(str(summary.get("status")))


def repeat_column(X: Array, y: Array) -> tuple[Array, Array]:
    """Append a copy of the first column. The sum of its coefficients is determined, but not each of them."""
    return np.hstack([X, X[:, :1]]), y


def append_zero_column(X: Array, y: Array) -> tuple[Array, Array]:
    """Append a column of zeros."""
    return np.hstack([X, np.zeros((len(X), 1))]), y


def append_sum_of_columns(X: Array, y: Array) -> tuple[Array, Array]:
    """Append the sum of two columns."""
    return np.hstack([X, X[:, :1] + X[:, 1:2]]), y


Planted = Callable[[pathlib.Path, int], Report]

GFM, SENSING, PHASE, BILINEAR = Model("gfm", 40, 3), Model("sensing", 40, 3), Model("phase", 40), Model("bilinear", 30, 2)
FAILURES: list[tuple[str, str, Planted]] = [
    *(
        ("too_few_rows", f"{model.kind}, 0.9 rows per unknown", lambda dyad, seed, m=model: recover(dyad, m, 0.9, seed))
        for model in (GFM, SENSING, PHASE, BILINEAR)
    ),
    *(
        ("not_identifiable", f"{model.kind}, {name}", lambda dyad, seed, m=model, c=change: train(dyad, m, m, seed, c))
        for model in (SENSING, PHASE)
        for name, change in (("repeated column", repeat_column), ("zero column", append_zero_column), ("dependent column", append_sum_of_columns))
    ),
    ("rank_too_small", "sensing, rank 3, fitted with 2", lambda dyad, seed: train(dyad, SENSING, Model("sensing", 40, 2), seed)),
    ("rank_too_small", "sensing, rank 2, fitted with 1", lambda dyad, seed: train(dyad, Model("sensing", 40, 2), Model("sensing", 40), seed)),
    ("rank_too_small", "sensing, rank 5, fitted with 4", lambda dyad, seed: train(dyad, Model("sensing", 40, 5), Model("sensing", 40, 4), seed)),
    ("inconsistent_sign", "phase, negative targets", lambda dyad, seed: train(dyad, PHASE, PHASE, seed, lambda X, y: (X, -y))),
    ("inconsistent_sign", "phase, targets of indefinite M", lambda dyad, seed: train(dyad, Model("sensing", 40, 2), PHASE, seed)),
    *(
        ("outliers", f"{model.kind}, 5% outliers", lambda dyad, seed, m=model: recover(dyad, m, 6, seed, noise=0.1, outliers=0.05))
        for model in (GFM, SENSING, PHASE, BILINEAR)
    ),
]
LOCAL_MINIMA = [(Model("phase", 60), 1.15), (Model("gfm", 40, 3), 1.03), (Model("sensing", 40, 3), 1.03), (Model("bilinear", 30, 2), 1.03)]
GOOD_MODELS = [
    *(Model(kind, dim, rank) for kind in ("gfm", "sensing") for dim, rank in ((20, 2), (50, 3), (100, 3))),
    *(Model("phase", dim) for dim in (20, 50, 200)),
    *(Model("bilinear", dim, 2) for dim in (20, 40)),
]
GOOD_RATIOS = (1.5, 2.0, 3.0, 6.0)
GOOD_NOISES = (0.01, 0.1, 0.3)
# Distance of consecutive settings, without a common divisor with their number, so that 100 runs contain all values of each parameter.
SETTING_STRIDE = 37


def count_local_minima(dyad: pathlib.Path, model: Model, ratio: float, first_seed: int) -> collections.Counter[str]:
    """Search for local minima close to the information limit, and count their statuses."""
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(first_seed, first_seed + MAX_LOCAL_MINIMUM_RUNS):
        report = recover(dyad, model, ratio, seed)
        if report.error > MAX_EXACT_ERROR:
            counts[report.status] += 1
        if counts.total() == INSTANCES:
            break
    return counts


def print_counts(cause: str, problem: str, counts: collections.Counter[str]) -> None:
    """Print one line of the table of failures."""
    others = ", ".join(f"{status} {count}" for status, count in counts.items() if status != cause)
    print(f"| `{cause}` | {problem} | {counts[cause]} of {counts.total()} | {others} |", flush=True)


def measure_failures(dyad: pathlib.Path, first_seed: int) -> None:
    """Print the statuses of planted failures."""
    print("| cause | problem | reported | others |\n|---|---|---|---|")
    for cause, problem, planted in FAILURES:
        reports = [planted(dyad, seed) for seed in range(first_seed, first_seed + INSTANCES)]
        print_counts(cause, problem, collections.Counter(report.status for report in reports))
    for model, ratio in LOCAL_MINIMA:
        counts = count_local_minima(dyad, model, ratio, first_seed)
        print_counts("local_minimum", f"{model.kind}, {ratio:g} rows per unknown", counts)


def measure_good_runs(dyad: pathlib.Path, first_seed: int) -> None:
    """Print the statuses of runs with noise."""
    settings = list(itertools.product(GOOD_RATIOS, GOOD_NOISES, GOOD_MODELS))
    good: collections.Counter[str] = collections.Counter()
    bad: collections.Counter[str] = collections.Counter()
    for run in itertools.count():
        ratio, noise, model = settings[SETTING_STRIDE * run % len(settings)]
        report = recover(dyad, model, ratio, first_seed + run, noise=noise)
        is_good = report.error <= min(MAX_GOOD_ERROR, MAX_ERROR_RATIO * noise / math.sqrt(ratio))
        (good if is_good else bad)[report.status] += 1
        if is_good != (report.status == "converged"):
            print(f"{model}, {ratio} rows per unknown, noise {noise}, seed {first_seed + run}: {report}", file=sys.stderr)
        if good.total() == GOOD_RUNS:
            break
    print(f"\ngood runs with noise: {dict(good)}\nruns with large errors: {dict(bad)}")


def main(build: pathlib.Path, first_seed: int) -> None:
    """Measure, and print the tables."""
    measure_failures(build / "dyad", first_seed)
    measure_good_runs(build / "dyad", first_seed)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
