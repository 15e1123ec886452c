"""Losses and processor times of solvers on sparse data sets, medians over seeds.

    DYAD_DATA=FOLDER python3 benchmarks/sampling.py [--dyad COMMAND] [--seeds 5] [--options "--rank 8"] [--myfm N] [SET ...]

Sets: ml-small, movietweetings, lastfm-tags, criteo-sample, adult, a9a. The table has the loss on the test rows (rmse, or
log-loss of classes), the rank and the number of samples of the model, and the processor time of `dyad train`. `--myfm N`
adds myFM with N samples, rank 8 and one prior group per column (probit for classes) on the sets of categories only; its
time is that of `fit` on rows in memory. The package myfm must be installed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

SETS = {
    "ml-small": ("ratings/ml-small", "csv", "--target rating --ignore timestamp --categorical user,movie"),
    "movietweetings": ("ratings/movietweetings", "csv", "--target rating --ignore timestamp --categorical user,movie"),
    "lastfm-tags": ("contexts/lastfm-tags", "csv", "--target used --categorical user,artist,tag"),
    "criteo-sample": ("contexts/criteo-sample", "csv", "--target click --categorical 'C*'"),
    "adult": ("tabular/adult", "csv", "--target output --solver sampling"),
    "a9a": ("binary/a9a", "svm", ""),
}


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command: list[str]) -> dict:
    return json.loads(subprocess.run([*command, "--json", "--quiet"], check=True, capture_output=True, text=True).stdout)


def measure(dyad: str, name: str, options: str, seed: int, folder: pathlib.Path) -> dict:
    """Return loss, rank, samples, solver and processor seconds of one training run."""
    path, extension, set_options = SETS[name]
    data = pathlib.Path(os.environ["DYAD_DATA"]) / path
    model = str(folder / "model.dyad")
    before = processor_seconds()
    train = [dyad, "train", f"{data}.train.{extension}", "-m", model, "--threads", "1", "--seed", str(seed)]
    summary = run([*train, *shlex.split(set_options), *shlex.split(options)])
    seconds = processor_seconds() - before
    metrics = run([dyad, "evaluate", "-m", model, f"{data}.test.{extension}"])["metrics"]
    return {
        "loss": metrics.get("rmse", metrics.get("logloss")),
        "rank": summary["rank"],
        "samples": summary.get("samples", 0),
        "solver": summary["solver"],
        "seconds": seconds,
    }


CATEGORIES = {
    "ml-small": (["user", "movie"], "rating"),
    "movietweetings": (["user", "movie"], "rating"),
    "lastfm-tags": (["user", "artist", "tag"], "used"),
}


def measure_myfm(name: str, samples: int, seed: int) -> dict:
    """Return loss, rank, samples, solver and processor seconds of one fit of myFM."""
    import myfm
    import numpy as np
    import scipy.sparse

    columns, target = CATEGORIES[name]
    index: list[dict[str, int]] = [{} for _ in columns]

    def read(part: str) -> tuple[list[list[int]], np.ndarray]:
        """Return the category of each cell, -1 if it has no training rows, and the targets."""
        cells, targets = [], []
        with open(f"{pathlib.Path(os.environ['DYAD_DATA']) / SETS[name][0]}.{part}.csv", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                names = [row[column] for column in columns]
                if part == "train":
                    cells.append([known.setdefault(value, len(known)) for known, value in zip(index, names)])
                else:
                    cells.append([known.get(value, -1) for known, value in zip(index, names)])
                targets.append(float(row[target]))
        return cells, np.array(targets)

    parts = {part: read(part) for part in ("train", "test")}
    sizes = [len(known) for known in index]
    offsets = np.concatenate([[0], np.cumsum(sizes)])

    def encode(cells: list[list[int]]) -> scipy.sparse.csr_matrix:
        places = [(i, offsets[c] + j) for i, row in enumerate(cells) for c, j in enumerate(row) if j >= 0]
        rows, features = np.array(places).T
        return scipy.sparse.csr_matrix((np.ones(len(rows)), (rows, features)), shape=(len(cells), offsets[-1]))

    (train, y), (test, actual) = parts["train"], parts["test"]
    is_class = target == "used"
    model = (myfm.MyFMClassifier if is_class else myfm.MyFMRegressor)(rank=8, random_seed=seed)
    X = encode(train)
    start = time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):  # the progress bar
        model.fit(X, y, n_iter=samples, n_kept_samples=samples, group_shapes=sizes)
    seconds = time.process_time() - start
    if is_class:
        p = np.clip(model.predict_proba(encode(test)), 1e-12, 1 - 1e-12)
        loss = float(-np.mean(np.where(actual > 0, np.log(p), np.log(1 - p))))
    else:
        predictions = np.clip(model.predict(encode(test)), y.min(), y.max())
        loss = float(np.sqrt(np.mean((predictions - actual) ** 2)))
    return {"loss": loss, "rank": 8, "samples": samples, "solver": "myFM", "seconds": seconds}


def print_row(name: str, runs: list[dict]) -> None:
    """Print the medians over seeds."""
    median = {key: statistics.median(run[key] for run in runs) for key in ("loss", "rank", "samples", "seconds")}
    losses = [run["loss"] for run in runs]
    print(
        f"| {name} | {runs[0]['solver']} | {median['loss']:.4f} ({min(losses):.4f} to {max(losses):.4f}) | "
        f"{median['rank']:g} | {median['samples']:g} | {median['seconds']:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--dyad", default="build/release/dyad", help="command")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--options", default="--rank 8", help="options of train for all sets")
    parser.add_argument("--myfm", type=int, default=0, help="number of samples of myFM; 0: without myFM")
    arguments = parser.parse_args()
    if not (pathlib.Path(os.environ.get("DYAD_DATA", "")) / "ratings").is_dir():
        sys.exit("DYAD_DATA is not a folder with the data sets; set it to the folder that has ratings/ and contexts/")
    unknown = set(arguments.sets) - set(SETS)
    if unknown:
        sys.exit(f"unknown sets: {', '.join(sorted(unknown))}; expected {', '.join(SETS)}")
    print("| set | solver | loss, median (range) | rank | samples | processor seconds |\n|---|---|---|---|---|---|")
    seeds = range(1, arguments.seeds + 1)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.sets:
            print_row(name, [measure(arguments.dyad, name, arguments.options, seed, pathlib.Path(folder)) for seed in seeds])
            if arguments.myfm and name in CATEGORIES:
                print_row(name, [measure_myfm(name, arguments.myfm, seed) for seed in seeds])


if __name__ == "__main__":
    main()
