"""Losses and processor times of solvers on sparse data sets, medians over seeds.

    DYAD_DATA=FOLDER python3 benchmarks/sampling.py [--dyad COMMAND] [--seeds 5] [--options "--rank 8"] [SET ...]

Sets: ml-small, movietweetings, lastfm-tags, criteo-sample, adult, a9a. The table has the loss on the test rows (rmse, or
log-loss of classes), the rank and the number of samples of the model, and the processor time of `dyad train`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import tempfile

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--dyad", default="build/release/dyad", help="command")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--options", default="--rank 8", help="options of train for all sets")
    arguments = parser.parse_args()
    print("| set | solver | loss, median (range) | rank | samples | processor seconds |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.sets:
            runs = [
                measure(arguments.dyad, name, arguments.options, seed, pathlib.Path(folder))
                for seed in range(1, arguments.seeds + 1)
            ]
            median = {key: statistics.median(r[key] for r in runs) for key in ("loss", "rank", "samples", "seconds")}
            losses = [r["loss"] for r in runs]
            print(
                f"| {name} | {runs[0]['solver']} | {median['loss']:.4f} ({min(losses):.4f} to {max(losses):.4f}) | "
                f"{median['rank']:g} | {median['samples']:g} | {median['seconds']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
