"""Systems that learn row by row, on a stream of ratings: the loss of every row predicted before it is learned, and speed."""

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


class Online(NamedTuple):
    name: str
    settings: str
    loss: float
    rates: list[float]  # rows per second, of each run


def dyad_on(rows, folder, command):
    """The command line, from text to a saved model."""
    path = folder / "stream.csv"
    path.write_text("user,film,rating\n" + "".join(f"{u},{f},{y.strip()}\n" for u, f, y in rows))
    words = [command, "train", path, "--target", "rating", "--categorical", "user,film", "--passes", "1"]
    said = []
    for _ in range(RUNS):
        run = subprocess.run([*words, "-m", folder / "model", "--json", "--quiet"], check=True, capture_output=True)
        said.append(json.loads(run.stdout))
    rates = [one["rows"] / one["seconds"] for one in said]
    return Online("dyad", "default options, one pass", said[0]["progressive"]["rmse"], rates)


def vw_on(rows, folder):
    """Its own parser on its own text; --lrq as in its demonstration of it."""
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
    return Online("Vowpal Wabbit", best[1], best[0], rates)


def river_on(rows):
    from river import facto, optim

    dicts = [({"u" + u: 1.0, "f" + f: 1.0}, float(y)) for u, f, y in rows]
    best, rates = (np.inf, ""), []
    for rate in (0.003, 0.01, 0.03, 0.05, 0.1):
        model = facto.FMRegressor(
            n_factors=RANK, weight_optimizer=optim.SGD(rate), latent_optimizer=optim.SGD(rate), seed=1
        )
        squares, done, start = 0.0, 0, time.perf_counter()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for done, (x, y) in enumerate(dicts, 1):
                error = model.predict_one(x) - y
                if not abs(error) < 1e100:  # it has diverged
                    squares = np.inf
                    break
                squares += error**2
                model.learn_one(x, y)
        rates.append(done / (time.perf_counter() - start))
        loss = float(np.sqrt(squares / len(rows)))
        best = min(best, (loss if np.isfinite(loss) else np.inf, f"best of five learning rates: {rate}"))
    return Online("river", best[1], best[0], rates)


def compare(rows, command, installed):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        systems = [dyad_on(rows, folder, command)]
        if "vowpalwabbit" in installed:
            systems.append(vw_on(rows, folder))
        if "river" in installed:
            systems.append(river_on(rows))
    return systems


def table(what, rows, systems):
    first = statistics.median(systems[0].rates)
    lines = [
        f"{what}: {len(rows):,} rows, rank {RANK}. Each row is predicted, then learned; rmse over all rows. Rows per",
        "second: median (least to most) of at least 5 runs; dyad and Vowpal Wabbit from a text file, river from dicts that",
        "are made before.",
        "",
        "| system | settings | rmse | rows per second | dyad is faster by |",
        "|---|---|---|---|---|",
    ]
    best = min(one.loss for one in systems)
    for one in systems:
        rate = statistics.median(one.rates)
        spread = f"{rate:,.0f} ({min(one.rates):,.0f} to {max(one.rates):,.0f})"
        mark = " **behind**" if one.name == "dyad" and one.loss > best else ""
        lines.append(f"| {one.name} | {one.settings} | {one.loss:.4f}{mark} | {spread} | {first / rate:.1f} |")
    return lines
