"""Compares dyad with linear models and boosted trees on tables: compare.py DYAD RUNS [--methods A,B] [--tables A,B]

DYAD is the command. The environment variable DYAD_DATA is the folder of the data. RUNS is a folder with one file per table and method;
existing files of peers are used again. Prints the page in Markdown.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from methods import METHODS, MODULES, Task, fit, is_installed

FOLDS = ["concrete", "energy", "airfoil", "wine", "skillcraft", "yacht", "solar", "pendulum"]
# Table with one split into training and test rows, and its target.
SPLITS = {"adult": "output", "air": "PM2.5", "pumadyn32nm": "y", "kin40k": "y", "bike": "y"}
CLASSES = ["adult"]
TABLES = [*FOLDS, *SPLITS]
# Tables of the mean log ratios.
RATED = [*FOLDS, "adult", "air", "pumadyn32nm"]
PEERS = METHODS[2:]
# Baselines whose best one dyad must not be behind.
BASELINES = METHODS[1:4]
# Quantiles of the standard normal distribution for central intervals.
INTERVALS = {"68%": 0.99446, "95%": 1.95996}


class Run(NamedTuple):
    """Results of one method on one table."""

    # Loss of each test row, per fold: squared error / variance of the training target, or log-loss.
    row_losses: list[list[float]]
    # Processor seconds of each fit.
    seconds: list[float]
    # Share of test targets in each interval, over all folds; empty without standard deviations.
    coverage: dict[str, float]


class Estimate(NamedTuple):
    """Mean and standard error."""

    mean: float
    error: float

    def text(self, form: str = ".4f") -> str:
        """Return the mean, followed by the standard error in parentheses."""
        return f"{self.mean:{form}} ({self.error:.4f})"


Runs = dict[tuple[str, str], Run]


def read_tasks(data: pathlib.Path, table: str) -> Iterator[Task]:
    """Read the rows of each fold."""
    if table in SPLITS:
        train, test = (pd.read_csv(data / "tabular" / f"{table}.{part}.csv") for part in ("train", "test"))
        yield Task(train, test, SPLITS[table], table in CLASSES)
        return
    rows = pd.read_csv(data / "folds" / f"{table}.csv")
    for fold in sorted(rows["fold"].unique()):
        is_test = rows["fold"] == fold
        yield Task(rows[~is_test].drop(columns="fold"), rows[is_test].drop(columns="fold"), "y", False)


def losses(task: Task, values: np.ndarray) -> np.ndarray:
    """Return the loss of each test row. Predictions are clipped to the range of the training targets."""
    y, target = task.targets(task.train), task.targets(task.test)
    if task.is_class:
        probability = np.clip(values, 1e-7, 1 - 1e-7)
        return -np.log(np.where(target == 1, probability, 1 - probability))
    return (np.clip(values, y.min(), y.max()) - target) ** 2 / y.var()


def measure(command: pathlib.Path, data: pathlib.Path, table: str, method: str) -> Run | None:
    """Run a method on all folds of a table. Returns None if the method does not apply to the table."""
    run = Run([], [], {})
    ratios: list[float] = []
    for task in read_tasks(data, table):
        prediction = fit(command, task, method)
        if prediction is None:
            return None
        run.row_losses.append(losses(task, prediction.values).tolist())
        run.seconds.append(prediction.seconds)
        if prediction.deviations is not None:
            ratios += list(np.abs(prediction.values - task.targets(task.test)) / prediction.deviations)
    if ratios:
        run.coverage.update({name: float(np.mean(np.array(ratios) <= limit)) for name, limit in INTERVALS.items()})
    return run


def fold_losses(table: str, run: Run) -> np.ndarray:
    """Return the loss of each fold: root mean square or mean of the losses of its rows."""
    means = np.array([np.mean(rows) for rows in run.row_losses])
    return means if table in CLASSES else np.sqrt(means)


def influence(table: str, run: Run) -> np.ndarray:
    """Return values whose mean has the standard error of the loss: losses of folds, or linearized losses of the rows of one split."""
    if len(run.row_losses) > 1:
        return fold_losses(table, run)
    rows = np.array(run.row_losses[0])
    return rows if table in CLASSES else rows / (2 * np.sqrt(rows.mean()))


def estimate(table: str, run: Run, base: Run | None = None) -> Estimate:
    """Return the loss of a run, or its paired difference to a base."""
    mean, values = fold_losses(table, run).mean(), influence(table, run)
    if base is not None:
        mean, values = mean - fold_losses(table, base).mean(), values - influence(table, base)
    return Estimate(float(mean), float(values.std(ddof=1) / np.sqrt(len(values))))


def label(table: str) -> str:
    """Return the name of a table for the page."""
    notes = {"adult": " (log-loss)", "bike": " (leaks)"}
    return table + notes.get(table, "")


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def loss_table(runs: Runs) -> str:
    """Return the losses of all methods. The smallest loss of a table is bold."""
    rows = []
    for table in TABLES:
        found = {method: estimate(table, runs[table, method]) for method in METHODS if (table, method) in runs}
        best = min((value.mean for value in found.values()), default=0.0)
        cells = [found[m].text() if m in found else "-" for m in METHODS]
        rows.append([label(table)] + [f"**{c}**" if m in found and found[m].mean == best else c for m, c in zip(METHODS, cells)])
    return format_table(["table", *METHODS], rows)


def difference_table(runs: Runs) -> str:
    """Return the paired differences of dyad to its peers. Positive differences are marked."""
    rows = []
    for table in TABLES:
        cells, behind = [], []
        for peer in PEERS:
            if (table, peer) not in runs or (table, "dyad") not in runs:
                cells.append("-")
                continue
            difference = estimate(table, runs[table, "dyad"], runs[table, peer])
            is_behind = difference.mean > 2 * difference.error
            cells.append(f"**{difference.text('+.4f')}**" if is_behind else difference.text("+.4f"))
            if difference.mean > 0:
                behind.append(f"**{peer}**" if is_behind else peer)
        rows.append([label(table), *cells, ", ".join(behind)])
    return format_table(["table", *PEERS, "dyad is behind"], rows)


def time_table(runs: Runs) -> str:
    """Return the mean processor seconds per fit."""
    names = ["dyad", *PEERS]
    rows = [[label(t)] + [f"{np.mean(runs[t, m].seconds):.2f}" if (t, m) in runs else "-" for m in names] for t in TABLES]
    return format_table(["table", *names], rows)


def coverage_table(runs: Runs) -> str:
    """Return the coverage of the intervals of dyad, and its mean over the tables except the leaking one."""
    found = {t: runs[t, "dyad"] for t in TABLES if (t, "dyad") in runs and runs[t, "dyad"].coverage}
    rows = [[label(t), str(sum(map(len, r.row_losses)))] + [f"{100 * r.coverage[i]:.1f}" for i in INTERVALS] for t, r in found.items()]
    means = [np.mean([run.coverage[i] for table, run in found.items() if table != "bike"] or [np.nan]) for i in INTERVALS]
    rows.append(["mean without bike", ""] + [f"{100 * mean:.1f}" for mean in means])
    return format_table(["table", "test rows", *(f"{i} interval" for i in INTERVALS)], rows)


def ratio_table(runs: Runs) -> str:
    """Return the mean log ratio of the loss of dyad to that of each peer, and its range with one table left out."""
    rows = []
    for peer in PEERS:
        found = [t for t in RATED if (t, peer) in runs and (t, "dyad") in runs]
        if len(found) < 2:
            rows.append([peer, str(len(found)), "-", "-", "-", "-"])
            continue
        means = {m: np.array([fold_losses(t, runs[t, m]).mean() for t in found]) for m in ("dyad", peer)}
        ratios = np.log(means["dyad"] / means[peer])
        without = (ratios.sum() - ratios) / (len(ratios) - 1)
        worst = f"{without.max():+.3f} (without {found[int(without.argmax())]})"
        rows.append([peer, str(len(found)), f"{ratios.mean():+.3f}", worst, f"{without.min():+.3f}", str(int((ratios > 0).sum()))])
    return format_table(["peer", "tables", "mean log ratio", "largest, one table left out", "smallest", "dyad is behind on"], rows)


def baseline_table(runs: Runs) -> str:
    """Return the paired difference of dyad to the best of the constant and the two ridge regressions."""
    rows = []
    for table in RATED:
        found = [m for m in BASELINES if (table, m) in runs]
        if not found or (table, "dyad") not in runs:
            continue
        best = min(found, key=lambda m: float(fold_losses(table, runs[table, m]).mean()))
        difference = estimate(table, runs[table, "dyad"], runs[table, best])
        percent = 100 * difference.mean / fold_losses(table, runs[table, best]).mean()
        mark = "" if difference.mean <= 0 else "**behind**" if difference.mean > 2 * difference.error else "behind"
        rows.append([label(table), best, difference.text("+.4f"), f"{percent:+.1f}%", mark])
    return format_table(["table", "best baseline", "difference", "relative", "dyad is"], rows)


def machine() -> str:
    """Return the processor, its load over 15 minutes and the versions of the libraries."""
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    packages = ["numpy", "scikit-learn", "lightgbm", "catboost", "interpret"]
    found = {dist.metadata["Name"]: dist.version for dist in importlib.metadata.distributions()}
    load = f"load average {os.getloadavg()[2]:.1f} of {os.cpu_count()} cores"
    return f"{model}, {load}, Python {platform.python_version()}, " + ", ".join(f"{p} {found[p]}" for p in packages if p in found)


def missing_text(runs: Runs) -> str:
    """Return a sentence that names the runs that are missing."""
    missing = {m: [t for t in TABLES if (t, m) not in runs and (t, m) != ("adult", "ridge on all pairs")] for m in METHODS}
    lines = [f"- {method}: {', '.join(tables)}" for method, tables in missing.items() if tables]
    if not lines:
        return "All runs are complete."
    return "\n".join(["Not measured yet; `scripts/tables-comparison BUILD` fills them:", "", *lines])


def write_page(runs: Runs) -> str:
    """Return the page."""
    text = pathlib.Path(__file__).with_name("page.md").read_text()
    parts = {
        "losses": loss_table, "differences": difference_table, "times": time_table, "coverage": coverage_table,
        "ratios": ratio_table, "baselines": baseline_table, "missing": missing_text,
    }  # fmt: skip
    for name, part in parts.items():
        text = text.replace("{" + name + "}", part(runs))
    return text.replace("{machine}", machine())


def main() -> None:
    """Measure what is selected and missing, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dyad", type=pathlib.Path)
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated; empty: print the page of the existing runs")
    parser.add_argument("--tables", default=",".join(TABLES), help="comma-separated")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    folder = os.environ.get("DYAD_DATA", "")
    if not (pathlib.Path(folder) / "folds").is_dir():
        sys.exit("DYAD_DATA is not a folder with the tables; set it to the folder that has folds/ and tabular/")
    arguments.runs.mkdir(parents=True, exist_ok=True)
    for method in filter(None, arguments.methods.split(",")):
        if not is_installed(method):
            print(f"{method} is left out: {MODULES[method]} is not installed", file=sys.stderr)
            continue
        for table in arguments.tables.split(","):
            file = arguments.runs / f"{table}.{method.replace(' ', '-')}.json"
            if file.exists() and method != "dyad":
                continue
            run = measure(arguments.dyad.resolve(), pathlib.Path(folder), table, method)
            if run is not None:
                file.write_text(json.dumps(run._asdict()))
                text = f"{estimate(table, run).text()}, {np.mean(run.seconds):.2f} s per fit"
                print(f"{table}, {method}: {text}", file=sys.stderr, flush=True)
    files = {(t, m): arguments.runs / f"{t}.{m.replace(' ', '-')}.json" for t in TABLES for m in METHODS}
    print(write_page({key: Run(**json.loads(file.read_text())) for key, file in files.items() if file.exists()}), end="")


if __name__ == "__main__":
    main()
