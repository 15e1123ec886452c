"""Online learning on a stream of ratings: progressive rmse (each row is predicted before it is learned) and rows per second."""

from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import tempfile
import time
import warnings
from typing import NamedTuple

import numpy as np

RANK = 8
RUNS = 5


class OnlineResult(NamedTuple):
    name: str
    settings: str
    loss: float
    rates: list[float]  # rows per second of each run


def run_dyad(rows, folder, command):
    """Run the command line on a csv file, including parsing and saving the model."""
    path = folder / "stream.csv"
    path.write_text("user,film,rating\n" + "".join(f"{u},{f},{y.strip()}\n" for u, f, y in rows))
    train = [command, "train", path, "--target", "rating", "--categorical", "user,film", "--passes", "1"]
    summaries = []
    for _ in range(RUNS):
        run = subprocess.run([*train, "-m", folder / "model", "--json", "--quiet"], check=True, capture_output=True)
        summaries.append(json.loads(run.stdout))
    rates = [summary["rows"] / summary["seconds"] for summary in summaries]
    return OnlineResult("dyad", "default options, one pass", summaries[0]["progressive"]["rmse"], rates)


def run_vowpal_wabbit(rows, folder):
    """Run Vowpal Wabbit on a file of its format, with --lrq as in its demonstration."""
    import vowpalwabbit

    path = folder / "stream.vw"
    path.write_text("".join(f"{y.strip()} |u {u} |f {f}\n" for u, f, y in rows))
    best, rates = (np.inf, ""), []
    for rate in (0.05, 0.1, 0.2, 0.3, 0.5, 1):
        options = f"-d {path} --lrq uf{RANK} -l {rate} -b 22 --quiet"
        start = time.perf_counter()
        model = vowpalwabbit.Workspace(options)
        rates.append(len(rows) / (time.perf_counter() - start))
        best = min(best, (float(np.sqrt(model.get_sum_loss() / len(rows))), f"best of six learning rates: {rate}"))
        model.finish()
    return OnlineResult("Vowpal Wabbit", best[1], best[0], rates)


def run_river(rows):
    from river import facto, optim

    dicts = [({"u" + u: 1.0, "f" + f: 1.0}, float(y)) for u, f, y in rows]
    best, rates = (np.inf, ""), []
    for rate in (0.003, 0.01, 0.03, 0.05, 0.1):
        model = facto.FMRegressor(
            n_factors=RANK, weight_optimizer=optim.SGD(rate), latent_optimizer=optim.SGD(rate), seed=1
        )
        squared_error, count, start = 0.0, 0, time.perf_counter()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for count, (x, y) in enumerate(dicts, 1):
                error = model.predict_one(x) - y
                if not abs(error) < 1e100:  # diverged
                    squared_error = np.inf
                    break
                squared_error += error**2
                model.learn_one(x, y)
        rates.append(count / (time.perf_counter() - start))
        loss = float(np.sqrt(squared_error / len(rows)))
        best = min(best, (loss if np.isfinite(loss) else np.inf, f"best of five learning rates: {rate}"))
    return OnlineResult("river", best[1], best[0], rates)


def compare(rows, command, installed):
    """Run all installed systems, dyad first."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        results = [run_dyad(rows, folder, command)]
        if "vowpalwabbit" in installed:
            results.append(run_vowpal_wabbit(rows, folder))
        if "river" in installed:
            results.append(run_river(rows))
    return results


def table(title, rows, results):
    """Return the lines of the section."""
    dyad_rate = statistics.median(results[0].rates)
    lines = [
        f"{title}: {len(rows):,} rows, rank {RANK}. Each row is predicted before it is learned. The rmse is over all rows. The rate is",
        "the median (minimum to maximum) of five runs of dyad, and over the learning rates of the other systems. dyad and Vowpal Wabbit",
        "parse a text file. river learns from dicts in memory.",
        "",
        "| system | settings | rmse | rows per second | rate of dyad / this rate |",
        "|---|---|---|---|---|",
    ]
    best = min(result.loss for result in results)
    for result in results:
        rate = statistics.median(result.rates)
        spread = f"{rate:,.0f} ({min(result.rates):,.0f} to {max(result.rates):,.0f})"
        mark = " **worse**" if result.name == "dyad" and result.loss > best else ""
        lines.append(f"| {result.name} | {result.settings} | {result.loss:.4f}{mark} | {spread} | {dyad_rate / rate:.1f} |")
    return lines
